//! A name server of our own on the loopback, which answers as a test says.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{CLASS, Packet, ResourceRecord};

/// How a question came.
#[derive(Clone, Copy)]
pub(super) enum Via {
    Udp,
    Tcp,
}

/// Runs until it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

type Respond = dyn Fn(&[u8], Via, SocketAddr) -> Vec<Vec<u8>> + Send + Sync;

impl Server {
    /// Sends what `respond` makes of each question; over TCP the first only.
    pub(super) fn start(
        respond: impl Fn(&[u8], Via) -> Vec<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self::run(
            Arc::new(move |query: &[u8], via, _| respond(query, via)),
            false,
        )
    }

    /// The same, for what depends on who asked.
    pub(super) fn start_knowing_clients(
        respond: impl Fn(&[u8], SocketAddr) -> Vec<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self::run(
            Arc::new(move |query: &[u8], _, client| respond(query, client)),
            false,
        )
    }

    /// Answers over TCP byte by byte, without an end.
    pub(super) fn start_dripping() -> Self {
        Self::run(Arc::new(|_: &[u8], _, _| vec![vec![0; 9999]]), true)
    }

    fn run(respond: Arc<Respond>, drips: bool) -> Self {
        let (udp, tcp) = bind();
        let address = udp.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let by_udp = {
            let (stop, respond) = (Arc::clone(&stop), Arc::clone(&respond));
            thread::spawn(move || serve_udp(&udp, &stop, &respond))
        };
        let by_tcp = {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                for stream in tcp.incoming() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let respond = Arc::clone(&respond);
                    // A client that hangs up early is none of a server's concern.
                    thread::spawn(move || serve_tcp(stream.unwrap(), &respond, drips));
                }
            })
        };
        Self {
            address,
            stop,
            threads: vec![by_udp, by_tcp],
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let wake = UdpSocket::bind("127.0.0.1:0").unwrap();
        let _ = wake.send_to(&[], self.address);
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

/// The same port for both.
fn bind() -> (UdpSocket, TcpListener) {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
            return (udp, tcp);
        }
    }
}

fn serve_udp(udp: &UdpSocket, stop: &AtomicBool, respond: &Arc<Respond>) {
    let mut buffer = [0; 600];
    loop {
        // A client that has left makes its refusal known here.
        let Ok((length, client)) = udp.recv_from(&mut buffer) else {
            continue;
        };
        if stop.load(Ordering::SeqCst) {
            return;
        }
        for answer in respond(&buffer[..length], Via::Udp, client) {
            let _ = udp.send_to(&answer, client);
        }
    }
}

fn serve_tcp(mut stream: TcpStream, respond: &Arc<Respond>, drips: bool) -> Option<()> {
    let client = stream.peer_addr().ok()?;
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut query).ok()?;
    let answer = respond(&query, Via::Tcp, client).into_iter().next()?;
    let mut message = (answer.len() as u16).to_be_bytes().to_vec();
    message.extend(answer);
    if !drips {
        return stream.write_all(&message).ok();
    }
    for byte in message {
        stream.write_all(&[byte]).ok()?;
        thread::sleep(Duration::from_millis(2));
    }
    None
}

pub(super) fn is_aaaa(query: &[u8]) -> bool {
    query[query.len() - 3] == 28
}

/// The addresses of the kind that was asked for.
pub(super) fn with_addresses(query: &[u8], addresses: &[&str]) -> Vec<u8> {
    let asked = Packet::parse(query).unwrap();
    let owner = asked.questions[0].qname.clone();
    let mut packet = asked.into_reply();
    for address in addresses {
        let rdata = match address.parse().unwrap() {
            IpAddr::V4(ip) if !is_aaaa(query) => RData::A(A::from(ip)),
            IpAddr::V6(ip) if is_aaaa(query) => RData::AAAA(AAAA::from(ip)),
            _ => continue,
        };
        let record = ResourceRecord::new(owner.clone(), CLASS::IN, 60, rdata);
        packet.answers.push(record);
    }
    packet.build_bytes_vec_compressed().unwrap()
}

pub(super) fn with_code(query: &[u8], code: u8) -> Vec<u8> {
    let mut bytes = with_addresses(query, &[]);
    bytes[3] |= code;
    bytes
}

pub(super) fn truncated(query: &[u8]) -> Vec<u8> {
    let mut bytes = with_addresses(query, &["6.6.6.6"]);
    bytes[2] |= 0x02;
    bytes
}
