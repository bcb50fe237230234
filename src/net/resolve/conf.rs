//! `resolv.conf`: which servers are asked, and how patiently (resolv.conf(5)).

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::Path;
use std::time::Duration;

use thiserror::Error;

use super::TOTAL_MS;

/// How to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conf {
    /// In the order they are asked, at least one, at most [`MAX_SERVERS`].
    pub(super) servers: Vec<SocketAddr>,
    /// For one question to one server.
    pub(super) timeout: Duration,
    /// How often each server is asked.
    pub(super) tries: u32,
    /// Whether UDP is left out (`use-vc`).
    pub(super) tcp_only: bool,
    /// For everything.
    pub(super) total: Duration,
}

/// Why a configuration file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum FileFault {
    /// Not readable.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Past the bound.
    #[error("the file has more than {0} bytes; shorten it")]
    Large(u64),
    /// No server in it.
    #[error("it names no name server; add a line `nameserver ADDRESS`")]
    NoServer,
}

impl Conf {
    pub(super) fn read(path: &Path) -> Result<Self, FileFault> {
        let mut bytes = Vec::new();
        File::open(path)?
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(FileFault::Large(MAX_BYTES));
        }
        Self::parse(&bytes).ok_or(FileFault::NoServer)
    }

    /// What other programs would skip in the file is skipped here: lines that
    /// are no UTF-8, unknown words, servers that are no addresses.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut conf = Self {
            servers: Vec::new(),
            timeout: Duration::from_secs(DEFAULT_TIMEOUT_S),
            tries: DEFAULT_TRIES,
            tcp_only: false,
            total: Duration::from_millis(TOTAL_MS),
        };
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = str::from_utf8(line) else {
                continue;
            };
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") if conf.servers.len() < MAX_SERVERS => {
                    conf.servers.extend(words.next().and_then(server));
                }
                Some("options") => words.for_each(|option| conf.set(option)),
                _ => {}
            }
        }
        (!conf.servers.is_empty()).then_some(conf)
    }

    fn set(&mut self, option: &str) {
        match option.split_once(':') {
            Some(("timeout", seconds)) => {
                if let Ok(seconds) = seconds.parse::<u64>() {
                    self.timeout = Duration::from_secs(seconds.clamp(1, MAX_TIMEOUT_S));
                }
            }
            Some(("attempts", tries)) => {
                if let Ok(tries) = tries.parse::<u32>() {
                    self.tries = tries.clamp(1, MAX_TRIES);
                }
            }
            None if option == "use-vc" => self.tcp_only = true,
            _ => {}
        }
    }
}

fn server(text: &str) -> Option<SocketAddr> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, PORT));
    }
    // A router announces itself by a link-local address of one interface.
    let (ip, zone) = text.split_once('%')?;
    let ip: Ipv6Addr = ip.parse().ok()?;
    Some(SocketAddrV6::new(ip, PORT, 0, interface(zone)?).into())
}

/// The index of an interface, by its number or its name.
fn interface(zone: &str) -> Option<u32> {
    if let Ok(index) = zone.parse() {
        return Some(index);
    }
    if zone.is_empty() || zone.contains('/') || zone.starts_with('.') {
        return None;
    }
    let index = fs::read_to_string(format!("/sys/class/net/{zone}/ifindex")).ok()?;
    index.trim_end().parse().ok()
}

const PORT: u16 = 53;

/// As in the C library (MAXNS): later ones are not asked.
const MAX_SERVERS: usize = 3;

/// The C library's defaults and caps (RES_TIMEOUT, RES_MAXRETRANS,
/// RES_DFLRETRY, RES_MAXRETRY).
const DEFAULT_TIMEOUT_S: u64 = 5;
const MAX_TIMEOUT_S: u64 = 30;
const DEFAULT_TRIES: u32 = 2;
const MAX_TRIES: u32 = 5;

/// Of the file.
const MAX_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests;
