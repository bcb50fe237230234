//! TLS passes unopened: the certificate that a confined client checks is the
//! server's own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::server::{Confined, PYTHON, ask, has_namespaces};
use crate::exe::skip;

/// A server with a certificate of its own for `127.0.0.1`.
struct Secure {
    process: Child,
    port: u16,
    certificate: String,
}

impl Secure {
    fn start(dir: &Path, name: &str) -> Option<Self> {
        let (key, certificate) = (dir.join(format!("{name}.key")), dir.join(name));
        let made = Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])
            .args([
                "-subj",
                "/CN=127.0.0.1",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
            ])
            .args(["-keyout".as_ref(), key.as_os_str()])
            .args(["-out".as_ref(), certificate.as_os_str()])
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            skip("there is no openssl to make a certificate with");
            return None;
        }
        let mut process = Command::new(PYTHON)
            .args(["-u", "-c", SERVER])
            .args([&certificate, &key])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        Some(Self {
            process,
            port: line.trim().parse().unwrap(),
            certificate: fs::read_to_string(certificate).unwrap(),
        })
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_certificate_is_checked_by_the_confined_client_itself() {
    if !has_namespaces() || !Path::new(PYTHON).exists() {
        return skip("there is no python, or no namespace to confine it in");
    }
    let dir = tempfile::tempdir().unwrap();
    let servers = ["one", "two"].map(|name| Secure::start(dir.path(), name));
    let [Some(one), Some(two)] = &servers else {
        return;
    };
    let entries = [one, two].map(|server| format!("127.0.0.1:{}", server.port));
    let flags = ["--allow-net", &entries[0], "--allow-net", &entries[1]];
    let confined = Confined::python(&flags).unwrap();
    let mut session = confined.start();
    for by_proxy in [false, true] {
        let mut say = |server: &Secure, trusted: &Secure| {
            let arguments = json!({
                "host": "127.0.0.1",
                "port": server.port,
                "trusted": trusted.certificate,
                "by_proxy": by_proxy,
            });
            ask(&mut session, "tls", arguments)
        };
        assert_eq!(say(one, one), "secure");
        assert_eq!(say(two, two), "secure");
        let said = say(one, two);
        assert!(said.starts_with("SSLCertVerificationError: "), "{said}");
    }
    session.finish().record.assert_verified();
}

const SERVER: &str = "
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:])
with socket.create_server(('127.0.0.1', 0)) as listener:
    print(listener.getsockname()[1])
    while True:
        try:
            with context.wrap_socket(listener.accept()[0], server_side=True) as peer:
                peer.sendall(b'secure')
        except (ssl.SSLError, OSError):
            pass
";
