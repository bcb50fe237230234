//! What parent and helper say to each other over the socket: one message per
//! packet, each bounded.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socket_with,
};
use serde::{Deserialize, Serialize};

use super::refused::Refused;
use super::report::Report;

/// What the helper says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Said {
    /// It has come. Its version must be the parent's: the executable may have
    /// been replaced in between.
    Hello {
        /// Its version.
        version: String,
    },
    /// The sockets of this packet are to be answered: the proxy's, one per
    /// port, the one for names over TCP, those for names over UDP.
    Sockets,
    /// The machine gave it no namespaces.
    NoNamespace(Refused),
    /// It could not go on.
    Failed {
        /// Why.
        text: String,
    },
    /// It is restricted, and waits.
    Ready(Box<Report>),
    /// It was let go. Nothing more is said when that succeeds: the connection
    /// ends.
    Executing,
}

/// A packet, and what came with it.
pub(super) struct Packet {
    /// Empty at the end.
    pub(super) bytes: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
}

/// A socket for it, closed on execution: the end of its connection says that
/// the program runs.
pub(super) fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Says something, handing `descriptors` over.
///
/// # Errors
/// When nobody listens, or it is too long.
pub(super) fn say(to: impl AsFd, said: &Said, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(said).map_err(io::Error::other)?;
    if bytes.len() > MAX_PACKET_BYTES {
        return Err(io::Error::other("a message of the handshake is too long"));
    }
    send(to, &bytes, descriptors)
}

/// Sends one packet.
///
/// # Errors
/// When nobody listens.
pub(super) fn send(to: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many sockets for one message"));
    }
    let parts = [IoSlice::new(bytes)];
    let sent = rustix::io::retry_on_intr(|| {
        sendmsg(to.as_fd(), &parts, &mut control, SendFlags::NOSIGNAL)
    })?;
    match sent == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives one packet.
///
/// # Errors
/// When it is longer than any that is sent; EMFILE when this process may not
/// hold the descriptors that came with it.
pub(super) fn receive(from: impl AsFd) -> io::Result<Packet> {
    let mut bytes = vec![0; MAX_PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        recvmsg(
            from.as_fd(),
            &mut parts,
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let descriptors = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::other("a message of the handshake was cut"));
    }
    // There is space for as many as the kernel takes, so that these did not
    // fit into the table of this process.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::MFILE.into());
    }
    bytes.truncate(received.bytes);
    Ok(Packet { bytes, descriptors })
}

/// The parent's word that the program may be executed.
pub(super) const GO: &[u8] = b"go";

/// A report is a few KiB; a text about a path may be four times that path.
pub(super) const MAX_PACKET_BYTES: usize = 64 << 10;

/// What the kernel takes in one message (SCM_MAX_FD).
pub(super) const MAX_DESCRIPTORS: usize = 253;

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::net::socketpair;

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let kind = SocketType::SEQPACKET;
        socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn what_is_said_arrives_with_as_many_descriptors_as_fit() {
        let (near, far) = pair();
        let file = File::open("/dev/null").unwrap();
        let many = vec![file.as_fd(); MAX_DESCRIPTORS];
        say(&near, &Said::Sockets, &many).unwrap();
        let packet = receive(&far).unwrap();
        assert_eq!(packet.descriptors.len(), MAX_DESCRIPTORS);
        let said: Said = serde_json::from_slice(&packet.bytes).unwrap();
        assert_eq!(said, Said::Sockets);
        let many = vec![file.as_fd(); MAX_DESCRIPTORS + 1];
        assert!(say(&near, &Said::Sockets, &many).is_err());
        drop(near);
        assert!(receive(&far).unwrap().bytes.is_empty());
    }

    #[test]
    fn a_packet_is_bounded_on_both_sides() {
        let (near, far) = pair();
        let longest = vec![b'x'; MAX_PACKET_BYTES];
        send(&near, &longest, &[]).unwrap();
        assert_eq!(receive(&far).unwrap().bytes, longest);
        send(&near, &vec![b'x'; MAX_PACKET_BYTES + 1], &[]).unwrap();
        assert!(receive(&far).is_err());
        let text = "x".repeat(MAX_PACKET_BYTES);
        assert!(say(&near, &Said::Failed { text }, &[]).is_err());
    }
}
