//! The helper: this executable again, which restricts itself and becomes the
//! program.
//!
//! It has one thread, because that is all that Landlock, filters and
//! namespaces act on. Its steps have one order: descriptors are closed before
//! anything is opened; the socket is connected before Unix sockets are denied;
//! namespaces give the capabilities that listeners need, so these come before
//! capabilities go; Landlock comes before the filters that deny what it needs;
//! what is in force is tried last. Each step takes something away, so that
//! whoever starts the helper by hand can only narrow what it executes.

mod capabilities;
mod descriptors;
mod execute;
mod limits;
mod listeners;
mod namespace;
pub(crate) mod netlink;
mod trials;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::{SocketAddrUnix, connect, sockopt::socket_peercred};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use thiserror::Error;

use self::listeners::Listeners;
use self::namespace::Entered;
use self::trials::Outside;
use super::door::CANARY;
use super::handshake::{self, GO, MAX_PACKET_BYTES, Said};
use super::landlock::{self, Enforced, LandlockError, Tcp};
use super::order::{DNS_PORT, Order, VARIABLE, Wanted};
use super::process::{self, Status};
use super::report::Report;
use super::seccomp::{self, Network, Plan, selftest};
use crate::wire::escape::Escaped;
use crate::wire::facts::{NetworkMode, Seccomp};

/// Why nothing was executed.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    /// The command line means nothing.
    #[error("{0}")]
    Usage(String),
    /// Something could not be put in force, and whoever called is told here.
    #[error("{0}")]
    Failed(String),
    /// The same, and the parent was told, or is gone.
    #[error("the parent was told why")]
    Told,
}

/// Restricts this process as it was ordered and executes the program. `args`
/// are those after the verb.
///
/// # Errors
/// When any step does not do what it should; then nothing was executed.
pub(crate) fn main(args: &[OsString]) -> Result<Infallible, Refusal> {
    let args = command_line(args)?;
    let status = Status::of_self()
        .map_err(|error| failed(format_args!("read /proc/self/status: {error}")))?;
    if status.threads != 1 {
        return Err(failed("it has more than one thread"));
    }
    let order = Order::from_variable(std::env::var_os(VARIABLE).as_deref()).map_err(failed)?;
    descriptors::close_inherited()
        .map_err(|error| failed(format_args!("close inherited descriptors: {error}")))?;
    let parent = Parent::connect(&order)?;
    match confine(&order, args, &parent) {
        Err(Stop::Said(said)) => {
            // One that is gone needs no telling.
            let _ = parent.say(&said);
            Err(Refusal::Told)
        }
        Err(Stop::Gone) => Err(Refusal::Told),
        Ok(never) => match never {},
    }
}

/// The command behind `--`.
fn command_line(args: &[OsString]) -> Result<&[OsString], Refusal> {
    match args.split_first() {
        Some((dashes, command)) if dashes == "--" && !command.is_empty() => Ok(command),
        Some((flag, _)) if flag != "--" => Err(Refusal::Usage(format!(
            "__confine-exec takes no flags; put the child command after `--` (got `{}`)",
            Escaped(&flag.to_string_lossy())
        ))),
        _ => Err(Refusal::Usage(
            "__confine-exec requires a child command after `--`".to_owned(),
        )),
    }
}

/// Why the helper ends.
enum Stop {
    /// What the parent is told.
    Said(Said),
    /// The parent does not want it any more.
    Gone,
}

/// The connection to the parent.
struct Parent {
    connection: OwnedFd,
    pid: Pid,
}

impl Parent {
    /// Connects to the socket of the order, which must be the parent's own,
    /// and ties this process's life to its.
    fn connect(order: &Order) -> Result<Self, Refusal> {
        let path = &order.socket;
        let connected = SocketAddrUnix::new(path.as_str())
            .and_then(|address| {
                let connection = handshake::socket()?;
                connect(&connection, &address)?;
                Ok(connection)
            })
            .and_then(|connection| Ok((socket_peercred(&connection)?.pid, connection)));
        let (pid, connection) = connected.map_err(|error| {
            failed(format_args!(
                "the socket `{}` of {VARIABLE} cannot be connected to: {error}",
                Escaped(path)
            ))
        })?;
        let parent = Self { connection, pid };
        parent.hold_on_to()?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        parent
            .say(&Said::Hello { version })
            .map_err(|error| failed(format_args!("speak to the parent: {error}")))?;
        Ok(parent)
    }

    /// Dies when the parent does, and makes sure that it has not already.
    fn hold_on_to(&self) -> Result<(), Refusal> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| failed(format_args!("die with the parent: {error}")))?;
        match getppid() == Some(self.pid) {
            true => Ok(()),
            false => Err(failed(format_args!(
                "the socket of {VARIABLE} is not its parent's, or that has ended"
            ))),
        }
    }

    fn say(&self, said: &Said) -> std::io::Result<()> {
        handshake::say(&self.connection, said, &[])
    }
}

/// What was found on the way.
#[derive(Default)]
struct Found {
    namespaces: BTreeMap<String, u64>,
    gaps: Vec<String>,
    self_tests: Vec<String>,
}

/// Every step from the connection on.
fn confine(order: &Order, args: &[OsString], parent: &Parent) -> Result<Infallible, Stop> {
    let mut found = Found::default();
    check_limits(order, &mut found)?;
    limits::forbid_core_dumps().map_err(|error| stop(format_args!("limit core dumps: {error}")))?;
    let is_own = enter(order, parent, &mut found)?;
    limits::bound(&order.limits).map_err(|error| stop(format_args!("set limits: {error}")))?;
    capabilities::give_up().map_err(|error| stop(format_args!("drop capabilities: {error}")))?;
    let landlock = restrict(order, is_own)?;
    let plan = Plan {
        network: match (&order.network, is_own) {
            (_, true) => Network::Namespace,
            (Wanted::Denied, false) => Network::Denied,
            (Wanted::Hosts { .. }, false) => Network::PortOnly,
        },
        unix_sockets: order.profile.unix_sockets,
        metadata: order.metadata,
    };
    let seccomp = filter(order, &plan, &mut found)?;
    let network = network_mode(order, is_own, &landlock, seccomp.is_some(), &mut found);
    let outside = Outside {
        canary: &Path::new(&order.socket).with_file_name(CANARY),
        port: order.canary_port,
        parent: parent.pid,
    };
    let passed = trials::run(&outside, &landlock, network).map_err(stop)?;
    found
        .self_tests
        .extend(passed.into_iter().map(str::to_owned));
    // Some changes of credentials undo it.
    parent.hold_on_to().map_err(|_| Stop::Gone)?;
    let report = Report {
        landlock,
        seccomp,
        network,
        namespaces: found.namespaces,
        no_capabilities: capabilities::has_none()
            .map_err(|error| stop(format_args!("read capabilities: {error}")))?,
        no_new_privs: rustix::thread::no_new_privs()
            .map_err(|error| stop(format_args!("read no_new_privs: {error}")))?,
        gaps: found.gaps,
        self_tests: found.self_tests,
    };
    let ready = Said::Ready(Box::new(report));
    parent
        .say(&ready)
        .map_err(|error| stop(format_args!("report what is in force: {error}")))?;
    match handshake::receive(&parent.connection) {
        Ok(packet) if packet.bytes == GO => {}
        _ => return Err(Stop::Gone),
    }
    parent.say(&Said::Executing).map_err(|_| Stop::Gone)?;
    Err(stop(execute::execute(&order.profile, args)))
}

/// A limit that the kernel does not hold this user to is a gap.
fn check_limits(order: &Order, found: &mut Found) -> Result<(), Stop> {
    if order.limits.processes.is_none() || limits::counts_processes() {
        return Ok(());
    }
    if !order.profile.best_effort {
        return Err(stop(
            "--max-procs does not bind root, whose processes the kernel does not count; run aegis as another user, leave it out, or give --best-effort",
        ));
    }
    found.gaps.push("processes".to_owned());
    Ok(())
}

/// Goes into namespaces if that is ordered, and hands listeners over. Whether
/// it did.
fn enter(order: &Order, parent: &Parent, found: &mut Found) -> Result<bool, Stop> {
    if !order.namespace {
        return Ok(false);
    }
    let Entered { has_ipv6 } = namespace::enter(&order.network)
        .map_err(|refused| Stop::Said(Said::NoNamespace(refused)))?;
    found.namespaces = process::namespaces("self")
        .map_err(|error| stop(format_args!("read /proc/self/ns: {error}")))?;
    if let Wanted::Hosts {
        ports,
        proxy_port,
        name_servers,
    } = &order.network
    {
        let listeners =
            Listeners::bind(ports, *proxy_port, name_servers, has_ipv6).map_err(stop)?;
        let descriptors = listeners.descriptors();
        handshake::say(&parent.connection, &Said::Sockets, &descriptors)
            .map_err(|error| stop(format_args!("hand the sockets over: {error}")))?;
    }
    Ok(true)
}

fn restrict(order: &Order, is_own: bool) -> Result<Enforced, Stop> {
    let mut dialled = Vec::new();
    let tcp = match (&order.network, is_own) {
        // Its own loopback is all that there is.
        (_, true) => Tcp::LeftAlone,
        (Wanted::Denied, false) => Tcp::Denied,
        (Wanted::Hosts { ports, .. }, false) => {
            dialled.extend_from_slice(ports);
            // Names are asked for over TCP, as UDP is denied.
            dialled.push(DNS_PORT);
            Tcp::Ports(&dialled)
        }
    };
    landlock::restrict(&order.profile, tcp).map_err(|error| match &error {
        LandlockError::Path { error: io, .. }
            if io.kind() == std::io::ErrorKind::PermissionDenied
                && rustix::process::geteuid().is_root() =>
        {
            stop(format_args!(
                "{error} (what is confined has no privileges of root, so its owner or mode must allow it)"
            ))
        }
        _ => stop(error),
    })
}

fn filter(order: &Order, plan: &Plan, found: &mut Found) -> Result<Option<Seccomp>, Stop> {
    let applied = seccomp::filters(plan).and_then(|filters| filters.apply().map(|()| filters));
    let filters = match applied {
        Ok(filters) => filters,
        Err(_) if order.profile.best_effort => {
            found.gaps.push("system_calls".to_owned());
            return Ok(None);
        }
        Err(error) => {
            return Err(stop(format_args!(
                "{error}; or give --best-effort to run without"
            )));
        }
    };
    let passed = selftest::self_test(plan).map_err(stop)?;
    let names = passed.names().iter().map(|&name| name.to_owned());
    found.self_tests.extend(names);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Some(Seccomp {
        digest: filters.digest(),
        filters: count(filters.count()),
        instructions: count(filters.count_instructions()),
    }))
}

/// What the network can be called. Ports alone are fenced by Landlock and
/// filters together: without either, other protocols or ports are open.
fn network_mode(
    order: &Order,
    is_own: bool,
    landlock: &Enforced,
    is_filtered: bool,
    found: &mut Found,
) -> NetworkMode {
    let fences_ports = landlock.net.iter().any(|right| right == "connect_tcp");
    let mode = match (&order.network, is_own) {
        (Wanted::Denied, true) => NetworkMode::DeniedNetns,
        (Wanted::Hosts { .. }, true) => NetworkMode::HostPort,
        (Wanted::Denied, false) if is_filtered => NetworkMode::DeniedSeccomp,
        (Wanted::Hosts { .. }, false) if is_filtered && fences_ports => NetworkMode::PortOnly,
        (_, false) => NetworkMode::Unrestricted,
    };
    match mode {
        NetworkMode::PortOnly => found.gaps.push("hosts".to_owned()),
        NetworkMode::Unrestricted => found.gaps.push("network".to_owned()),
        _ => {}
    }
    mode
}

fn failed(text: impl Display) -> Refusal {
    Refusal::Failed(text.to_string())
}

fn stop(text: impl Display) -> Stop {
    let mut text = text.to_string();
    // A message of the handshake is bounded, and quotes may double it.
    let most = text.floor_char_boundary(MAX_PACKET_BYTES / 4);
    text.truncate(most);
    Stop::Said(Said::Failed { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(args: &[&str]) -> String {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        match command_line(&args) {
            Err(Refusal::Usage(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_stands_behind_dashes_and_nothing_before_them() {
        let required = "__confine-exec requires a child command after `--`";
        assert_eq!(usage(&[]), required);
        assert_eq!(usage(&["--"]), required);
        assert_eq!(
            usage(&["--x\n", "--", "a"]),
            "__confine-exec takes no flags; put the child command after `--` (got `--x\\u{a}`)"
        );
        let args = ["--", "a", "--"].map(OsString::from);
        assert_eq!(command_line(&args).unwrap(), ["a", "--"]);
    }
}
