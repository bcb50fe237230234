//! What a server may reach over the network, for its own process and for the
//! one that carries it.

use crate::confine::handed;
use crate::confine::order::{MAX_NAME_SERVERS, PROXY_VARIABLES, Wanted, proxy_port};
use crate::confine::profile::Profile;
use crate::egress::{self, Rules, Upstream};
use crate::net::allow::Allow;
use crate::net::resolve::Resolver;

/// Every allowed port, in ascending order.
pub(super) fn ports(allow: &[Allow]) -> Vec<u16> {
    let mut ports: Vec<_> = allow.iter().flat_map(Allow::ports).copied().collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// What the server's own process has to set up.
pub(super) fn wanted(allow: &[Allow]) -> Wanted {
    if allow.is_empty() {
        return Wanted::Denied;
    }
    let ports = ports(allow);
    let mut name_servers = Resolver::system().name_servers();
    name_servers.truncate(MAX_NAME_SERVERS);
    Wanted::Hosts {
        proxy_port: proxy_port(&ports),
        ports,
        name_servers,
    }
}

/// Tells the server of the proxy, whatever it was told before. Most programs
/// get on without; those that refuse to connect to addresses of this machine
/// do not.
pub(super) fn set_variables(profile: &mut Profile, proxy_port: u16) {
    let http = format!("http://127.0.0.1:{proxy_port}");
    // Names are looked up by the proxy.
    let socks = format!("socks5h://127.0.0.1:{proxy_port}");
    for name in PROXY_VARIABLES {
        let value = match name {
            "ALL_PROXY" | "all_proxy" => &socks,
            "NO_PROXY" | "no_proxy" => NOT_PROXIED,
            "NODE_USE_ENV_PROXY" => "1",
            _ => &http,
        };
        profile.kept_variables.retain(|kept| kept != name);
        let set = &mut profile.set_variables;
        set.push((name.to_owned(), value.to_owned()));
    }
}

/// What is carried.
pub(super) fn rules(allow: Vec<Allow>, upstream: Option<Upstream>) -> Rules {
    Rules {
        allow,
        resolver: Resolver::system(),
        upstream,
        limits: egress::Limits::default(),
    }
}

/// Two rooms that do not know each other name the same four things.
pub(super) fn sockets(of_helper: handed::Sockets) -> egress::Sockets {
    let handed::Sockets {
        proxy,
        direct,
        dns_tcp,
        dns_udp,
    } = of_helper;
    egress::Sockets {
        proxy,
        direct,
        dns_tcp,
        dns_udp,
    }
}

/// What the server itself may listen on. Addresses of this machine are judged
/// by the listeners as they are by the proxy.
const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";
