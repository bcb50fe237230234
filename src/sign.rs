//! Keys, signing, strict verification.
