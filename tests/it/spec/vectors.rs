//! The vectors of SPEC §12.3 and §12.4, assembled by their recipes.

use std::collections::BTreeMap;

use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use super::{
    DEV_SEED, GENESIS, canonical, code_hash, first_code, hex, section, sha256, spec, table_rows,
};

/// Follows the recipes of SPEC §12.3 and §12.4 with nothing of aegis, so that
/// the text alone is shown to be enough.
#[test]
fn vectors_assembled_as_described_have_the_published_hashes() {
    let text = spec();
    let published: BTreeMap<String, (usize, String)> = table_rows(section(&text, "## 12. "))
        .into_iter()
        .filter_map(|cells| {
            let name = first_code(&cells[0])?.strip_suffix(".aarl")?.to_owned();
            Some((name, (cells[1].parse().ok()?, code_hash(&cells[2])?)))
        })
        .collect();
    let assembled = assemble();
    assert_eq!(
        published.keys().collect::<Vec<_>>(),
        assembled.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &assembled {
        let actual = (bytes.len(), sha256(bytes.as_bytes()));
        assert_eq!(actual, published[name], "{name}");
    }
}

fn assemble() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut file = |name: &str, rows: &[String]| {
        let bytes: String = rows.iter().map(|row| format!("{row}\n")).collect();
        files.insert(name.to_owned(), bytes);
    };
    let tamper = |call| Session::echo(call, "tamper-vector-policy-set", None);
    let indeterminate = |call| Session::echo(call, "indeterminate-vector-policy-set", None);

    let mut rows = tamper("call-vector-1").rows;
    edit(&mut rows[3], "prev_hash", Some(json!("f".repeat(64))));
    file("prev_hash_mismatch", &rows);

    let Session { mut rows, tail, .. } = tamper("call-vector-2");
    let mut copy = rows[1].clone();
    edit(&mut copy, "prev_hash", Some(json!(tail)));
    rows.push(copy);
    file("seq_out_of_order", &rows);

    let mut rows = tamper("call-vector-3").rows;
    rows.truncate(3);
    edit(&mut rows[2], "signature", None);
    file("bad_signature", &rows);

    let mut rows = tamper("call-vector-4").rows;
    let foreign = SigningKey::from_bytes(&[9; 32]).verifying_key();
    let foreign = sha256(foreign.as_bytes());
    edit(&mut rows[3], "key_id", Some(json!(foreign)));
    file("key_id_mismatch", &rows);

    let Session { mut rows, tail, .. } = tamper("call-vector-5-s0");
    rows.truncate(3);
    let stand_in = "tamper-vector-policy-set";
    rows.extend(Session::echo("call-vector-5-s1", stand_in, Some(&tail)).rows);
    file("session_boundary_broken", &rows);

    let mut rows = tamper("call-vector-6").rows;
    rows.insert(2, "not json at all".to_owned());
    file("malformed_line", &rows);

    file("untrusted_key", &tamper("call-vector-7").rows);

    let mut session = Session::open(None);
    for _ in 0..2 {
        session.signed(json!({
            "line_type": "decision",
            "approval_id": "apr-vector-8",
            "verdict": { "verdict": "denied", "reason": "operator said no" },
        }));
    }
    session.signed(json!({ "line_type": "close" }));
    file("duplicate_decision", &session.rows);

    let mut session = indeterminate("call-unknown-line-type");
    session.unsigned(json!({ "line_type": "attestation" }));
    file("unknown_line_type", &session.rows);

    let mut session = indeterminate("call-reserved-checkpoint");
    session.signed(json!({ "line_type": "checkpoint" }));
    file("reserved_checkpoint", &session.rows);

    file(
        "unanchored_tail",
        &indeterminate("call-unanchored-tail").rows[..2],
    );

    let mut session = Session::open(None);
    session.intent("call-missing-line");
    session.seq += 1;
    session.signed(json!({ "line_type": "close" }));
    file("missing_line", &session.rows);

    file("empty_chain", &[]);

    file(
        "torn_final_line",
        &indeterminate("call-torn-final-line").rows,
    );
    files
        .entry("torn_final_line".to_owned())
        .or_default()
        .push_str(r#"{"call_id":"call-torn-final-line","line_type":"outc"#);
    files
}

/// The chain rule of SPEC §4, once more and by itself.
struct Session {
    rows: Vec<String>,
    seq: u64,
    tail: String,
    key: SigningKey,
}

impl Session {
    fn open(prev_session_tail: Option<&str>) -> Self {
        let key = SigningKey::from_bytes(DEV_SEED);
        let mut body = json!({
            "line_type": "open",
            "public_key": hex(key.verifying_key().as_bytes()),
        });
        if let Some(tail) = prev_session_tail {
            body["prev_session_tail"] = json!(tail);
        }
        let mut session = Self {
            rows: Vec::new(),
            seq: 0,
            tail: GENESIS.to_owned(),
            key,
        };
        session.signed(body);
        session
    }

    fn echo(call_id: &str, stand_in: &str, prev_session_tail: Option<&str>) -> Self {
        let mut session = Self::open(prev_session_tail);
        session.intent(call_id);
        session.signed(json!({
            "line_type": "outcome",
            "call_id": call_id,
            "tool_id": "echo",
            "request_digest": sha256(b"{}"),
            "policy_set_hash": sha256(stand_in.as_bytes()),
            "policy": { "status": "allowed" },
            "capability": { "status": "denied", "reason": "not evaluated" },
            "execution": { "status": "success" },
            "decision_axes": {},
        }));
        session.signed(json!({ "line_type": "close" }));
        session
    }

    fn intent(&mut self, call_id: &str) {
        self.unsigned(json!({
            "line_type": "intent",
            "call_id": call_id,
            "tool_id": "echo",
            "request_digest": sha256(b"{}"),
        }));
    }

    fn signed(&mut self, mut body: Value) {
        self.place(&mut body);
        body["key_id"] = json!(sha256(self.key.verifying_key().as_bytes()));
        let signature = self.key.sign(canonical(&body).as_bytes());
        body["signature"] = json!(hex(&signature.to_bytes()));
        self.append(&body);
    }

    fn unsigned(&mut self, mut body: Value) {
        self.place(&mut body);
        self.append(&body);
    }

    fn place(&self, body: &mut Value) {
        body["schema_version"] = json!(2);
        body["seq"] = json!(self.seq);
        body["prev_hash"] = json!(self.tail);
    }

    fn append(&mut self, body: &Value) {
        let row = canonical(body);
        self.tail = sha256(row.as_bytes());
        self.seq += 1;
        self.rows.push(row);
    }
}

fn edit(row: &mut String, member: &str, value: Option<Value>) {
    let mut line: Value = serde_json::from_str(row).expect("a row is JSON");
    let members = line.as_object_mut().expect("a row is an object");
    match value {
        Some(value) => members.insert(member.to_owned(), value),
        None => members.remove(member),
    };
    *row = canonical(&line);
}
