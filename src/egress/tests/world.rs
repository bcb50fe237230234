//! An egress with everything around it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect as begin_to_connect, getsockname, listen,
    socket_with,
};

use crate::egress::{Egress, Ledger, Limits, Rules, Sockets, Upstream};
use crate::net::allow::{Allow, Target};
use crate::net::resolve::Resolver;
use crate::wire::facts::Destination;

/// What is asked for.
#[derive(Default)]
pub(super) struct Setup {
    allow: Vec<String>,
    hosts: String,
    hosts_path: Option<PathBuf>,
    direct: Vec<TcpListener>,
    upstream: Option<Upstream>,
    limits: Limits,
}

/// A running egress.
pub(super) struct World {
    pub(super) egress: Egress,
    pub(super) proxy: SocketAddr,
    pub(super) dns_tcp: SocketAddr,
    pub(super) dns_udp: SocketAddr,
    told: Arc<Mutex<Vec<String>>>,
    _hosts: tempfile::NamedTempFile,
}

/// A server of a test; each connection has a thread.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

pub(super) fn allowing<T: ToString>(entries: impl IntoIterator<Item = T>) -> Setup {
    Setup {
        allow: entries.into_iter().map(|entry| entry.to_string()).collect(),
        hosts: HOSTS.to_owned(),
        ..Setup::default()
    }
}

impl Setup {
    pub(super) fn direct(mut self, listener: TcpListener) -> Self {
        self.direct.push(listener);
        self
    }

    pub(super) fn upstream(mut self, url: &str) -> Self {
        self.upstream = Some(url.parse().unwrap());
        self
    }

    pub(super) fn hosts_path(mut self, path: PathBuf) -> Self {
        self.hosts_path = Some(path);
        self
    }

    pub(super) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(super) fn open(self) -> World {
        let mut hosts = tempfile::NamedTempFile::new().unwrap();
        hosts.write_all(self.hosts.as_bytes()).unwrap();
        let any = (Ipv4Addr::LOCALHOST, 0);
        let sockets = Sockets {
            proxy: TcpListener::bind(any).unwrap(),
            direct: self.direct,
            dns_tcp: TcpListener::bind(any).unwrap(),
            dns_udp: vec![UdpSocket::bind(any).unwrap()],
        };
        let (proxy, dns_tcp, dns_udp) = (
            sockets.proxy.local_addr().unwrap(),
            sockets.dns_tcp.local_addr().unwrap(),
            sockets.dns_udp[0].local_addr().unwrap(),
        );
        let rules = Rules {
            allow: self
                .allow
                .iter()
                .map(|entry| Allow::parse(entry).unwrap())
                .collect(),
            // No name server: what the file lacks is not found.
            resolver: Resolver::with_files(
                self.hosts_path.as_deref().unwrap_or(hosts.path()),
                "/dev/null",
            ),
            upstream: self.upstream,
            limits: self.limits,
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let ledger = Ledger::new(move |denial| heard.lock().unwrap().push(denial.to_string()));
        World {
            egress: Egress::start_placing(rules, sockets, ledger, place).unwrap(),
            proxy,
            dns_tcp,
            dns_udp,
            told,
            _hosts: hosts,
        }
    }
}

/// 1.1.1.N is at 127.0.0.N, every other address of IPv6 at `::1`.
fn place(target: Target) -> SocketAddr {
    let address = target.socket_address();
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.octets()[..3] == [1, 1, 1] => {
            Ipv4Addr::new(127, 0, 0, ip.octets()[3]).into()
        }
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        ip @ IpAddr::V4(_) => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl World {
    /// A client of the proxy.
    pub(super) fn client(&self) -> TcpStream {
        connect(self.proxy)
    }

    /// Sends `request` to the proxy; all that comes back until the end.
    pub(super) fn ask(&self, request: &str) -> String {
        let mut client = self.client();
        client.write_all(request.as_bytes()).unwrap();
        text_to_end(&mut client)
    }

    /// A tunnel through the proxy.
    pub(super) fn tunnel(&self, to: &str) -> TcpStream {
        let mut client = self.client();
        write!(client, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").unwrap();
        let head = read_head(&mut client);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        client
    }

    pub(super) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    /// The account of one destination, when its connections have ended.
    pub(super) fn settled(&self, host: &str, port: Option<u16>) -> Destination {
        let ledger = self.egress.ledger();
        eventually(|| ledger.mark_is_quiet());
        let total = ledger.total();
        let found = total
            .destinations
            .iter()
            .find(|destination| destination.host == host && destination.port == port);
        found
            .unwrap_or_else(|| panic!("{host} is not in {total:?}"))
            .clone()
    }
}

impl Ledger {
    /// Whether no connection is open.
    pub(super) fn mark_is_quiet(&self) -> bool {
        self.since(&self.mark()).is_none()
    }
}

impl Server {
    pub(super) fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), serve)
    }

    pub(super) fn on(
        listener: TcpListener,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let serve = Arc::new(serve);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let (serve, stream) = (Arc::clone(&serve), patient(stream.unwrap()));
                thread::spawn(move || serve(stream));
            }
        });
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }

    /// Sends back what it gets, and ends when the client does.
    pub(super) fn echo() -> Self {
        Self::start(echo)
    }

    /// Answers each request with itself, head and body, as text.
    pub(super) fn mirror() -> Self {
        Self::start(|mut stream| {
            let head = read_head(&mut stream);
            let length = field(&head, "content-length").map(|length| length.parse().unwrap());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).unwrap();
            if field(&head, "transfer-encoding").is_some() {
                while !body.ends_with(b"0\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    body.push(byte[0]);
                }
            }
            let said = head + &String::from_utf8(body).unwrap();
            answer(&mut stream, "HTTP/1.1 200 OK", &said);
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

pub(super) fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(read) = stream.read(&mut buffer) {
        if read == 0 || stream.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

pub(super) fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    // A client that has left is none of a server's concern.
    let _ = write!(
        stream,
        "{status}\r\nContent-Length: {length}\r\nKeep-Alive: timeout=5\r\n\
         Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n{body}"
    );
}

/// The value of a header field.
pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(own, _)| own.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// With its empty line; whatever was sent, if the end comes before.
pub(super) fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

pub(super) fn text_to_end(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// A test that hangs fails after a while.
pub(super) fn connect(address: SocketAddr) -> TcpStream {
    patient(TcpStream::connect(address).unwrap())
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Whether the connection was reset, now or while it is read.
pub(super) fn is_reset(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
            assert!(rest.is_empty(), "{rest:?}");
            true
        }
    }
}

pub(super) fn eventually(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never came to be");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A port where nobody listens, and nobody else can while it is held.
pub(super) struct Closed(OwnedFd);

impl Closed {
    pub(super) fn at(ip: &str, port: u16) -> Option<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        let address: SocketAddr = format!("{ip}:{port}").parse().unwrap();
        bind(&socket, &address).ok()?;
        Some(Self(socket))
    }

    pub(super) fn port(&self) -> u16 {
        self.address().port()
    }

    /// From now on somebody listens.
    pub(super) fn open(self) -> TcpListener {
        listen(&self.0, 16).unwrap();
        self.0.into()
    }

    /// From now on who knocks hears nothing: the queue is full.
    pub(super) fn silence(self) -> Silent {
        listen(&self.0, 0).unwrap();
        let knocks = (0..4).map(|_| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let client = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
            // In progress, for good.
            let _ = begin_to_connect(&client, &self.address());
            client
        });
        Silent {
            port: self.port(),
            _knocks: knocks.collect(),
            _closed: self.0.try_clone().unwrap(),
        }
    }

    fn address(&self) -> SocketAddr {
        getsockname(&self.0).unwrap().try_into().unwrap()
    }
}

/// Silent for as long as it is held.
pub(super) struct Silent {
    pub(super) port: u16,
    _knocks: Vec<OwnedFd>,
    _closed: OwnedFd,
}

/// Names that lead to public addresses, and some that lead elsewhere.
const HOSTS: &str = "\
1.1.1.1 allowed.test other.test a.wild.test a.b.wild.test wild.test xn--bcher-kva.test\n\
10.0.0.5 private.test both.test\n\
1.1.1.1 both.test\n\
127.0.0.1 loop.test\n\
169.254.169.254 metadata.test\n\
1.1.1.9 silent-first.test\n\
1.1.1.1 silent-first.test\n";

pub(super) const PATIENCE: Duration = Duration::from_secs(30);
