//! One line of the matrix.

use super::super::seccomp::User;

/// An attempt, and what may come of it.
#[derive(Clone)]
pub(super) struct Row {
    /// A file of `tests/probes/`, and the arguments of its program. What
    /// stands in braces is filled in.
    pub(super) probe: &'static str,
    /// What is given besides `--confine --preset static`.
    pub(super) flags: &'static str,
    /// What it may say when it is confined.
    pub(super) confined: &'static [&'static str],
    /// Whether it changes the outside when nothing stops it.
    pub(super) touches: bool,
    pub(super) class: Class,
    pub(super) start: Start,
    /// Who makes it, if not every user.
    only: Option<User>,
    root: Excuse,
    plain: Excuse,
}

/// What is promised of an attempt.
#[derive(Clone, Copy)]
pub(super) enum Class {
    /// It never changes, and never learns from, what was not granted.
    Guaranteed,
    /// It is not stopped. The threat model says so, by this name.
    Open(&'static str),
}

/// How aegis is started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Plainly,
    /// With descriptor 7 open on a file outside.
    WithDescriptor,
    /// With a file outside as standard error, open to read and to write.
    WithErrorsInFile,
    /// From a terminal, that is also its standard error.
    FromTerminal,
    /// In the process group of the bystander.
    AmongOthers,
}

/// What a control may say besides `open`, and why.
pub(super) type Excuse = (&'static [&'static str], &'static str);

/// Open without confinement for every user, and refused by Landlock with it.
pub(super) const fn row(probe: &'static str) -> Row {
    Row {
        probe,
        flags: "",
        confined: EACCES,
        touches: false,
        class: Class::Guaranteed,
        start: Start::Plainly,
        only: None,
        root: NO_EXCUSE,
        plain: NO_EXCUSE,
    }
}

/// The same, refused by the system call filters.
pub(super) const fn call(probe: &'static str) -> Row {
    row(probe).says(EPERM)
}

impl Row {
    pub(super) const fn says(mut self, confined: &'static [&'static str]) -> Self {
        self.confined = confined;
        self
    }

    pub(super) const fn with(mut self, flags: &'static str) -> Self {
        self.flags = flags;
        self
    }

    pub(super) const fn touching(mut self) -> Self {
        self.touches = true;
        self
    }

    /// It is not stopped, which the threat model says under this name.
    pub(super) const fn open(mut self, item: &'static str) -> Self {
        self.class = Class::Open(item);
        self.confined = OPEN;
        self
    }

    pub(super) const fn started(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    pub(super) const fn by(mut self, user: User) -> Self {
        self.only = Some(user);
        self
    }

    pub(super) const fn unless(mut self, said: &'static [&'static str], why: &'static str) -> Self {
        self.root = (said, why);
        self.plain = (said, why);
        self
    }

    pub(super) const fn plain_unless(
        mut self,
        said: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        self.plain = (said, why);
        self
    }

    pub(super) fn is_for(&self, user: User) -> bool {
        self.only.is_none_or(|only| only == user)
    }

    pub(super) fn excuse(&self, user: User) -> Excuse {
        match user {
            User::Root => self.root,
            User::Plain => self.plain,
        }
    }

    /// The file of the probe, without its ending.
    pub(super) fn file(&self) -> String {
        self.probe.split(' ').next().unwrap().to_owned()
    }

    /// The same, with the attempt, if its program knows several.
    pub(super) fn attempt(&self) -> String {
        let mut words = self.probe.split(' ');
        let file = words.next().unwrap();
        match (file.starts_with("outside/"), words.next()) {
            (true, Some(attempt)) => format!("{file} {attempt}"),
            _ => file.to_owned(),
        }
    }

    /// Whether nothing is to be started at all.
    pub(super) fn is_refused(&self) -> bool {
        self.confined == REFUSED
    }
}

pub(super) const OPEN: &[&str] = &["open"];
pub(super) const EACCES: &[&str] = &["blocked EACCES"];
pub(super) const EPERM: &[&str] = &["blocked EPERM"];
pub(super) const ENOSYS: &[&str] = &["blocked ENOSYS"];
/// What is told of a start that failed, where the probe says nothing.
pub(super) const REFUSED: &[&str] = &["nothing, exit 126"];
pub(super) const NO_EXCUSE: Excuse = (&[], "");
