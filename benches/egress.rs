//! What the way out of a confined child costs, beside a relay that only
//! copies.
//!
//! How to read the rows: benches/README.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use aegis::internals::egress::Way;
use criterion::{Criterion, Throughput, criterion_group};

mod support;

criterion_group! {
    name = benches;
    config = Criterion::default();
    targets = throughput, set_up
}

fn main() {
    println!("{}", support::machine());
    benches();
    Criterion::default().configure_from_args().final_summary();
    println!("{}", support::load());
}

fn throughput(criterion: &mut Criterion) {
    let bytes = if support::is_measuring() {
        64 << 20
    } else {
        1 << 20
    };
    let mut group = criterion.benchmark_group("egress_throughput");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.sample_size(20);
    let ways = Ways::to(move |stream| take(stream, bytes));
    let piece = vec![0; BUFFER_BYTES];
    for (name, connect) in ways.rows() {
        let mut stream = connect(&ways);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for _ in 0..bytes / piece.len() {
                    stream.write_all(&piece).unwrap();
                }
                stream.read_exact(&mut [0]).unwrap();
            });
        });
    }
}

fn set_up(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("egress_set_up");
    // Each iteration leaves a port that cannot be used for a minute.
    group.sample_size(20);
    group.warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_secs(1));
    let ways = Ways::to(|stream| take(stream, 1));
    let straight: Row = ("straight", |ways| connected(ways.server));
    for (name, connect) in [straight].into_iter().chain(ways.rows()) {
        let name = if name == "transparent" {
            "transparent_upstream"
        } else {
            name
        };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut stream = connect(&ways);
                stream.write_all(&[0]).unwrap();
                stream.read_exact(&mut [0]).unwrap();
            });
        });
    }
}

/// One server, and the ways to it.
struct Ways {
    server: SocketAddr,
    relay: SocketAddr,
    direct: SocketAddr,
    transparent: Way,
    socks: Way,
}

type Row = (&'static str, fn(&Ways) -> TcpStream);

impl Ways {
    fn to(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> Self {
        let server = listen(Ipv4Addr::LOCALHOST, serve.clone());
        let relay = listen(Ipv4Addr::LOCALHOST, move |stream| copy_both(stream, server));
        // The same server, behind a proxy.
        let upstream = listen(Ipv4Addr::LOCALHOST, move |mut stream| {
            if accept_tunnel(&mut stream) {
                serve(stream);
            }
        });
        // The address that the first name is lent.
        let listener = TcpListener::bind((Ipv4Addr::new(127, 77, 0, 1), 0)).unwrap();
        let direct = listener.local_addr().unwrap();
        let allow = format!("{NAME}:{}", direct.port());
        Self {
            server,
            relay,
            direct,
            transparent: Way::open(&allow, Some((listener, NAME)), Some(upstream)).unwrap(),
            socks: Way::open(&server.to_string(), None, None).unwrap(),
        }
    }

    fn rows(&self) -> [Row; 3] {
        // The listener belongs to a way out that has to be alive.
        assert_ne!(self.transparent.proxy(), self.socks.proxy());
        [
            ("bare_relay", |ways| connected(ways.relay)),
            ("transparent", |ways| connected(ways.direct)),
            ("socks", |ways| {
                let mut stream = connected(ways.socks.proxy());
                let [high, low] = ways.server.port().to_be_bytes();
                stream.write_all(&[5, 1, 0]).unwrap();
                stream.read_exact(&mut [0; 2]).unwrap();
                let request = [5, 1, 0, 1, 127, 0, 0, 1, high, low];
                stream.write_all(&request).unwrap();
                stream.read_exact(&mut [0; 10]).unwrap();
                stream
            }),
        ]
    }
}

/// Serves each connection in a thread, for as long as the bench runs.
fn listen(at: Ipv4Addr, serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((at, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, serve) = (stream.unwrap(), serve.clone());
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

fn connected(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Says one byte for each `bytes` bytes.
fn take(mut stream: TcpStream, bytes: usize) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let mut left = bytes;
        while left > 0 {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(read) => left -= read,
            }
        }
        if stream.write_all(&[0]).is_err() {
            return;
        }
    }
}

/// The floor: two threads that only copy.
fn copy_both(client: TcpStream, server: SocketAddr) {
    let server = connected(server);
    thread::scope(|scope| {
        scope.spawn(|| copy(&server, &client));
        copy(&client, &server);
    });
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// As a proxy does, whatever it is asked for.
fn accept_tunnel(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return false;
        }
        head.push(byte[0]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").is_ok()
}

const NAME: &str = "server.example";

const BUFFER_BYTES: usize = 64 << 10;
