//! System calls that are denied for some of their arguments.
//!
//! An `int` argument is compared as 32 bits, since that is all the kernel
//! looks at: compared as 64, a bit above the 32nd hides the value
//! (CVE-2019-10063, TIOCSTI in another sandbox). A filter cannot follow a
//! pointer, so nothing here depends on what one points to.

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::calls::{self, Call};
use super::{Metadata, Network, Plan};

/// A call, and the rules of which any one denies it. None: always denied.
pub(super) struct Argued {
    pub(super) call: Call,
    pub(super) denied_if: Vec<Rule>,
}

/// Conditions that must all hold.
pub(super) struct Rule(Vec<Condition>);

#[derive(Clone, Copy)]
struct Condition {
    argument: u8,
    test: Test,
}

#[derive(Clone, Copy)]
enum Test {
    Is(u32),
    IsNot(u32),
    /// The bits of the mask have this value.
    Bits(u32, u32),
    /// All 64 bits: a pointer.
    IsNotNull,
    IsNull,
}

impl Rule {
    pub(super) fn compile(&self) -> Result<SeccompRule, seccompiler::BackendError> {
        let conditions: Result<Vec<_>, _> = self.0.iter().map(Condition::compile).collect();
        SeccompRule::new(conditions?)
    }
}

impl Condition {
    fn compile(&self) -> Result<SeccompCondition, seccompiler::BackendError> {
        let (width, operator, value) = match self.test {
            Test::Is(value) => (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value),
            Test::IsNot(value) => (SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value),
            Test::Bits(mask, value) => {
                let operator = SeccompCmpOp::MaskedEq(u64::from(mask));
                (SeccompCmpArgLen::Dword, operator, value)
            }
            Test::IsNotNull => (SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0),
            Test::IsNull => (SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0),
        };
        SeccompCondition::new(self.argument, width, operator, u64::from(value))
    }
}

/// Every call that `plan` denies for its arguments.
pub(super) fn argued(plan: &Plan) -> Vec<Argued> {
    let mut argued = vec![
        Argued::new(calls::CLONE, clone()),
        Argued::new(calls::IOCTL, ioctl()),
        Argued::new(calls::SOCKET, socket(plan)),
        Argued::new(calls::SOCKETPAIR, socketpair(plan)),
        // TCP Fast Open connects without connect(), past Landlock's rule for
        // it (landlock-lsm/linux#41).
        Argued::new(calls::SENDTO, vec![has(3, MSG_FASTOPEN)]),
        Argued::new(calls::SENDMSG, vec![has(2, MSG_FASTOPEN)]),
        Argued::new(calls::SENDMMSG, vec![has(3, MSG_FASTOPEN)]),
        // Zero is the caller itself; its own pid is not known to a filter
        // that children inherit. A call that sets the limit of core dumps and
        // asks for the old one is refused; one that only sets it is
        // [`core_limit`]'s.
        Argued::new(
            calls::PRLIMIT64,
            vec![
                is_not(0, &[0]),
                Rule(vec![is(1, RLIMIT_CORE), not_null(2), not_null(3)]),
            ],
        ),
        // Of a process group or a user, zero is all of it: others' too.
        Argued::new(
            calls::SETPRIORITY,
            vec![is_not(0, &[PRIO_PROCESS]), is_not(1, &[0])],
        ),
        // Other personalities change how addresses and paths are taken:
        // READ_IMPLIES_EXEC and the 32-bit ones have been a step in attacks.
        // Debuggers and some runtimes turn randomisation off.
        Argued::new(
            calls::PERSONALITY,
            vec![is_not(0, &[PER_LINUX, ADDR_NO_RANDOMIZE, PER_QUERY])],
        ),
    ];
    argued.extend(set_ids(plan));
    if plan.metadata == Metadata::Denied {
        // Without a path they act on the open file, as futimens does.
        argued.push(Argued::new(calls::UTIMENSAT, vec![is_not_null(1)]));
        argued.push(Argued::new(calls::FUTIMESAT, vec![is_not_null(1)]));
    }
    argued
}

/// Calls that do nothing and say that they did: the limit of core dumps stays.
///
/// At 1 byte none is made (core(5), fs/coredump.c); at 0, which programs ask
/// for that do not want one, the kernel still starts the machine's handler of
/// core dumps, outside and as root, and gives it the memory of the program.
pub(super) fn core_limit() -> Vec<Argued> {
    let own = vec![is(0, 0), is(1, RLIMIT_CORE), not_null(2), is_null(3)];
    vec![
        Argued::new(calls::SETRLIMIT, vec![Rule(vec![is(0, RLIMIT_CORE)])]),
        Argued::new(calls::PRLIMIT64, vec![Rule(own)]),
    ]
}

/// Files that give whoever executes them the rights of their owner or group:
/// left where the program may write, one is an authority that outlives the
/// confinement. The modes of openat2 lie behind a pointer, so that call has
/// gone.
fn set_ids(plan: &Plan) -> Vec<Argued> {
    let made = |at: u8| SET_IDS.map(|bit| Rule(vec![bits(at, bit, bit)])).into();
    let opened = |flags: u8| {
        let pairs = MAKING
            .iter()
            .flat_map(|making| SET_IDS.map(|bit| (*making, bit)));
        let both =
            |(making, bit)| Rule(vec![bits(flags, making, making), bits(flags + 1, bit, bit)]);
        pairs.map(both).collect()
    };
    let mut changed: Vec<Rule> = made(1);
    if plan.metadata == Metadata::Denied {
        // The file may have been opened for reading only.
        changed.push(has(1, WRITTEN_BY_ALL));
    }
    let mut argued = vec![
        Argued::new(calls::CREAT, made(1)),
        Argued::new(calls::FCHMOD, changed),
        Argued::new(calls::MKNOD, made(1)),
        Argued::new(calls::MKNODAT, made(2)),
        Argued::new(calls::OPEN, opened(1)),
        Argued::new(calls::OPENAT, opened(2)),
    ];
    // Otherwise denied as a whole.
    if plan.metadata == Metadata::Allowed {
        argued.push(Argued::new(calls::CHMOD, made(1)));
        argued.push(Argued::new(calls::FCHMODAT, made(2)));
        argued.push(Argued::new(calls::FCHMODAT2, made(2)));
    }
    argued
}

impl Argued {
    fn new(call: Call, denied_if: Vec<Rule>) -> Self {
        Self { call, denied_if }
    }
}

/// Every bit that makes a namespace. CLONE_NEWTIME lies in the bits of the
/// exit signal here, so this call cannot ask for it.
fn clone() -> Vec<Rule> {
    CLONE_NEW.iter().map(|bit| has(0, *bit)).collect()
}

/// TIOCSTI types into the terminal that aegis was started from, TIOCLINUX
/// pastes into a virtual console, TIOCCONS takes the console's output over,
/// TIOCSETD loads a line discipline (CVE-2017-2636).
fn ioctl() -> Vec<Rule> {
    TERMINAL_REQUESTS
        .iter()
        .map(|request| Rule(vec![is(1, *request)]))
        .collect()
}

/// Domains, types and protocols that are not known to be needed are denied:
/// vsock leads to the host of a virtual machine, packet and raw sockets past
/// every rule, MPTCP past Landlock's rule for TCP (landlock-lsm/linux#54).
fn socket(plan: &Plan) -> Vec<Rule> {
    let mut domains = Vec::new();
    if plan.unix_sockets {
        domains.push(AF_UNIX);
    }
    let transports: &[(u32, u32)] = match plan.network {
        Network::Denied => &[],
        Network::PortOnly => &[(SOCK_STREAM, IPPROTO_TCP)],
        Network::Namespace => &[(SOCK_STREAM, IPPROTO_TCP), (SOCK_DGRAM, IPPROTO_UDP)],
    };
    if !transports.is_empty() {
        domains.extend([AF_INET, AF_INET6]);
    }
    // Listing interfaces needs it. Outside an own namespace it would tell of
    // the host's.
    let routes = plan.network == Network::Namespace;
    if routes {
        domains.push(AF_NETLINK);
    }
    if domains.is_empty() {
        return Vec::new();
    }
    let mut rules = vec![is_not(0, &domains)];
    if routes {
        rules.push(Rule(vec![is(0, AF_NETLINK), not(2, NETLINK_ROUTE)]));
    }
    for domain in [AF_INET, AF_INET6] {
        if transports.is_empty() {
            break;
        }
        for kind in 0..=SOCK_TYPE_MASK {
            let protocol = transports.iter().find(|(allowed, _)| *allowed == kind);
            let mut rule = vec![is(0, domain), bits(1, SOCK_TYPE_MASK, kind)];
            if let Some((_, protocol)) = protocol {
                rule.extend([not(2, IPPROTO_DEFAULT), not(2, *protocol)]);
            }
            rules.push(Rule(rule));
        }
    }
    rules
}

/// A pair is a pipe of two ends and harmless, but a datagram one can be sent
/// to another address at every message. SOCK_RAW is taken for SOCK_DGRAM, so
/// the types are those that are known to stay put.
fn socketpair(plan: &Plan) -> Vec<Rule> {
    let mut rules = vec![is_not(0, &[AF_UNIX])];
    if !plan.unix_sockets {
        let kinds = (0..=SOCK_TYPE_MASK).filter(|kind| !PAIR_TYPES.contains(kind));
        rules.extend(kinds.map(|kind| Rule(vec![bits(1, SOCK_TYPE_MASK, kind)])));
    }
    rules
}

fn has(argument: u8, bit: u32) -> Rule {
    Rule(vec![bits(argument, bit, bit)])
}

fn is_not(argument: u8, values: &[u32]) -> Rule {
    Rule(values.iter().map(|value| not(argument, *value)).collect())
}

fn is_not_null(argument: u8) -> Rule {
    Rule(vec![not_null(argument)])
}

fn not_null(argument: u8) -> Condition {
    Condition {
        argument,
        test: Test::IsNotNull,
    }
}

fn is_null(argument: u8) -> Condition {
    Condition {
        argument,
        test: Test::IsNull,
    }
}

fn is(argument: u8, value: u32) -> Condition {
    Condition {
        argument,
        test: Test::Is(value),
    }
}

fn not(argument: u8, value: u32) -> Condition {
    Condition {
        argument,
        test: Test::IsNot(value),
    }
}

fn bits(argument: u8, mask: u32, value: u32) -> Condition {
    Condition {
        argument,
        test: Test::Bits(mask, value),
    }
}

// include/uapi/linux/sched.h
const CLONE_NEW: [u32; 7] = [
    0x0002_0000, // CLONE_NEWNS
    0x0200_0000, // CLONE_NEWCGROUP
    0x0400_0000, // CLONE_NEWUTS
    0x0800_0000, // CLONE_NEWIPC
    0x1000_0000, // CLONE_NEWUSER
    0x2000_0000, // CLONE_NEWPID
    0x4000_0000, // CLONE_NEWNET
];

// include/uapi/asm-generic/ioctls.h
const TERMINAL_REQUESTS: [u32; 4] = [
    0x5412, // TIOCSTI
    0x541c, // TIOCLINUX
    0x541d, // TIOCCONS
    0x5423, // TIOCSETD
];

// include/linux/socket.h, include/linux/net.h, include/uapi/linux/in.h
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const NETLINK_ROUTE: u32 = 0;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const SOCK_SEQPACKET: u32 = 5;
/// The type; above it stand SOCK_CLOEXEC and SOCK_NONBLOCK.
const SOCK_TYPE_MASK: u32 = 0xf;
const PAIR_TYPES: [u32; 2] = [SOCK_STREAM, SOCK_SEQPACKET];
const IPPROTO_DEFAULT: u32 = 0;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
const MSG_FASTOPEN: u32 = 0x2000_0000;

/// S_ISUID and S_ISGID (include/uapi/linux/stat.h).
const SET_IDS: [u32; 2] = [0o4000, 0o2000];
/// S_IWOTH.
const WRITTEN_BY_ALL: u32 = 0o2;
/// O_CREAT and the bit of O_TMPFILE that is its own: without one of these no
/// mode is read (include/uapi/asm-generic/fcntl.h).
const MAKING: [u32; 2] = [0o100, 0o20_000_000];

// include/uapi/asm-generic/resource.h, include/uapi/linux/personality.h
const RLIMIT_CORE: u32 = 4;
const PRIO_PROCESS: u32 = 0;
const PER_LINUX: u32 = 0;
const ADDR_NO_RANDOMIZE: u32 = 0x0004_0000;
/// Asks for the personality and sets none.
const PER_QUERY: u32 = 0xffff_ffff;
