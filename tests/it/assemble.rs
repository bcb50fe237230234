//! Builds Chain files Line by Line, right or wrong.
//!
//! Canonical form, signing and the chain rule are the library's own; whether
//! a rule is kept is up to the test. A Line goes in as a typed body, as raw
//! members, or as the bytes of a row.

use std::fmt;
use std::sync::Arc;

use aegis::sign::SigningKey;
use aegis::wire::canon;
use aegis::wire::digest::{self, Digest};
use aegis::wire::facts::Follows;
use aegis::wire::hex::Bytes;
use aegis::wire::line::{self, Body, Place, Signed, Unsigned, Written};
use aegis::wire::outcome::{Capability, DecisionAxes, Execution, Outcome, Policy};
use serde_json::{Map, Value, json};

pub(crate) type LineHash = Digest<digest::Line>;

/// A Chain file under construction, and what its writer would remember.
#[derive(Clone)]
pub(crate) struct Chain {
    pub(crate) rows: Vec<Vec<u8>>,
    pub(crate) seq: u64,
    /// Hash of the last Line, whatever the next one claims.
    pub(crate) tail: LineHash,
    /// Who signs from now on.
    pub(crate) key: Arc<SigningKey>,
    /// The stand-in for a Policy Set that outcomes name.
    pub(crate) policy_set: &'static str,
}

impl Chain {
    /// An empty file, to be signed with the development key.
    pub(crate) fn new() -> Self {
        Self {
            rows: Vec::new(),
            seq: 0,
            tail: Digest::GENESIS,
            key: Arc::new(SigningKey::insecure_dev()),
            policy_set: "golden-fixture-policy-set",
        }
    }

    /// A file whose first Session is open.
    pub(crate) fn opened() -> Self {
        let mut chain = Self::new();
        chain.open();
        chain
    }

    /// One Session of one Call.
    pub(crate) fn session(call_id: &str) -> Self {
        let mut chain = Self::opened();
        chain.call(call_id).close();
        chain
    }

    /// Begins a Session that names the one before, if there is one.
    pub(crate) fn open(&mut self) -> &mut Self {
        let tail = (!self.rows.is_empty()).then_some(self.tail);
        self.open_after(tail)
    }

    /// Begins a Session that names `tail`.
    pub(crate) fn open_after(&mut self, tail: Option<LineHash>) -> &mut Self {
        self.open_following(tail, Vec::new())
    }

    pub(crate) fn open_following(
        &mut self,
        prev_session_tail: Option<LineHash>,
        follows: Vec<Follows>,
    ) -> &mut Self {
        self.begin();
        self.signed(&line::Open {
            public_key: Bytes(*self.key.public_key().as_bytes()),
            prev_session_tail,
            facts: line::OpenFacts {
                follows,
                ..line::OpenFacts::default()
            },
        })
    }

    /// Begins a Session whose `open` has these members besides.
    pub(crate) fn open_saying(&mut self, said: Value) -> &mut Self {
        let mut members = json!({
            "line_type": "open",
            "public_key": self.key.public_key().to_string(),
        });
        let members_of = members.as_object_mut().expect("an object");
        if !self.rows.is_empty() {
            members_of.insert("prev_session_tail".to_owned(), json!(self.tail.to_string()));
        }
        let Value::Object(said) = said else {
            panic!("members are an object");
        };
        members_of.extend(said);
        self.begin().raw_signed(members)
    }

    /// What an `open` starts from: position 0, and no Line before it.
    pub(crate) fn begin(&mut self) -> &mut Self {
        self.seq = 0;
        self.tail = Digest::GENESIS;
        self
    }

    pub(crate) fn intent(&mut self, call_id: &str) -> &mut Self {
        self.unsigned(&intent(call_id, "echo", b"{}"))
    }

    pub(crate) fn outcome(&mut self, call_id: &str) -> &mut Self {
        let outcome = outcome(call_id, "echo", b"{}", self.policy_set);
        self.signed(&outcome)
    }

    pub(crate) fn call(&mut self, call_id: &str) -> &mut Self {
        self.intent(call_id).outcome(call_id)
    }

    pub(crate) fn decision(&mut self, approval_id: &str) -> &mut Self {
        self.signed(&line::Decision {
            approval_id: approval_id.to_owned(),
            verdict: line::Verdict::Denied {
                reason: "operator said no".to_owned(),
            },
        })
    }

    pub(crate) fn close(&mut self) -> &mut Self {
        self.signed(&line::Close::default())
    }

    pub(crate) fn checkpoint(&mut self) -> &mut Self {
        self.signed(&line::Checkpoint {})
    }

    /// Appends a Line of a type that is signed.
    pub(crate) fn signed<B: Body<Auth = Signed>>(&mut self, body: &B) -> &mut Self {
        let key = Arc::clone(&self.key);
        let sign = |message: &[u8]| *key.sign(message).as_bytes();
        let written = line::signed(self.place(), body, key.key_id(), sign);
        self.append(written.expect("a body in the value space"))
    }

    /// Appends a Line of a type that is not.
    pub(crate) fn unsigned<B: Body<Auth = Unsigned>>(&mut self, body: &B) -> &mut Self {
        let written = line::unsigned(self.place(), body);
        self.append(written.expect("a body in the value space"))
    }

    /// Appends a Line of these members; what every Line carries is added
    /// where they do not say otherwise.
    pub(crate) fn raw(&mut self, members: Value) -> &mut Self {
        let members = self.placed(members);
        self.spelled(&canon::to_canonical(&members).expect("members in the value space"))
    }

    /// As [`Self::raw`], and signed.
    pub(crate) fn raw_signed(&mut self, members: Value) -> &mut Self {
        let mut members = self.placed(members);
        let key_id = json!(self.key.key_id().to_string());
        members.entry("key_id").or_insert(key_id);
        let input = canon::to_canonical(&members).expect("members in the value space");
        let signature = self.key.sign(&input).to_string();
        members.entry("signature").or_insert(json!(signature));
        self.raw(members.into())
    }

    /// Appends a row as it is spelled. The next Line chains to its canonical
    /// form, if it has one.
    pub(crate) fn spelled(&mut self, row: &[u8]) -> &mut Self {
        if let Ok(canonical) = canon::canonicalize(row) {
            self.tail = Digest::of(&canonical);
        }
        self.seq += 1;
        self.row(row)
    }

    /// Appends a row that the next Line knows nothing of.
    pub(crate) fn row(&mut self, row: &[u8]) -> &mut Self {
        self.rows.push(row.to_vec());
        self
    }

    /// As if `n` Lines had not been written.
    pub(crate) fn skip(&mut self, n: u64) -> &mut Self {
        self.seq += n;
        self
    }

    /// Changes the members of a row that is there, and nothing after it.
    pub(crate) fn edit(
        &mut self,
        row: usize,
        f: impl FnOnce(&mut Map<String, Value>),
    ) -> &mut Self {
        let mut members: Map<_, _> = serde_json::from_slice(&self.rows[row]).expect("an object");
        f(&mut members);
        self.rows[row] = canon::to_canonical(&members).expect("members in the value space");
        self
    }

    /// Changes the last Line; what comes next chains to it as changed.
    pub(crate) fn edit_last(&mut self, f: impl FnOnce(&mut Map<String, Value>)) -> &mut Self {
        self.edit(self.rows.len() - 1, f);
        self.tail = self.hash(self.rows.len() - 1);
        self
    }

    /// The hash of a row that is a Line.
    pub(crate) fn hash(&self, row: usize) -> LineHash {
        Digest::of(&canon::canonicalize(&self.rows[row]).expect("a canonical form"))
    }

    pub(crate) fn text(&self, row: usize) -> String {
        String::from_utf8(self.rows[row].clone()).expect("a row of text")
    }

    /// The file: every row with its row end.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.rows
            .iter()
            .flat_map(|row| row.iter().chain(b"\n"))
            .copied()
            .collect()
    }

    fn placed(&self, members: Value) -> Map<String, Value> {
        let Value::Object(mut members) = members else {
            panic!("a Line is an object");
        };
        for (name, value) in [
            ("schema_version", json!(line::SCHEMA_VERSION)),
            ("seq", json!(self.seq)),
            ("prev_hash", json!(self.tail.to_string())),
        ] {
            members.entry(name).or_insert(value);
        }
        members
    }

    fn place(&self) -> Place {
        Place {
            seq: self.seq,
            prev_hash: self.tail,
            time: None,
        }
    }

    fn append(&mut self, written: Written) -> &mut Self {
        self.rows.push(written.bytes);
        self.tail = written.hash;
        self.seq += 1;
        self
    }
}

pub(crate) fn intent(call_id: &str, tool_id: &str, request: &[u8]) -> line::Intent {
    line::Intent {
        call_id: call_id.to_owned(),
        tool_id: tool_id.to_owned(),
        request_digest: Digest::of(request),
        cut: Default::default(),
    }
}

/// An outcome of a Call that was answered, with no optional member.
pub(crate) fn outcome(call_id: &str, tool_id: &str, request: &[u8], policy_set: &str) -> Outcome {
    Outcome {
        call_id: call_id.to_owned(),
        tool_id: tool_id.to_owned(),
        request_digest: Digest::of(request),
        policy_set_hash: Digest::of(policy_set.as_bytes()),
        policy: Policy::Allowed,
        capability: Capability::Denied {
            reason: "not evaluated".to_owned(),
            denied_capability: None,
        },
        execution: Execution::Success,
        grant_id: None,
        response_digest: None,
        wall_ms: None,
        peak_memory_bytes: None,
        decision_axes: DecisionAxes::default(),
        answer: None,
        tool_digest: None,
        resumes: None,
        shadow: None,
        egress_overlapping: None,
        cut: Default::default(),
        message_digest: None,
    }
}

/// A key that is not the development key.
pub(crate) fn foreign_key() -> Arc<SigningKey> {
    Arc::new(SigningKey::from_seed(&[9; 32]))
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.iter().map(|row| String::from_utf8_lossy(row));
        f.debug_list().entries(rows).finish()
    }
}
