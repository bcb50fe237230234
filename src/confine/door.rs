//! The parent's side of the handshake: a private socket, one helper let in,
//! and a word that lets it go.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrUnix, SocketFlags, accept_with, bind, listen};

use super::handed::{self, Sockets};
use super::handshake::{self, GO, Packet, Said};
use super::order::{Order, Wanted};
use super::private::{self, Directory};
use super::profile::Profile;
use super::report::Report;
use super::start_error::StartError;
use super::watch::{Seen, Watch};
use crate::wire::escape::EscapedPath;

/// A private directory with a listening socket. Gone when dropped.
#[derive(Debug)]
pub(crate) struct Door {
    path: String,
    listener: OwnedFd,
    /// Listened on, never answered.
    _canary: Option<TcpListener>,
    canary_port: Option<u16>,
    directory: Directory,
}

/// A helper that is restricted, and waits. Dropped, it ends without having
/// executed anything.
#[derive(Debug)]
pub(crate) struct Waiting {
    line: Line,
    report: Report,
    sockets: Option<Sockets>,
}

impl Door {
    /// Makes the directory, outside of all that `profile` grants, and listens
    /// there; and on a port of 127.0.0.1 that `network` does not allow.
    ///
    /// # Errors
    /// When there is no place for it, or no socket may be made.
    pub(crate) fn open(profile: &Profile, network: &Wanted) -> Result<Self, StartError> {
        let canary = canary(network).map_err(StartError::Door)?;
        // No place helps where there may be no socket.
        let listener = handshake::socket().map_err(|error| StartError::Door(error.into()))?;
        let mut tried = Vec::new();
        for place in places() {
            match Self::in_place(&place, profile, &listener) {
                Ok((directory, path)) => {
                    return Ok(Self {
                        path,
                        listener,
                        canary_port: canary.as_ref().map(|&(_, port)| port),
                        _canary: canary.map(|(listener, _)| listener),
                        directory,
                    });
                }
                Err(error) => tried.push(format!("`{}`: {error}", EscapedPath(&place))),
            }
        }
        Err(StartError::Place(tried.join(", ")))
    }

    fn in_place(
        place: &Path,
        profile: &Profile,
        listener: &OwnedFd,
    ) -> io::Result<(Directory, String)> {
        let place = place.canonicalize()?;
        if profile
            .rules
            .iter()
            .any(|rule| place.starts_with(&rule.path))
        {
            return Err(io::Error::other("the server may reach it"));
        }
        let directory = private::directory_in(&place)?;
        std::fs::write(directory.path().join(CANARY), "")?;
        let path = directory.path().join(DOOR);
        let text = path.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        bind(listener, &SocketAddrUnix::new(text)?)?;
        listen(listener, 1)?;
        Ok((directory, text.to_owned()))
    }

    /// The path of the socket.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The port of 127.0.0.1 that no confined helper may reach, where there
    /// is such an address.
    pub(super) fn canary_port(&self) -> Option<u16> {
        self.canary_port
    }

    /// Waits until the helper of this process id, started by `order` and not
    /// reaped, is restricted and has reported: at most [`HANDSHAKE_WAIT`], and
    /// no longer than it lives. The door stays open for another try.
    ///
    /// # Errors
    /// When it does not come, fails, or is not what it says.
    pub(crate) fn admit(&self, order: &Order, pid: u32) -> Result<Waiting, StartError> {
        let watch = Watch::new(pid)?;
        let deadline = Instant::now() + HANDSHAKE_WAIT;
        if watch.wait(&self.listener, deadline)? == Seen::Exited {
            return Err(watch.ended());
        }
        let connection = accept_with(&self.listener, SocketFlags::CLOEXEC)
            .map_err(|error| StartError::Door(error.into()))?;
        check_peer(&connection, pid)?;
        let line = Line { connection, watch };
        match line.hear(deadline)? {
            (Said::Hello { version }, _) if version == env!("CARGO_PKG_VERSION") => {}
            (Said::Hello { .. }, _) => return Err(StartError::Replaced),
            (said, _) => return Err(unexpected(said)),
        }
        let (mut said, mut packet) = line.hear(deadline)?;
        let mut sockets = None;
        if said == Said::Sockets
            && let Wanted::Hosts {
                ports, proxy_port, ..
            } = &order.network
        {
            sockets = Some(handed::take(packet.descriptors, ports, *proxy_port)?);
            (said, packet) = line.hear(deadline)?;
        }
        let Said::Ready(report) = said else {
            return Err(unexpected(said));
        };
        if !packet.descriptors.is_empty() {
            return Err(StartError::Protocol);
        }
        report
            .check(order, pid, sockets.is_some())
            // Of one that has died meanwhile that says more.
            .map_err(|error| line.watch.ended_if_gone().unwrap_or(error))?;
        Ok(Waiting {
            line,
            report: *report,
            sockets,
        })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // By name, so that the directory is empty: see there.
        for name in [DOOR, CANARY] {
            let _ = std::fs::remove_file(self.directory.path().join(name));
        }
    }
}

impl Waiting {
    /// What is in force.
    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    /// The sockets to answer; once, and only where hosts are reached through
    /// aegis.
    pub(crate) fn take_sockets(&mut self) -> Option<Sockets> {
        self.sockets.take()
    }

    /// Lets the helper execute the program, and waits until it has, at most
    /// [`HANDSHAKE_WAIT`]. A helper that is killed while it executes the
    /// program is not told from a program that is killed in its first moment.
    ///
    /// # Errors
    /// When it could not be executed.
    pub(crate) fn go(self) -> Result<(), StartError> {
        let deadline = Instant::now() + HANDSHAKE_WAIT;
        handshake::send(&self.line.connection, GO, &[])
            .map_err(|_| self.line.watch.ended_by(deadline))?;
        match self.line.hear(deadline)? {
            (Said::Executing, _) => {}
            (said, _) => return Err(unexpected(said)),
        }
        match self.line.receive(deadline)? {
            Some(packet) => match self.line.read(&packet)? {
                Said::Failed { text } => Err(StartError::Executed(text)),
                said => Err(unexpected(said)),
            },
            None => Ok(()),
        }
    }
}

/// The connection to a helper.
#[derive(Debug)]
struct Line {
    connection: OwnedFd,
    watch: Watch,
}

impl Line {
    /// What is said next.
    fn hear(&self, deadline: Instant) -> Result<(Said, Packet), StartError> {
        match self.receive(deadline)? {
            Some(packet) => Ok((self.read(&packet)?, packet)),
            None => Err(self.watch.ended_by(deadline)),
        }
    }

    fn read(&self, packet: &Packet) -> Result<Said, StartError> {
        serde_json::from_slice(&packet.bytes).map_err(|_| StartError::Protocol)
    }

    /// The next packet, or that there will be none.
    fn receive(&self, deadline: Instant) -> Result<Option<Packet>, StartError> {
        match self.watch.wait(&self.connection, deadline)? {
            Seen::Exited => Ok(None),
            Seen::Readable => match handshake::receive(&self.connection) {
                Ok(packet) if packet.bytes.is_empty() => Ok(None),
                Ok(packet) => Ok(Some(packet)),
                // It died with something of ours unread.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    Err(self.watch.ended_by(deadline))
                }
                Err(error) if error.raw_os_error().is_some() => Err(StartError::Door(error)),
                Err(_) => Err(StartError::Protocol),
            },
        }
    }
}

/// The directory is private, and so is the socket; nobody but this very
/// helper has business here.
fn check_peer(connection: impl AsFd, pid: u32) -> Result<(), StartError> {
    let peer = socket_peercred(connection).map_err(|error| StartError::Door(error.into()))?;
    let is_helper = u32::try_from(peer.pid.as_raw_nonzero().get()) == Ok(pid)
        && peer.uid == rustix::process::geteuid();
    match is_helper {
        true => Ok(()),
        false => Err(StartError::Forged {
            pid: peer.pid.as_raw_nonzero().get(),
        }),
    }
}

fn unexpected(said: Said) -> StartError {
    match said {
        Said::Failed { text } => StartError::Helper(text),
        Said::NoNamespace(refused) => StartError::Namespace(refused),
        Said::Hello { .. } | Said::Sockets | Said::Ready(_) | Said::Executing => {
            StartError::Protocol
        }
    }
}

/// A listener on a port that is not among the allowed ones, where the helper
/// would rightly reach one. None where there is no loopback to be reached.
fn canary(network: &Wanted) -> io::Result<Option<(TcpListener, u16)>> {
    let mut held = Vec::new();
    for _ in 0..CANARY_TRIES {
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => return Ok(None),
            bound => bound?,
        };
        let port = listener.local_addr()?.port();
        let is_allowed = match network {
            Wanted::Denied => false,
            Wanted::Hosts {
                ports, proxy_port, ..
            } => ports.contains(&port) || port == *proxy_port,
        };
        if !is_allowed {
            return Ok(Some((listener, port)));
        }
        // Held, so that the next try finds another.
        held.push(listener);
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Where the directory may be made, the best first. The path of a socket is
/// short (unix(7)), and the operator's choice may be long, or granted.
fn places() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut places: Vec<_> = runtime
        .filter(|path| path.is_absolute())
        .into_iter()
        .chain([private::temporary_parent()])
        .collect();
    for usual in ["/tmp", "/var/tmp", "/dev/shm", "/run"].map(PathBuf::from) {
        if !places.contains(&usual) {
            places.push(usual);
        }
    }
    places
}

/// How long a helper may take to be ready, and to execute the program.
pub(crate) const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);

/// Beside the socket, a file that nothing grants.
pub(super) const CANARY: &str = "canary";

const DOOR: &str = "door";

const CANARY_TRIES: usize = 64;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::confine::preset::Access;
    use crate::confine::profile::{Origin, Rule};
    use crate::grant::root::Kind;

    fn profile(granted: &[&Path]) -> Profile {
        let rule = |path: &&Path| Rule {
            path: path.to_str().unwrap().to_owned(),
            access: Access::Read,
            kind: Kind::Directory,
            id: None,
            origin: Origin::User,
            why: "a test".to_owned(),
        };
        Profile {
            program: "/bin/true".to_owned(),
            rules: granted.iter().map(rule).collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn a_door_is_private_lies_outside_of_grants_and_leaves_nothing() {
        let first = Door::open(&profile(&[]), &Wanted::Denied).unwrap();
        let directory = Path::new(first.path()).parent().unwrap().to_owned();
        let mode = directory.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(directory.join(CANARY).exists());
        let place = directory.parent().unwrap();
        let second = Door::open(&profile(&[place]), &Wanted::Denied).unwrap();
        assert!(!Path::new(second.path()).starts_with(place));
        drop(first);
        assert!(!directory.exists());
        let error = Door::open(&profile(&[Path::new("/")]), &Wanted::Denied).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("grant less"), "{text}");
        // Each place once, and why not there.
        assert_eq!(
            text.matches("`/tmp`: the server may reach it").count(),
            1,
            "{text}"
        );
    }

    #[test]
    fn the_canary_listens_where_nothing_is_allowed() {
        let allowed = |ports| Wanted::Hosts {
            ports,
            proxy_port: 3128,
            name_servers: Vec::new(),
        };
        let (_held, port) = canary(&allowed(Vec::new())).unwrap().unwrap();
        let all_but_few = (1..=u16::MAX).filter(|port| port % 4 != 1).collect();
        let (_held, other) = canary(&allowed(all_but_few)).unwrap().unwrap();
        assert_eq!(other % 4, 1);
        assert_ne!(port, other);
        canary(&allowed((1..=u16::MAX).collect())).unwrap_err();
    }
}
