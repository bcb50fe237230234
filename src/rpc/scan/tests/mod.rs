mod agree;
mod fields;
mod strict;

use super::*;

fn scan(frame: impl AsRef<[u8]>) -> Scan {
    let mut scanner = Scanner::new();
    scanner.feed(frame.as_ref());
    scanner.finish()
}

fn message(frame: impl AsRef<[u8]>) -> Message {
    match scan(frame) {
        Scan::Message(message) => *message,
        other => panic!("no message: {other:?}"),
    }
}

fn is_readable(frame: impl AsRef<[u8]>) -> bool {
    matches!(scan(frame), Scan::Message(_) | Scan::Batch(_))
}

use crate::rpc::message::Sum;

fn sum(bytes: impl AsRef<[u8]>) -> Sum {
    Sum::of(bytes.as_ref())
}
