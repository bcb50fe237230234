//! Starts helpers from simple inputs, as `wrap` does from a command line.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command};

use crate::confine::door::{Door, Waiting};
use crate::confine::order::{Order, Wanted};
use crate::confine::preset::Access;
use crate::confine::profile::{Origin, Profile, Rule};
use crate::confine::seccomp::Metadata;
use crate::confine::start::{self, Started};
use crate::confine::start_error::StartError;
use crate::grant::root;
use crate::wire::facts::Limits;

/// What a helper will be ordered.
pub struct Asked {
    profile: Profile,
    network: Wanted,
    limits: Limits,
    namespace: bool,
}

/// A helper that can be started, and the door that it will come to.
pub struct Ordered {
    door: Door,
    order: Order,
}

/// A helper that is restricted, and waits.
pub struct Ready(Waiting);

/// The proxy's socket, those of the ports, those of names.
pub type Handed = (TcpListener, Vec<TcpListener>, TcpListener, Vec<UdpSocket>);

impl Asked {
    /// To execute a program, by its absolute path, that may reach nothing.
    pub fn of(program: &str) -> Self {
        Self {
            profile: Profile {
                program: program.to_owned(),
                ..Profile::default()
            },
            network: Wanted::Denied,
            limits: Limits::default(),
            namespace: true,
        }
    }

    /// That it may read and execute what a path leads to.
    ///
    /// # Errors
    /// When nothing is there.
    pub fn read(self, path: &str) -> io::Result<Self> {
        self.grant(path, Access::ReadExecute)
    }

    /// That it may write there.
    ///
    /// # Errors
    /// When nothing is there.
    pub fn write(self, path: &str) -> io::Result<Self> {
        self.grant(path, Access::ReadWrite)
    }

    fn grant(mut self, path: &str, access: Access) -> io::Result<Self> {
        let path = Path::new(path).canonicalize()?;
        let (id, kind) = root::identify(&root::open(&path, rustix::fs::OFlags::empty())?)?;
        self.profile.rules.push(Rule {
            path: path.to_string_lossy().into_owned(),
            access,
            kind,
            id: Some(id),
            origin: Origin::User,
            why: "a test".to_owned(),
        });
        Ok(self)
    }

    /// That hosts are reached, through sockets that are handed over.
    pub fn hosts(mut self, ports: &[u16], proxy_port: u16, name_servers: &[IpAddr]) -> Self {
        self.network = Wanted::Hosts {
            ports: ports.to_vec(),
            proxy_port,
            name_servers: name_servers.to_vec(),
        };
        self
    }

    /// That less is borne.
    pub fn best_effort(mut self) -> Self {
        self.profile.best_effort = true;
        self
    }

    /// That namespaces are not tried.
    pub fn without_namespace(mut self) -> Self {
        self.namespace = false;
        self
    }

    /// The most processes, bytes of memory and open files.
    pub fn limits(mut self, processes: Option<u64>, memory: u64, files: u64) -> Self {
        self.limits = Limits {
            processes,
            memory_bytes: Some(memory),
            files: Some(files),
        };
        self
    }

    /// That a variable is kept.
    pub fn keep(mut self, name: &str) -> Self {
        self.profile.kept_variables.push(name.to_owned());
        self
    }

    /// That a variable is set.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        let pair = (name.to_owned(), value.to_owned());
        self.profile.set_variables.push(pair);
        self
    }

    /// Opens a door for it.
    ///
    /// # Errors
    /// The text for the operator.
    pub fn open(self) -> Result<Ordered, String> {
        let opened = Door::open(&self.profile, &self.network).and_then(|door| {
            let order = Order::new(
                &door,
                self.profile,
                self.network,
                Metadata::Denied,
                self.limits,
            )?;
            Ok(Ordered { door, order })
        });
        let mut opened = opened.map_err(|error| error.to_string())?;
        opened.order.namespace = self.namespace;
        Ok(opened)
    }
}

impl Ordered {
    /// Where the helper will connect to.
    pub fn socket(&self) -> &str {
        &self.order.socket
    }

    /// The command that starts it.
    ///
    /// # Errors
    /// The text for the operator.
    pub fn command(&self, executable: &Path, args: &[&str]) -> Result<Command, String> {
        start::command(executable, &self.order, &owned(args)).map_err(|e| e.to_string())
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// The text for the operator.
    pub fn admit(&self, pid: u32) -> Result<Ready, String> {
        let admitted = self.door.admit(&self.order, pid);
        admitted.map(Ready).map_err(|error| error.to_string())
    }

    /// Starts it, once more without namespaces if need be.
    ///
    /// # Errors
    /// The text for the operator.
    pub fn start(
        &self,
        executable: &Path,
        args: &[&str],
        mut spawn: impl FnMut(Command) -> io::Result<Child>,
    ) -> Result<(Child, Ready), String> {
        let spawn = |command| spawn(command).map(Spawned).map_err(StartError::Door);
        let started = start::start_as(executable, &self.door, &self.order, &owned(args), spawn);
        let (spawned, waiting) = started.map_err(|error| error.to_string())?;
        Ok((spawned.0, Ready(waiting)))
    }
}

impl Ready {
    /// What it reported, as JSON.
    ///
    /// # Errors
    /// Never.
    pub fn report(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self.0.report())
    }

    /// The sockets that it handed over.
    pub fn sockets(&mut self) -> Option<Handed> {
        let sockets = self.0.take_sockets()?;
        Some((
            sockets.proxy,
            sockets.direct,
            sockets.dns_tcp,
            sockets.dns_udp,
        ))
    }

    /// Lets it execute the program.
    ///
    /// # Errors
    /// The text for the operator.
    pub fn go(self) -> Result<(), String> {
        self.0.go().map_err(|error| error.to_string())
    }
}

struct Spawned(Child);

impl Started for Spawned {
    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn discard(mut self) {
        // One that has ended already is only reaped.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn owned(args: &[&str]) -> Vec<OsString> {
    args.iter().map(OsString::from).collect()
}
