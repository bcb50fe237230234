//! Does what Landlock and the namespace are to refuse and sees it refused,
//! before a program is started behind them.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::confine::landlock::Enforced;
use crate::wire::facts::NetworkMode;

/// What there is to be refused.
pub(super) struct Outside<'a> {
    /// A file that no rule grants.
    pub(super) canary: &'a Path,
    /// A port of the host's 127.0.0.1 that is listened on, if it has one.
    pub(super) port: Option<u16>,
    /// The parent.
    pub(super) parent: Pid,
}

/// Tries it, and names what was refused as it should be.
///
/// # Errors
/// A text about the first that was not.
pub(super) fn run(
    outside: &Outside<'_>,
    landlock: &Enforced,
    network: NetworkMode,
) -> Result<Vec<&'static str>, String> {
    let mut passed = Vec::new();
    let mut refused = |name, found: Option<i32>, expected: Errno| {
        if found != Some(expected.raw_os_error()) {
            return Err(surprise(name, found, expected));
        }
        passed.push(name);
        Ok(())
    };
    if landlock.abi > 0 {
        let found = number(File::open(outside.canary));
        refused("open outside the grants", found, Errno::ACCESS)?;
    }
    if landlock.scopes.iter().any(|scope| scope == "signal") {
        let found = test_kill_process(outside.parent).err();
        let found = found.map(Errno::raw_os_error);
        refused("kill(parent)", found, Errno::PERM)?;
    }
    let expected = match network {
        NetworkMode::DeniedNetns | NetworkMode::HostPort => Some(Errno::CONNREFUSED),
        NetworkMode::PortOnly => Some(Errno::ACCESS),
        // No socket is made there, as another trial shows.
        NetworkMode::DeniedSeccomp | NetworkMode::Unrestricted => None,
    };
    if let Some((expected, port)) = expected.zip(outside.port) {
        let host = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let found = number(TcpStream::connect_timeout(&host, CONNECT_WAIT));
        refused("connect to the host's loopback", found, expected)?;
    }
    Ok(passed)
}

fn number<T>(done: io::Result<T>) -> Option<i32> {
    done.err()
        .map(|error| error.raw_os_error().unwrap_or_default())
}

fn surprise(name: &str, found: Option<i32>, expected: Errno) -> String {
    let found = match found.filter(|&number| number != 0) {
        Some(number) => format!("gave: {}", Errno::from_raw_os_error(number)),
        None => "succeeded, or never ended".to_owned(),
    };
    format!(
        "{name} was to be refused with: {expected}, and {found}: the confinement does not hold on this machine, so nothing is started"
    )
}

/// To the same machine.
const CONNECT_WAIT: Duration = Duration::from_secs(1);
