//! The HTTP proxy: CONNECT, and requests for `http://` URLs.
//!
//! One request for each connection of a client, which is told so: whatever it
//! sends next comes on a connection that is judged anew.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::Shared;
use super::body::{self, BodyFault};
use super::denial::{Cause, Denial};
use super::dial::FaultKind;
use super::head::{self, FRAMING, Framing, Request, Response, Version};
use super::incoming::{Hurried, Incoming};
use super::judge::{Reached, Refusal};
use super::ledger::Flow;
use super::live::Held;
use super::relay::{self, Clock, Patient, Side, relay};
use super::upstream::strip_scheme;
use crate::net::host::{Endpoint, EndpointFault};

/// Serves one client, of whom `incoming` has read a first byte.
pub(super) fn serve(shared: &Shared, client: &Held<'_>, mut incoming: Incoming<Hurried<'_>>) {
    let served = read_request(shared, &mut incoming)
        .and_then(|request| Wanted::of(shared, request))
        .and_then(|wanted| match wanted {
            Wanted::Tunnel(endpoint) => tunnel(shared, client, incoming.into_ahead(), &endpoint),
            Wanted::Forward(forward) => forward.serve(shared, client, incoming.into_ahead()),
        });
    if let Err(answer) = served {
        answer.send(client);
    }
}

/// What a client is answered by the proxy itself.
struct Answer {
    status: u16,
    /// What happened to which host, and what to do.
    text: String,
}

/// What a request asks for.
enum Wanted {
    Tunnel(Endpoint),
    Forward(Forward),
}

/// A request for a URL.
struct Forward {
    request: Request,
    endpoint: Endpoint,
    /// What the server is asked for.
    path: String,
    framing: Framing,
}

fn read_request(shared: &Shared, incoming: &mut Incoming<Hurried<'_>>) -> Result<Request, Answer> {
    let head = match incoming.until(head::END, shared.judge.limits.head_bytes) {
        Ok(Some(head)) => head,
        Ok(None) => {
            return Err(unreadable(
                shared,
                431,
                "the head of the request is too long",
            ));
        }
        // It is we who cut it off.
        Err(_) if shared.live.is_over() => return Err(Answer::at_end()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            return Err(unreadable(
                shared,
                408,
                "the request did not arrive in time",
            ));
        }
        Err(_) => return Err(unreadable(shared, 400, "the request is cut off")),
    };
    let request = Request::parse(&head);
    request.map_err(|fault| unreadable(shared, 400, &fault.to_string()))
}

impl Wanted {
    fn of(shared: &Shared, request: Request) -> Result<Self, Answer> {
        let framing = request
            .framing()
            .map_err(|fault| unreadable(shared, 400, &fault.to_string()))?;
        if request.method == "CONNECT" {
            if !matches!(framing, Framing::None | Framing::Length(0)) {
                return Err(unreadable(shared, 400, "CONNECT has no body"));
            }
            return read_endpoint(shared, &request.target).map(Self::Tunnel);
        }
        let Some(rest) = strip_scheme(&request.target) else {
            let what = "the target is not `http://HOST[:PORT]/PATH`; use CONNECT for other schemes";
            return Err(unreadable(shared, 400, what));
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if path.contains('#') {
            let what = "a fragment is not part of a request";
            return Err(unreadable(shared, 400, what));
        }
        if authority.contains('@') {
            let what = "a user is not part of a request's target";
            return Err(unreadable(shared, 400, what));
        }
        let has_port = authority.rfind(':') > authority.rfind(']');
        let endpoint = if has_port {
            read_endpoint(shared, authority)?
        } else {
            read_endpoint(shared, &format!("{authority}:{HTTP_PORT}"))?
        };
        let path = match path.as_bytes().first() {
            None if request.method == "OPTIONS" => "*".to_owned(),
            Some(b'/') => path.to_owned(),
            _ => format!("/{path}"),
        };
        Ok(Self::Forward(Forward {
            request,
            endpoint,
            path,
            framing,
        }))
    }
}

fn read_endpoint(shared: &Shared, text: &str) -> Result<Endpoint, Answer> {
    Endpoint::of_request(text).map_err(|fault| match fault {
        EndpointFault::Host(fault) => {
            let denial = Denial::of_text(text, None, fault);
            shared.judge.ledger.deny(&denial);
            Answer {
                status: 400,
                text: denial.to_string(),
            }
        }
        EndpointFault::Port(fault) => unreadable(shared, 400, &fault.to_string()),
    })
}

/// Of which nobody knows where it was to go.
fn unreadable(shared: &Shared, status: u16, what: &str) -> Answer {
    let denial = Denial::of_unknown(Cause::Unreadable(what.to_owned()));
    shared.judge.ledger.deny(&denial);
    Answer {
        status,
        text: denial.to_string(),
    }
}

fn tunnel(
    shared: &Shared,
    client: &Held<'_>,
    ahead: Vec<u8>,
    endpoint: &Endpoint,
) -> Result<(), Answer> {
    let reached = reach(shared, endpoint)?;
    if (&**client).write_all(ESTABLISHED).is_ok() {
        let from = Side {
            stream: client,
            ahead,
        };
        let to = Side {
            stream: &reached.server,
            ahead: reached.ahead,
        };
        relay(from, to, reached.passage.flow(), shared.judge.limits.idle);
    }
    Ok(())
}

fn reach<'a>(shared: &'a Shared, endpoint: &Endpoint) -> Result<Reached<'a>, Answer> {
    let reached = shared.judge.reach_as_asked(&shared.live, endpoint);
    reached.map_err(|refusal: Refusal| Answer {
        status: match refusal.fault_kind() {
            None => 403,
            Some(FaultKind::Late) => 504,
            Some(_) => 502,
        },
        text: refusal.text(),
    })
}

impl Forward {
    fn serve(self, shared: &Shared, client: &Held<'_>, ahead: Vec<u8>) -> Result<(), Answer> {
        if self.request.fields.has_token("upgrade", b"websocket") {
            let what = "a WebSocket is opened through CONNECT".to_owned();
            let cause = Cause::Unreadable(what);
            let denial = Denial::of(&self.endpoint.host, self.endpoint.port, cause);
            shared.judge.ledger.deny(&denial);
            return Err(Answer {
                status: 501,
                text: denial.to_string(),
            });
        }
        let reached = reach(shared, &self.endpoint)?;
        let clock = Clock::start(shared.judge.limits.idle);
        let lost = |error: io::Error| Answer {
            status: 502,
            text: format!("{}: {error}", self.endpoint),
        };
        let from = Patient::new(client, &clock).map_err(lost)?;
        let mut to = Patient::new(&reached.server, &clock).map_err(lost)?;
        let flow = reached.passage.flow();
        let head = self.head();
        to.write_all(&head).map_err(lost)?;
        flow.sent.fetch_add(head.len() as u64, Ordering::Relaxed);
        let exchange = Exchange {
            client: from,
            server: to,
            flow,
            head_bytes: shared.judge.limits.head_bytes,
            version: self.request.version,
        };
        exchange.run(ahead, reached.ahead, self.framing);
        Ok(())
    }

    /// The request as the server gets it. Its target decides on the Host, and
    /// its body's end is said anew.
    fn head(&self) -> Vec<u8> {
        let (method, version) = (&self.request.method, self.request.version.as_str());
        let host = match self.endpoint.port {
            HTTP_PORT => self.endpoint.host.to_string(),
            _ => self.endpoint.to_string(),
        };
        let head = format!("{method} {} {version}\r\nHost: {host}\r\n", self.path);
        let mut head = head.into_bytes();
        let is_anew = |name: &str| name == "host" || FRAMING.contains(&name);
        self.request.fields.write_end_to_end(&mut head, is_anew);
        match self.framing {
            Framing::None => {}
            Framing::Length(length) => {
                head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
            }
            Framing::Chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        }
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        head
    }
}

/// A request whose head has gone out.
#[derive(Clone, Copy)]
struct Exchange<'a> {
    client: Patient<'a>,
    server: Patient<'a>,
    flow: &'a Flow,
    head_bytes: usize,
    version: Version,
}

impl Exchange<'_> {
    /// The body goes out while the answer may come in already.
    fn run(self, ahead: Vec<u8>, server_ahead: Vec<u8>, framing: Framing) {
        let (at_end, client_is_done) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let answering = move || self.answer(server_ahead, &client_is_done);
            if relay::spawn(scope, answering).is_err() {
                return relay::break_off(self.client, self.server);
            }
            self.ask(ahead, framing);
            drop(at_end);
        });
    }

    fn ask(mut self, ahead: Vec<u8>, framing: Framing) {
        let mut incoming = Incoming::new(self.client, ahead);
        let sent = body::send(
            &mut incoming,
            &mut self.server,
            framing,
            self.head_bytes,
            &self.flow.sent,
        );
        match sent {
            Err(BodyFault::Client) => return relay::break_off(self.client, self.server),
            // It may have answered, for instance that the body is too large.
            Ok(()) | Err(BodyFault::Server) => {}
        }
        // Whatever follows is no part of the request. It is read, because bytes
        // that nobody read would turn the close into a reset.
        let mut discarded = incoming.len();
        let mut buffer = vec![0; DISCARD_BYTES];
        while discarded < MAX_DISCARDED_BYTES {
            match self.client.read(&mut buffer) {
                Ok(0) => return self.server.end_of_sending(),
                Ok(read) => discarded += read,
                Err(_) => return,
            }
        }
    }

    fn answer(mut self, ahead: Vec<u8>, client_is_done: &Receiver<()>) {
        let mut incoming = Incoming::new(self.server, ahead);
        match self.answer_heads(&mut incoming) {
            Ok(()) => {
                let ahead = incoming.into_ahead();
                relay::carry(self.server, self.client, ahead, &self.flow.received);
            }
            Err(what) => {
                let answer = Answer {
                    status: 502,
                    text: format!("the server's answer {what}"),
                };
                // A client that has left is not told.
                let _ = self.client.write_all(&answer.bytes());
                self.client.end_of_sending();
            }
        }
        // An answer is lost when its connection closes over unread bytes.
        let _ = client_is_done.recv_timeout(LINGER);
        self.client.stop();
    }

    /// Interim answers and the head of the final one.
    fn answer_heads(&mut self, incoming: &mut Incoming<Patient<'_>>) -> Result<(), &'static str> {
        for _ in 0..=MAX_INTERIM {
            let head = match incoming.until(head::END, self.head_bytes) {
                Ok(Some(head)) => head,
                Ok(None) => return Err("has a head that is too long"),
                Err(_) => return Err("is cut off"),
            };
            let response = Response::parse(&head).map_err(|_| "is no HTTP")?;
            let received = head.len() as u64;
            self.flow.received.fetch_add(received, Ordering::Relaxed);
            let is_last = match response.status {
                // Nobody asked for another protocol.
                101 => return Err("switches to another protocol"),
                100..=199 => false,
                _ => true,
            };
            // HTTP/1.0 knows no interim answers.
            if is_last || self.version == Version::Http11 {
                let forwarded = response.forwarded(is_last);
                let written = self.client.write_all(&forwarded);
                written.map_err(|_| "has no reader")?;
            }
            if is_last {
                return Ok(());
            }
        }
        Err("is preceded by too many interim ones")
    }
}

impl Answer {
    /// Nobody hears it any more.
    fn at_end() -> Self {
        Self {
            status: 502,
            text: "the session has ended".to_owned(),
        }
    }

    fn send(&self, client: &Held<'_>) {
        if (&**client).write_all(&self.bytes()).is_ok() {
            farewell(client);
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let reason = match self.status {
            400 => "Bad Request",
            403 => "Forbidden",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            504 => "Gateway Timeout",
            _ => "Bad Gateway",
        };
        let (status, text) = (self.status, &self.text);
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{text}\n",
            text.len() + 1
        )
        .into_bytes()
    }
}

/// Ends a connection whose last words are still on their way: bytes that
/// nobody read would turn the close into a reset, and the words be lost.
pub(super) fn farewell(client: &Held<'_>) {
    if client.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut hurried = Hurried::new(client, LINGER);
    let mut buffer = vec![0; DISCARD_BYTES];
    let mut discarded = 0;
    while discarded < MAX_DISCARDED_BYTES {
        match hurried.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => discarded += read,
        }
    }
}

/// RFC 9110 §9.3.6: no length, no body.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

const HTTP_PORT: u16 = 80;

/// Answers of status 1xx before the final one.
const MAX_INTERIM: usize = 16;

/// How long a client may take to read its answer and close.
const LINGER: Duration = Duration::from_secs(2);

/// Of a client that goes on sending.
const MAX_DISCARDED_BYTES: usize = 1 << 20;

const DISCARD_BYTES: usize = 16 << 10;
