//! SOCKS version 5 (RFC 1928): CONNECT without a login, nothing else.

use std::io::{self, Write as _};
use std::net::IpAddr;

use super::Shared;
use super::denial::{Cause, Denial};
use super::dial::FaultKind;
use super::http::farewell;
use super::incoming::{Hurried, Incoming};
use super::live::Held;
use super::relay::{Side, relay};
use crate::net::host::{Endpoint, Host};

/// Why a client is refused before anything is judged.
enum Fault {
    /// It left or took too long.
    Io,
    /// No login that it offers is taken.
    NoMethod,
    /// Told by a reply (RFC 1928 §6).
    Reply(u8, Denial),
}

/// Serves one client, of whom `incoming` has read a first byte.
pub(super) fn serve(shared: &Shared, client: &Held<'_>, mut incoming: Incoming<Hurried<'_>>) {
    let asked = match negotiate(client, &mut incoming) {
        Ok(asked) => asked,
        // It is we who cut it off.
        Err(Fault::Io) if shared.live.is_over() => return,
        Err(Fault::Io) => {
            let what = "the SOCKS request is cut off or took too long".to_owned();
            let denial = Denial::of_unknown(Cause::Unreadable(what));
            return shared.judge.ledger.deny(&denial);
        }
        Err(Fault::NoMethod) => {
            let what = "the SOCKS client wants a login, and there is none".to_owned();
            let denial = Denial::of_unknown(Cause::Unreadable(what));
            shared.judge.ledger.deny(&denial);
            return say(client, &[VERSION, NO_METHOD]);
        }
        Err(Fault::Reply(code, denial)) => {
            shared.judge.ledger.deny(&denial);
            return say(client, &reply(code));
        }
    };
    match shared.judge.reach_as_asked(&shared.live, &asked) {
        Ok(reached) => {
            if (&**client).write_all(&reply(SUCCEEDED)).is_ok() {
                let from = Side {
                    stream: client,
                    ahead: incoming.into_ahead(),
                };
                let to = Side {
                    stream: &reached.server,
                    ahead: reached.ahead,
                };
                relay(from, to, reached.passage.flow(), shared.judge.limits.idle);
            }
        }
        Err(refusal) => say(
            client,
            &reply(match refusal.fault_kind() {
                None => NOT_ALLOWED,
                Some(FaultKind::Unreachable | FaultKind::Late) => HOST_UNREACHABLE,
                Some(FaultKind::Refused) => REFUSED,
                Some(FaultKind::Other) => FAILURE,
            }),
        ),
    }
}

/// Refuses a client of version 4, in its own words.
pub(super) fn refuse_version_4(shared: &Shared, client: &Held<'_>) {
    let what = "SOCKS version 4 is not spoken; use version 5 (`socks5h://`)".to_owned();
    let denial = Denial::of_unknown(Cause::Unreadable(what));
    shared.judge.ledger.deny(&denial);
    say(client, &[0, REJECTED_4, 0, 0, 0, 0, 0, 0]);
}

fn negotiate(client: &Held<'_>, incoming: &mut Incoming<Hurried<'_>>) -> Result<Endpoint, Fault> {
    let [_, methods] = incoming.array()?;
    let mut offered = vec![0; usize::from(methods)];
    incoming.exact(&mut offered)?;
    if !offered.contains(&NO_LOGIN) {
        return Err(Fault::NoMethod);
    }
    (&**client).write_all(&[VERSION, NO_LOGIN])?;
    let [version, command, reserved, kind] = incoming.array()?;
    if version != VERSION || reserved != 0 {
        return Err(Fault::unreadable(FAILURE, "the SOCKS request is malformed"));
    }
    if command != CONNECT {
        let what = "only CONNECT of SOCKS is served, neither BIND nor UDP";
        return Err(Fault::unreadable(NO_COMMAND, what));
    }
    let host = match kind {
        IPV4 => Ok(Host::from(IpAddr::from(incoming.array::<4>()?))),
        IPV6 => Ok(Host::from(IpAddr::from(incoming.array::<16>()?))),
        NAME => {
            let [length] = incoming.array()?;
            let mut name = vec![0; usize::from(length)];
            incoming.exact(&mut name)?;
            let name = String::from_utf8_lossy(&name).into_owned();
            Host::of_request(&name).map_err(|fault| (name, fault))
        }
        _ => {
            let what = "the SOCKS request has an address of an unknown type";
            return Err(Fault::unreadable(NO_ADDRESS_TYPE, what));
        }
    };
    let port = u16::from_be_bytes(incoming.array()?);
    match host {
        Err((name, fault)) => {
            let denial = Denial::of_text(&name, Some(port), fault);
            Err(Fault::Reply(NOT_ALLOWED, denial))
        }
        Ok(_) if port == 0 => Err(Fault::unreadable(FAILURE, "port 0 cannot be reached")),
        Ok(host) => Ok(Endpoint { host, port }),
    }
}

fn say(client: &Held<'_>, bytes: &[u8]) {
    if (&**client).write_all(bytes).is_ok() {
        farewell(client);
    }
}

/// The address that it was connected from is nothing that a child should know.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

impl Fault {
    fn unreadable(code: u8, what: &str) -> Self {
        let denial = Denial::of_unknown(Cause::Unreadable(what.to_owned()));
        Self::Reply(code, denial)
    }
}

impl From<io::Error> for Fault {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

/// The first byte of a client.
pub(super) const VERSION: u8 = 5;

/// The first byte of a client of old.
pub(super) const VERSION_4: u8 = 4;

const NO_LOGIN: u8 = 0;
const NO_METHOD: u8 = 0xff;

const CONNECT: u8 = 1;

const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

const SUCCEEDED: u8 = 0;
const FAILURE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
const NO_COMMAND: u8 = 7;
const NO_ADDRESS_TYPE: u8 = 8;

/// "Rejected or failed" of version 4.
const REJECTED_4: u8 = 91;
