//! The way out of a confined child's network namespace: what it may reach is
//! carried, what it may not is refused, and both are noted.
