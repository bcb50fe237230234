//! A way out, for a bench of what it carries.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use crate::egress::{Egress, Limits, Rules, Sockets};
use crate::net::allow::Allow;
use crate::net::resolve::Resolver;

/// Open until it is dropped.
pub struct Way {
    #[expect(dead_code, reason = "it is open for as long as this lives")]
    egress: Egress,
    proxy: SocketAddr,
}

impl Way {
    /// Lets `allow` through, directly or through the HTTP proxy at `upstream`.
    /// Whoever connects to `direct` means the first name that is lent an
    /// address, which is that of `name`.
    ///
    /// # Errors
    /// When `allow` is no entry, or there are no sockets or threads.
    pub fn open(
        allow: &str,
        direct: Option<(TcpListener, &str)>,
        upstream: Option<SocketAddr>,
    ) -> io::Result<Self> {
        let any = (Ipv4Addr::LOCALHOST, 0);
        let (listener, name) = direct.unzip();
        let sockets = Sockets {
            proxy: TcpListener::bind(any)?,
            direct: listener.into_iter().collect(),
            dns_tcp: TcpListener::bind(any)?,
            dns_udp: vec![UdpSocket::bind(any)?],
        };
        let proxy = sockets.proxy.local_addr()?;
        let dns = sockets.dns_udp.first().map(UdpSocket::local_addr);
        let upstream = upstream.map(|at| format!("http://{at}").parse());
        let rules = Rules {
            allow: vec![Allow::parse(allow).map_err(io::Error::other)?],
            resolver: Resolver::system(),
            upstream: upstream.transpose().map_err(io::Error::other)?,
            limits: Limits::default(),
        };
        let egress = Egress::start(rules, sockets, |_| {})?;
        if let (Some(name), Some(dns)) = (name, dns) {
            ask_for(name, dns?)?;
        }
        Ok(Self { egress, proxy })
    }

    /// Where HTTP and SOCKS5 are spoken.
    pub fn proxy(&self) -> SocketAddr {
        self.proxy
    }
}

/// Asks the name server at `dns` for the address of `name`.
fn ask_for(name: &str, dns: SocketAddr) -> io::Result<()> {
    let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).map_err(io::Error::other)?);
        query.extend_from_slice(label.as_bytes());
    }
    query.extend_from_slice(&[0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    socket.send_to(&query, dns)?;
    socket.recv(&mut [0; 512]).map(drop)
}
