//! Takes over another Policy Set while a session runs (SPEC §6.5).

#![allow(dead_code, reason = "no session has a policy so far")]

mod look;
mod tell;
mod watch;
