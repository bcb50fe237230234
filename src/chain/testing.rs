//! What the tests of this room share.
