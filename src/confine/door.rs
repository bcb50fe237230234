//! The parent's side of the handshake: a private socket, one helper let in,
//! and a word that lets it go.

use std::ffi::OsString;
use std::net::{TcpListener, UdpSocket};
use std::process::Command;

use thiserror::Error;

use super::order::{Order, OrderError};
use super::report::Report;

/// A private directory with a listening socket. Gone when dropped.
pub(crate) struct Door {
    path: String,
}

/// A helper that is restricted, and waits. Dropped, it ends without having
/// executed anything.
pub(crate) struct Waiting {
    report: Report,
    sockets: Option<Sockets>,
}

/// Sockets in the helper's network namespace, that this process answers.
pub(crate) struct Sockets {
    /// On 127.0.0.1, for the proxy.
    pub(crate) proxy: TcpListener,
    /// One per allowed port, in their order, of both families where the
    /// kernel has both.
    pub(crate) direct: Vec<TcpListener>,
    /// For names over TCP.
    pub(crate) dns_tcp: TcpListener,
    /// For names over UDP, one per address.
    pub(crate) dns_udp: Vec<UdpSocket>,
}

/// Why no program was started.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    /// What was asked for cannot be asked of a helper.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The helper never came, or never got ready.
    #[error("the helper was not ready in time")]
    Timeout,
}

impl Door {
    /// Makes the directory and listens.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn open() -> Result<Self, StartError> {
        Err(StartError::Timeout)
    }

    /// The path of the socket.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The port of 127.0.0.1 that no confined helper may reach.
    pub(crate) fn canary_port(&self) -> u16 {
        0
    }

    /// Waits until the helper of this process id is restricted and has
    /// reported. The door stays open for another try.
    ///
    /// # Errors
    /// When it does not come, fails, or is not what it says.
    pub(crate) fn admit(&self, _pid: u32) -> Result<Waiting, StartError> {
        Err(StartError::Timeout)
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

    /// Lets the helper execute the program, and waits until it has.
    ///
    /// # Errors
    /// When it could not be executed.
    pub(crate) fn go(self) -> Result<(), StartError> {
        Err(StartError::Timeout)
    }
}

/// The command that starts a helper, which will execute `args`: the whole
/// command, the program first and as it was typed. Pipes and the like are the
/// caller's to set.
///
/// # Errors
/// When this executable has no path any more, or the order does not fit.
pub(crate) fn command(order: &Order, args: &[OsString]) -> Result<Command, StartError> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("__confine-exec").arg("--").args(args);
    command.env(super::order::VARIABLE, order.to_variable()?);
    Ok(command)
}
