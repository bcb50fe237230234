//! Those whom a probe could talk to, if nothing stood in the way.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, socket_with,
};

/// Each answers a byte with a byte, and counts.
pub(super) struct Peers {
    allowed: u16,
    forbidden: u16,
    datagrams: u16,
    sixth: Option<u16>,
    abstract_name: String,
    inbox: UnixDatagram,
    /// Listened on, and only looked at afterwards.
    packets: OwnedFd,
    reached: Vec<(&'static str, Arc<AtomicU32>)>,
}

impl Peers {
    /// In the directory `base`, as far as they have a place.
    pub(super) fn start(base: &Path) -> Self {
        let mut reached = Vec::new();
        let mut counter = |name| {
            let count = Arc::new(AtomicU32::new(0));
            reached.push((name, Arc::clone(&count)));
            count
        };
        let local = (Ipv4Addr::LOCALHOST, 0);
        let allowed = TcpListener::bind(local).unwrap();
        let forbidden = TcpListener::bind(local).unwrap();
        let port = port_of(&allowed);
        // Another host, that listens on the very port.
        let other = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), port)).unwrap();
        let sixth = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
        // The same number, so that a rule about ports alone would let it pass.
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))
            .or_else(|_| UdpSocket::bind(local))
            .unwrap();
        let abstract_name = base.file_name().unwrap().to_str().unwrap().to_owned();
        let by_name = UnixAddr::from_abstract_name(&abstract_name).unwrap();
        let peers = Self {
            allowed: port,
            forbidden: port_of(&forbidden),
            datagrams: datagrams.local_addr().unwrap().port(),
            sixth: sixth.as_ref().map(port_of),
            abstract_name,
            inbox: inbox(base),
            packets: packets(base),
            reached: Vec::new(),
        };
        serve(allowed, None);
        serve(other, Some(counter("another host")));
        serve(forbidden, Some(counter("a TCP peer")));
        if let Some(sixth) = sixth {
            serve(sixth, Some(counter("a TCP peer by IPv6")));
        }
        echo(datagrams, counter("a UDP peer"));
        let count = counter("an abstract socket");
        answer(UnixListener::bind_addr(&by_name).unwrap(), count);
        let by_path = base.join(STREAM);
        let count = counter("a socket by path");
        answer(UnixListener::bind(&by_path).unwrap(), count);
        open_to_all(&by_path);
        Self { reached, ..peers }
    }

    /// Nobody was reached yet.
    pub(super) fn set(&self) {
        for (_, count) in &self.reached {
            count.store(0, Ordering::SeqCst);
        }
        while self.inbox.recv(&mut [0]).is_ok() {}
        while accept(&self.packets).is_ok() {}
    }

    /// Who was reached, of those that nothing allows.
    pub(super) fn reached(&self) -> Vec<String> {
        let mut reached: Vec<String> = self
            .reached
            .iter()
            .filter(|(_, count)| count.load(Ordering::SeqCst) > 0)
            .map(|(name, _)| format!("{name} was reached"))
            .collect();
        if self.inbox.recv(&mut [0]).is_ok() {
            reached.push("a datagram socket was reached".into());
        }
        if accept(&self.packets).is_ok() {
            reached.push("a packet socket was reached".into());
        }
        reached
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let number = |port: u16| port.to_string();
        text.replace("{allowed}", &number(self.allowed))
            .replace("{forbidden}", &number(self.forbidden))
            .replace("{datagrams}", &number(self.datagrams))
            .replace("{sixth}", &number(self.sixth.unwrap_or(self.forbidden)))
            .replace("{abstract}", &self.abstract_name)
    }
}

fn port_of(listener: &TcpListener) -> u16 {
    listener.local_addr().as_ref().map_or(0, SocketAddr::port)
}

fn inbox(base: &Path) -> UnixDatagram {
    let path = base.join(INBOX);
    let inbox = UnixDatagram::bind(&path).unwrap();
    inbox.set_nonblocking(true).unwrap();
    open_to_all(&path);
    inbox
}

fn packets(base: &Path) -> OwnedFd {
    let path = base.join(PACKETS);
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let packets = socket_with(family, kind, flags, None).unwrap();
    bind(&packets, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&packets, 1).unwrap();
    open_to_all(&path);
    packets
}

fn open_to_all(path: &Path) {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
}

fn serve(listener: TcpListener, count: Option<Arc<AtomicU32>>) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if let Some(count) = &count {
                count.fetch_add(1, Ordering::SeqCst);
            }
            thread::spawn(move || {
                let _ = stream.read(&mut [0]);
                let _ = stream.write(b"y");
            });
        }
    });
}

fn answer(listener: UnixListener, count: Arc<AtomicU32>) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0]);
            let _ = stream.write(b"y");
        }
    });
}

fn echo(socket: UdpSocket, count: Arc<AtomicU32>) {
    thread::spawn(move || {
        while let Ok((_, from)) = socket.recv_from(&mut [0]) {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = socket.send_to(b"y", from);
        }
    });
}

const STREAM: &str = "stream";
const INBOX: &str = "inbox";
const PACKETS: &str = "packets";
