//! What confinement does to a server, done to a thread that then ends.
//!
//! What a kernel says that it offers is not what it enforces: in the thread
//! something is tried that the fence has to refuse.

use std::io;
use std::thread;

use super::answers::{Landlock, Loaded};
use crate::confine::landlock::{self, LandlockError, Tcp};
use crate::confine::profile::Profile;
use crate::confine::seccomp::selftest::self_test;
use crate::confine::seccomp::{self, Metadata, Network, Plan};

/// Puts a thread behind a fence without a gate.
pub(super) fn landlock() -> Landlock {
    in_a_thread(|| {
        let was_open = can_list_root();
        let enforced = match landlock::restrict(&Profile::default(), Tcp::Denied) {
            Ok(enforced) => enforced,
            Err(LandlockError::Unavailable) => return Landlock::Unavailable,
            Err(LandlockError::TooOld { abi, gaps }) => return Landlock::TooOld { abi, gaps },
            Err(error) => return Landlock::Failed(error.to_string()),
        };
        if was_open && can_list_root() {
            return Landlock::Failed("rules are taken and not enforced".to_owned());
        }
        Landlock::Enforced {
            abi: enforced.abi,
            kernel_abi: enforced.kernel_abi,
            errata: enforced.errata,
            gaps: enforced.gaps,
        }
    })
    .unwrap_or_else(|error| Landlock::Failed(error.to_string()))
}

/// Puts a thread under the filters of a server that may do least.
pub(super) fn filters() -> Result<Loaded, String> {
    in_a_thread(|| {
        let plan = Plan {
            network: Network::Denied,
            unix_sockets: false,
            metadata: Metadata::Denied,
        };
        let filters = seccomp::filters(&plan).map_err(|error| error.to_string())?;
        filters.apply().map_err(|error| error.to_string())?;
        let passed = self_test(&plan).map_err(|surprise| surprise.to_string())?;
        Ok(Loaded {
            filters: filters.count(),
            instructions: filters.count_instructions(),
            refused: passed.names().len(),
        })
    })
    .unwrap_or_else(|error| Err(error.to_string()))
}

fn in_a_thread<T: Send + 'static>(trial: fn() -> T) -> io::Result<T> {
    let thread = thread::Builder::new()
        .name("doctor".to_owned())
        .spawn(trial)?;
    thread
        .join()
        .map_err(|_| io::Error::other("the thread that was to try it ended"))
}

fn can_list_root() -> bool {
    std::fs::read_dir("/").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_leaves_the_process_as_it_was() {
        let (landlock, filters) = (landlock(), filters());
        assert!(can_list_root());
        assert!(std::os::unix::net::UnixDatagram::pair().is_ok());
        // Which of them there are is the machine's, but not that it is known.
        assert!(!matches!(landlock, Landlock::Failed(_)), "{landlock:?}");
        if let Ok(loaded) = filters {
            assert!(loaded.refused > 10, "{loaded:?}");
        }
    }
}
