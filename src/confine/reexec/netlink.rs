//! The two messages of rtnetlink(7) that a network namespace needs, by hand.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// A socket to the kernel.
pub(crate) struct Netlink(OwnedFd);

impl Netlink {
    /// Opens one in the namespace of the calling thread.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        // The protocol with the number 0 is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        Ok(Self(socket))
    }

    /// Starts the loopback interface; the kernel gives it 127.0.0.1 and ::1.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn start_loopback(&self) -> io::Result<()> {
        self.ask(&link_up())
    }

    /// Makes every address of a family one of this namespace's own.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn take_all_addresses(&self, family: Family) -> io::Result<()> {
        self.ask(&local_default_route(family))
    }

    fn ask(&self, message: &[u8]) -> io::Result<()> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.0, message, SendFlags::empty(), &kernel)?;
        let mut answer = [0; ANSWER_BYTES];
        let (len, _) =
            rustix::io::retry_on_intr(|| recv(&self.0, &mut answer[..], RecvFlags::empty()))?;
        read_answer(answer.get(..len).unwrap_or_default())
    }
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

fn link_up() -> Vec<u8> {
    let mut body = vec![0; 4]; // family, padding, type
    body.extend(LOOPBACK.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes()); // flags
    body.extend(IFF_UP.to_ne_bytes()); // of which these change
    message(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, &body)
}

/// A route to everything whose type is that of a host's own addresses.
fn local_default_route(family: Family) -> Vec<u8> {
    let family = match family {
        Family::V4 => AF_INET,
        Family::V6 => AF_INET6,
    };
    let mut body = vec![
        family,
        0, // any destination
        0, // any source
        0, // any type of service
        RT_TABLE_LOCAL,
        RTPROT_BOOT,
        RT_SCOPE_HOST,
        RTN_LOCAL,
    ];
    body.extend(0_u32.to_ne_bytes()); // flags
    body.extend(RTA_OIF_BYTES.to_ne_bytes());
    body.extend(RTA_OIF.to_ne_bytes());
    body.extend(LOOPBACK.to_ne_bytes());
    message(
        RTM_NEWROUTE,
        NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
        &body,
    )
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let mut message = Vec::from(len.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes()); // its number
    message.extend(0_u32.to_ne_bytes()); // to the kernel
    message.extend(body);
    message
}

/// An acknowledgement is an error message with the number 0 (netlink(7)).
fn read_answer(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok());
    let number = answer.get(16..20).and_then(|bytes| bytes.try_into().ok());
    match (kind.map(u16::from_ne_bytes), number.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(number)) if number < 0 => {
            Err(io::Error::from_raw_os_error(number.saturating_neg()))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

// include/uapi/linux/netlink.h
const HEADER_BYTES: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;

// include/uapi/linux/rtnetlink.h, if.h, include/linux/socket.h
const RTM_NEWLINK: u16 = 16;
const RTM_NEWROUTE: u16 = 24;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_BOOT: u8 = 3;
const RT_SCOPE_HOST: u8 = 254;
const RTN_LOCAL: u8 = 2;
const RTA_OIF: u16 = 4;
const RTA_OIF_BYTES: u16 = 8;
const IFF_UP: u32 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// The first interface of every network namespace.
const LOOPBACK: u32 = 1;

/// An answer repeats the message that it is about, and may explain.
const ANSWER_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_long_as_they_say_and_in_the_kernels_order() {
        let up = link_up();
        assert_eq!(up.len(), 32);
        assert_eq!(up[..4], 32_u32.to_ne_bytes());
        assert_eq!(up[4..6], RTM_NEWLINK.to_ne_bytes());
        assert_eq!(up[20..24], 1_u32.to_ne_bytes());
        for (family, number) in [(Family::V4, 2), (Family::V6, 10)] {
            let route = local_default_route(family);
            assert_eq!(route.len(), 36);
            assert_eq!(route[16..24], [number, 0, 0, 0, 255, 3, 254, 2]);
            assert_eq!(route[28..30], 8_u16.to_ne_bytes());
            assert_eq!(route[32..], 1_u32.to_ne_bytes());
        }
    }

    fn answer(kind: u16, number: i32) -> io::Result<()> {
        let mut bytes = message(kind, 0, &number.to_ne_bytes());
        bytes.extend(link_up());
        read_answer(&bytes)
    }

    #[test]
    fn an_answer_is_an_acknowledgement_or_an_error() {
        answer(NLMSG_ERROR, 0).unwrap();
        let refused = answer(NLMSG_ERROR, -1).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(1));
        for odd in [answer(NLMSG_ERROR, 1), answer(3, 0), read_answer(&[0; 19])] {
            assert_eq!(odd.unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        assert_ne!(
            answer(NLMSG_ERROR, i32::MIN).unwrap_err().raw_os_error(),
            None
        );
    }
}
