//! What the client was last shown of each tool (SPEC §5.4).
//!
//! A digest names the definition that the client had been shown when it
//! called. So whatever may have shown it another one, in a way that is not
//! understood here, makes that digest unknown: a missing one says nothing, a
//! stale one would say what is not so.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::listing::{self, Listed, Said};
use super::pending::is_usable;
use crate::rpc::message::{Kind, Message, RpcId, Sum};
use crate::wire::digest::{Digest, ToolDefinition};

/// The open `tools/list` requests of a client, and what it was shown.
#[derive(Default)]
pub(super) struct Listings {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: HashMap<RpcId, Open>,
    /// Requests opened so far.
    opened: u64,
    /// Whether lists may come that no open request awaits.
    wary: bool,
    /// By the SHA-256 of the tool's name.
    shown: HashMap<Sum, Digest<ToolDefinition>>,
}

/// A request that has no answer yet, or several under one id.
struct Open {
    /// Later ones are greater.
    number: u64,
    /// How many requests have this id.
    count: usize,
    claim: Claim,
}

/// What an answer is, as far as its id tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// The one to a `tools/list`.
    Awaited,
    /// The same, but the client gave up on it, and may not look at it.
    GivenUp,
    /// To a `tools/list` or to something else.
    Doubtful,
}

impl Listings {
    /// Takes note of a message from the client that goes on to the child.
    pub(super) fn asked(&self, message: &Message) {
        let method = message.method.as_whole();
        if method == Some("notifications/cancelled") {
            if let Some(open) = self.lock().open.get_mut(&message.params.request_id)
                && open.claim == Claim::Awaited
            {
                open.claim = Claim::GivenUp;
            }
        } else if message.kind() == Kind::Request {
            self.lock().request(&message.id, method == Some(TOOLS_LIST));
        }
    }

    /// Takes note that a frame which could not be read goes on to the child:
    /// it may ask for the list under any id.
    pub(super) fn asked_unreadably(&self) {
        self.lock().wary = true;
    }

    /// Takes note that something which could not be read goes on to the
    /// client. Whether it may have been a list.
    pub(super) fn lose(&self) -> bool {
        let mut state = self.lock();
        let awaits = state.awaits();
        if awaits {
            state.shown.clear();
        }
        awaits
    }

    /// Takes note that what could not be read was an answer to this id.
    pub(super) fn close(&self, id: &RpcId) {
        self.lock().claim(id);
    }

    /// Takes note of what a frame of the child, of which `messages` were read,
    /// shows to the client; `bytes` are those of the frame, unless it is too
    /// long to be held. Returns what is to go on in its place when it shows a
    /// tool that is `hidden`, which has to say the same of a tool each time.
    pub(super) fn answered(
        &self,
        messages: &[Message],
        bytes: Option<&[u8]>,
        hidden: impl Fn(&str) -> bool,
    ) -> Option<Vec<u8>> {
        let claims = self.claims(messages);
        if claims.is_empty() {
            return None;
        }
        let read = bytes.and_then(|frame| Some((frame, listing::messages(frame)?)));
        let Some((frame, read)) = read.filter(|(_, read)| read.len() == messages.len()) else {
            self.lock().shown.clear();
            return None;
        };
        let mut cuts = Vec::new();
        for (index, claim) in claims {
            let said = listing::said(frame, read[index]);
            cuts.append(&mut self.take(frame, said, claim, &hidden));
        }
        (!cuts.is_empty()).then(|| listing::without(frame, &cuts))
    }

    /// The definition last shown to the client of the tool whose name has this
    /// SHA-256.
    pub(super) fn digest_of(&self, tool: &Sum) -> Option<Digest<ToolDefinition>> {
        self.lock().shown.get(tool).copied()
    }

    /// Which of `messages` may answer a `tools/list`.
    fn claims(&self, messages: &[Message]) -> Vec<(usize, Claim)> {
        let mut state = self.lock();
        let responses = messages
            .iter()
            .enumerate()
            .filter(|(_, message)| message.kind() == Kind::Response && is_usable(&message.id));
        responses
            .filter_map(|(index, message)| Some((index, state.claim(&message.id)?)))
            .collect()
    }

    /// Learns what an answer says, and returns what of it is to be cut out.
    fn take(
        &self,
        frame: &[u8],
        said: Said<'_>,
        claim: Claim,
        hidden: impl Fn(&str) -> bool,
    ) -> Vec<Range<usize>> {
        let mut tools = match said {
            Said::Error => return Vec::new(),
            Said::Nothing => {
                // Then it answers something else, and the list is to come.
                self.lock().wary |= claim == Claim::Awaited;
                return Vec::new();
            }
            Said::Unclear => {
                self.lock().shown.clear();
                return Vec::new();
            }
            Said::Tools(tools) => tools,
        };
        let mut cuts = Vec::new();
        if claim != Claim::Doubtful {
            cuts = listing::cuts(frame, &tools, &hidden);
            tools.retain(|tool| !tool.name.as_deref().is_some_and(&hidden));
        }
        // Hashed before the lock is taken: calls wait for that.
        let shown = digests(&tools);
        self.lock().show(shown, claim);
        cuts
    }

    /// A panic under the lock leaves whole entries.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn awaits(&self) -> bool {
        self.wary || !self.open.is_empty()
    }

    fn request(&mut self, id: &RpcId, is_list: bool) {
        if let Some(open) = self.open.get_mut(id) {
            open.count += 1;
            open.claim = Claim::Doubtful;
        } else if is_list {
            if self.open.len() == MAX_OPEN_LISTS {
                self.make_room();
            }
            self.opened += 1;
            let open = Open {
                number: self.opened,
                count: 1,
                claim: Claim::Awaited,
            };
            self.open.insert(id.clone(), open);
        }
    }

    /// Drops the oldest open request, if there is one that the client gave up
    /// on; an answer to another one will have to be told by what it says.
    fn make_room(&mut self) {
        let oldest = |(_, open): &(&RpcId, &Open)| (open.claim != Claim::GivenUp, open.number);
        let Some((id, open)) = self.open.iter().min_by_key(oldest) else {
            return;
        };
        self.wary |= open.claim != Claim::GivenUp;
        let id = id.clone();
        self.open.remove(&id);
    }

    /// Takes the claim that an answer with this id has to be a list. While a
    /// list is awaited every answer has one: there are clients that take `"1"`
    /// or `1.0` for the `1` that they sent.
    fn claim(&mut self, id: &RpcId) -> Option<Claim> {
        let awaits = self.awaits();
        let Some(open) = self.open.get_mut(id) else {
            return awaits.then_some(Claim::Doubtful);
        };
        let claim = open.claim;
        open.count -= 1;
        if open.count == 0 {
            self.open.remove(id);
        }
        Some(claim)
    }

    fn show(&mut self, tools: HashMap<Sum, Option<Digest<ToolDefinition>>>, claim: Claim) {
        if claim != Claim::Awaited {
            // Shown or not: what is the same anyway stays known.
            for (name, digest) in tools {
                if self.shown.get(&name).copied() != digest {
                    self.shown.remove(&name);
                }
            }
            return;
        }
        let new = tools.keys().filter(|name| !self.shown.contains_key(*name));
        if self.shown.len() + new.count() > MAX_TOOLS {
            self.shown.clear();
        }
        if tools.len() > MAX_TOOLS {
            return;
        }
        for (name, digest) in tools {
            match digest {
                Some(digest) => self.shown.insert(name, digest),
                None => self.shown.remove(&name),
            };
        }
    }
}

/// The digest of each tool, by the SHA-256 of its name; none where there are
/// two definitions of one name, or one that has no canonical form.
fn digests(tools: &[Listed<'_>]) -> HashMap<Sum, Option<Digest<ToolDefinition>>> {
    let mut digests = HashMap::with_capacity(tools.len());
    for tool in tools {
        let Some(name) = &tool.name else { continue };
        digests
            .entry(Digest::of(name.as_bytes()))
            .and_modify(|digest| *digest = None)
            .or_insert_with(|| tool.digest());
    }
    digests
}

const TOOLS_LIST: &str = "tools/list";

/// How many `tools/list` requests without an answer are remembered by id.
const MAX_OPEN_LISTS: usize = 1024;

/// Tools of which the definition is known, at 64 bytes each.
const MAX_TOOLS: usize = 16_384;

#[cfg(test)]
mod tests;
