//! Audit directories: what `aegis wrap --audit DIR/` leaves in one, whatever
//! ends it, and what `aegis verify DIR` finds.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::exe::{Aegis, Ran, write_key};

const AEGIS: &str = env!("CARGO_BIN_EXE_aegis");
const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\
    \"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"x\"}}}\n";

/// A signing key, and a path for an audit directory.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        let room = Self(tempfile::tempdir().unwrap());
        write_key(&room.0.path().join("key"));
        room
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("d")
    }

    fn wrap(&self, audit: &Path, flags: &[&str]) -> Vec<String> {
        let audit = audit.to_str().unwrap();
        let key = self.0.path().join("key");
        let mut args = vec!["wrap", "--audit", audit, "--signing-key"];
        args.push(key.to_str().unwrap());
        args.extend(flags);
        args.extend(["--", AEGIS, "__demo-server"]);
        args.into_iter().map(str::to_owned).collect()
    }

    /// Makes a Segment of the room's directory appendable again.
    #[track_caller]
    fn recover(&self, segment: &str) {
        let recovered = Aegis::new()
            .args(["recover", &format!("d/{segment}")])
            .dir(self.0.path())
            .run();
        assert_eq!(recovered.code(), 0, "{}", recovered.stderr);
    }

    fn slashed(&self) -> PathBuf {
        format!("{}/", self.path().display()).into()
    }

    /// One session with one call, closed, recorded at `audit`.
    fn run_at(&self, audit: &Path) -> Ran {
        Aegis::new().args(self.wrap(audit, &[])).stdin(CALL).run()
    }

    /// The same in the room's directory.
    #[track_caller]
    fn end_one(&self) {
        assert_answered(&self.run_at(&self.slashed()));
    }

    /// One session with one call that was answered, and still open.
    fn start(&self, flags: &[&str]) -> Live {
        let mut child = Command::new(AEGIS)
            .args(self.wrap(&self.slashed(), flags))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(CALL).unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert!(answer.contains("\"result\""), "{answer}");
        Live {
            child,
            input,
            output,
        }
    }

    fn kill_one(&self, flags: &[&str]) -> String {
        let before = self.segments();
        let live = self.start(flags);
        live.kill();
        let mut after = self.segments();
        after.retain(|name| !before.contains(name));
        assert_eq!(after.len(), 1);
        after.remove(0)
    }

    fn verify(&self) -> Ran {
        Aegis::verify().arg("d").dir(self.0.path()).run()
    }

    /// The verdicts by Segment, and the exit code.
    fn verdicts(&self) -> (BTreeMap<String, String>, i32) {
        let ran = self.verify();
        assert!(!ran.stderr.contains("not read"), "{}", ran.stderr);
        (verdicts(&ran), ran.code())
    }

    /// The same where so many entries are not Segments.
    fn verdicts_beside(&self, others: usize) -> BTreeMap<String, String> {
        let ran = self.verify();
        let note = format!("d: {others} entries not read");
        assert!(ran.stderr.contains(&note), "{}", ran.stderr);
        verdicts(&ran)
    }

    #[track_caller]
    fn assert_verified(&self, segments: usize) {
        let (verdicts, code) = self.verdicts();
        for (name, verdict) in &verdicts {
            assert_eq!(verdict, "Verified (unpinned)", "{name}");
        }
        assert_eq!((verdicts.len(), code), (segments, 0));
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).into_iter().flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn segments(&self) -> Vec<String> {
        let mut names = self.entries();
        names.retain(|name| name.ends_with(".aarl"));
        names
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap()
    }

    /// What the Segment `name` follows.
    fn follows(&self, name: &str) -> Vec<String> {
        let bytes = self.bytes(name);
        let open = bytes.split(|&b| b == b'\n').next().unwrap();
        let open: Value = serde_json::from_slice(open).unwrap();
        let follows = open["follows"].as_array().cloned().unwrap_or_default();
        let names = follows.iter().map(|f| f["segment"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }

    /// Asserts that each Segment is followed once, but for one at the end.
    #[track_caller]
    fn assert_each_followed_once(&self) {
        let segments = self.segments();
        let mut followed: Vec<_> = segments.iter().flat_map(|s| self.follows(s)).collect();
        followed.sort();
        let mut distinct = followed.clone();
        distinct.dedup();
        assert_eq!(distinct, followed);
        assert_eq!(followed.len(), segments.len() - 1);
    }
}

/// The name of a Segment that no process here makes.
fn named(n: usize) -> String {
    format!("{FOREIGN}{n:016x}.aarl")
}

#[track_caller]
fn assert_answered(ran: &Ran) {
    assert!(ran.stdout.contains("\"result\""), "{}", ran.stderr);
}

fn verdicts(verified: &Ran) -> BTreeMap<String, String> {
    let mut verdicts = BTreeMap::new();
    let mut lines = verified.stdout.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("input d/") {
            verdicts.insert(name.to_owned(), lines.next().unwrap().to_owned());
        }
    }
    verdicts
}

struct Live {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Live {
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        drop(self.input);
        let mut rest = String::new();
        self.output.read_line(&mut rest).unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn sixteen_starts_at_once_have_a_segment_each() {
    let room = Room::new();
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| room.end_one());
        }
    });
    room.assert_verified(16);
    let all_live: Vec<_> = (0..16).map(|_| room.start(&[])).collect();
    for live in all_live {
        live.end();
    }
    room.end_one();
    room.assert_verified(33);
    room.assert_each_followed_once();
}

#[test]
fn a_directory_is_made_with_its_parents_and_private() {
    let room = Room::new();
    let deep = format!("{}/e/f/", room.path().display());
    for _ in 0..2 {
        assert_answered(&room.run_at(Path::new(&deep)));
    }
    for path in ["", "e", "e/f"] {
        let mode = fs::metadata(room.path().join(path)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
    }
    for entry in fs::read_dir(deep).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// SPEC [SEG-5].
#[test]
fn the_next_start_anchors_what_a_killed_one_left() {
    for durability in ["full", "intent", "process"] {
        let room = Room::new();
        let killed = room.kill_one(&["--durability", durability]);
        let (verdicts, code) = room.verdicts();
        assert!(
            verdicts[&killed].starts_with("Indeterminate: "),
            "{verdicts:?}"
        );
        assert_eq!(code, 3);
        room.end_one();
        room.assert_verified(2);
        room.assert_each_followed_once();
    }
}

/// SPEC [SEG-2].
#[test]
fn a_start_that_is_killed_at_any_moment_leaves_a_segment_or_none() {
    let room = Room::new();
    for i in 0..80 {
        let mut child = Command::new(AEGIS)
            .args(room.wrap(&room.slashed(), &[]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(300 * i));
        child.kill().unwrap();
        child.wait().unwrap();
        for name in room.segments() {
            assert!(room.bytes(&name).ends_with(b"\n"), "{name}");
        }
    }
    room.end_one();
    room.end_one();
    room.assert_verified(room.segments().len());
    room.assert_each_followed_once();
    let mut expected = vec![".aegis-index".to_owned()];
    expected.extend(room.segments());
    assert_eq!(room.entries(), expected);
}

/// Two Segments, the first of them followed by the second.
fn followed() -> (Room, String, String) {
    let room = Room::new();
    let first = room.kill_one(&[]);
    room.end_one();
    room.assert_verified(2);
    let mut rest = room.segments();
    rest.retain(|name| *name != first);
    let second = rest.remove(0);
    (room, first, second)
}

#[test]
fn a_followed_segment_that_is_deleted_is_missed() {
    let (room, first, second) = followed();
    fs::remove_file(room.path().join(&first)).unwrap();
    let (verdicts, code) = room.verdicts();
    let expected = format!("Indeterminate: segment {first}, which {second} follows, is not here");
    assert_eq!((&verdicts[&second], code), (&expected, 3));
}

#[test]
fn a_followed_segment_that_is_swapped_or_cut_is_told() {
    let (room, first, second) = followed();
    let path = room.path().join(&first);
    let whole = room.bytes(&first);
    let end = whole[..whole.len() - 1].iter().rposition(|&b| b == b'\n');
    let other = Room::new();
    other.end_one();
    let swapped = other.bytes(&other.segments()[0]);
    for bytes in [&whole[..=end.unwrap()], &swapped] {
        fs::write(&path, bytes).unwrap();
        let (verdicts, code) = room.verdicts();
        let verdict = &verdicts[&first];
        assert!(
            verdict.starts_with(&format!("Tampered: segment {first} ends at "))
                && verdict.contains(&format!("but {second} follows it at ")),
            "{verdict}"
        );
        assert_eq!(code, 1);
    }
    // With all of it back, nothing is wrong.
    fs::write(&path, whole).unwrap();
    room.assert_verified(2);
}

#[test]
fn a_torn_segment_is_followed_and_verifies_once_it_is_recovered() {
    let room = Room::new();
    let killed = room.kill_one(&[]);
    let path = room.path().join(&killed);
    let whole = room.bytes(&killed);
    let last = whole[..whole.len() - 1].iter().rposition(|&b| b == b'\n');
    // The open Line stays whole; the rest is cut at many places, so that some
    // lack but their newline.
    let first = whole.iter().position(|&b| b == b'\n').unwrap() + 1;
    let cuts = (first..whole.len()).step_by(397);
    for cut in cuts.chain([last.unwrap(), whole.len() - 1, whole.len()]) {
        let room = Room::new();
        room.end_one();
        fs::write(room.path().join(&killed), &whole[..cut]).unwrap();
        room.end_one();
        let (verdicts, code) = room.verdicts();
        if code != 0 {
            assert!(
                verdicts[&killed].starts_with("Indeterminate: "),
                "{verdicts:?}"
            );
            assert_eq!(code, 3, "cut at {cut}");
        }
        room.recover(&killed);
        let ran = room.verify();
        assert_eq!(ran.code(), 0, "cut at {cut}: {}", ran.stdout);
        room.assert_each_followed_once();
    }
    assert!(path.exists());
}

#[test]
fn a_hole_is_no_reason_to_call_a_recovered_segment_tampered() {
    let room = Room::new();
    let killed = room.kill_one(&["--durability", "process"]);
    let mut bytes = room.bytes(&killed);
    let ends: Vec<_> = (0..bytes.len()).filter(|&i| bytes[i] == b'\n').collect();
    // As after a power cut: the intent is gone, the outcome behind it is not.
    bytes[ends[0] + 100..ends[1] - 100].fill(0);
    fs::write(room.path().join(&killed), bytes).unwrap();
    room.end_one();
    assert_eq!(room.verdicts().1, 1);
    room.recover(&killed);
    let ran = room.verify();
    assert_eq!(ran.code(), 0, "{}", ran.stdout);
    room.assert_each_followed_once();
}

#[test]
fn more_than_one_open_line_can_name_are_followed_by_several() {
    let room = Room::new();
    room.end_one();
    let bytes = room.bytes(&room.segments()[0]);
    for i in 0..150 {
        fs::write(room.path().join(named(i)), &bytes).unwrap();
    }
    for named in [64, 64, 25] {
        let before = room.segments();
        room.end_one();
        let mut after = room.segments();
        after.retain(|name| !before.contains(name));
        assert_eq!(room.follows(&after[0]).len(), named);
    }
    room.assert_verified(154);
    room.assert_each_followed_once();
}

#[test]
fn an_index_that_is_gone_or_wrong_is_made_anew() {
    let room = Room::new();
    let index = room.path().join(".aegis-index");
    room.end_one();
    room.end_one();
    let old = fs::read(&index).unwrap();
    room.end_one();
    for wrong in [
        None,
        Some(&b""[..]),
        Some(b"garbage"),
        Some(&old),
        Some(&old[..90]),
    ] {
        match wrong {
            None => fs::remove_file(&index).unwrap(),
            Some(bytes) => fs::write(&index, bytes).unwrap(),
        }
        room.end_one();
        room.assert_each_followed_once();
    }
    room.assert_verified(8);
}

#[test]
fn foreign_files_stop_no_start_and_taint_no_record() {
    let room = Room::new();
    room.end_one();
    for i in 0..300 {
        let path = room.path().join(named(i));
        fs::write(path, [b'{'; 100].repeat(i)).unwrap();
    }
    fs::create_dir(room.path().join(named(300))).unwrap();
    symlink("/dev/zero", room.path().join(named(301))).unwrap();
    let killed = room.kill_one(&[]);
    room.end_one();
    let verdicts = room.verdicts_beside(2);
    let ours = room
        .segments()
        .into_iter()
        .filter(|name| !name.starts_with(FOREIGN));
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours.len(), 3);
    for name in ours {
        assert_eq!(verdicts[&name], "Verified (unpinned)", "{name}");
    }
    assert!(verdicts.contains_key(&killed));
}

#[test]
fn no_record_whatever_its_state_becomes_tampered_by_being_followed() {
    let room = Room::new();
    room.end_one();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let records = records(&fixtures);
    assert!(records.len() > 100, "{}", records.len());
    for (i, record) in records.iter().enumerate() {
        let mut bytes = fs::read(record).unwrap();
        if bytes.starts_with(b"verdict:") {
            let header = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap();
            bytes.drain(..header + 2);
        }
        fs::write(room.path().join(named(i)), bytes).unwrap();
    }
    let before = verdicts(&room.verify());
    let mut followed = Vec::new();
    // One start names 64 of them at most.
    for turn in 0.. {
        assert!(turn <= records.len() / 64 + 2, "some are never followed");
        let known = room.segments();
        room.end_one();
        let mut new = room.segments();
        new.retain(|name| !known.contains(name));
        let follows = room.follows(&new[0]);
        followed.extend(follows.iter().filter(|f| before.contains_key(*f)).cloned());
        if follows.len() == 1 {
            break;
        }
    }
    assert!(followed.len() > 100, "{}", followed.len());
    let after = verdicts(&room.verify());
    let is =
        |verdicts: &BTreeMap<String, String>, name: &str, word| verdicts[name].starts_with(word);
    for name in before.keys() {
        let (was, became) = (&before[name], &after[name]);
        assert!(
            is(&before, name, "Tampered") || !is(&after, name, "Tampered"),
            "{name}: {was}, then {became}"
        );
        assert!(
            !is(&before, name, "Verified") || is(&after, name, "Verified"),
            "{name}: {was}, then {became}"
        );
    }
    let segments = room.segments();
    for name in segments.iter().filter(|name| !before.contains_key(*name)) {
        assert!(is(&after, name, "Verified"), "{name}: {}", after[name]);
    }
}

fn records(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(records(&path));
        } else if path.extension().is_some_and(|e| e == "aarl") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn verify_counts_other_entries_but_not_our_own() {
    let room = Room::new();
    room.end_one();
    fs::write(room.path().join(".aegis-new-x"), "").unwrap();
    room.assert_verified(1);
    fs::write(room.path().join("notes.txt"), "").unwrap();
    fs::write(room.path().join(".hidden"), "").unwrap();
    room.verdicts_beside(2);
}

#[test]
fn a_link_to_a_directory_is_followed() {
    let room = Room::new();
    fs::create_dir(room.path()).unwrap();
    fs::set_permissions(room.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let link = room.0.path().join("link");
    symlink("d", &link).unwrap();
    assert_answered(&room.run_at(&link));
    assert_answered(&room.run_at(&room.0.path().join("link/")));
    room.assert_verified(2);
}

#[test]
fn a_directory_that_cannot_be_used_is_an_error_and_nothing_is_relayed() {
    let room = Room::new();
    let refused = |audit: &Path| {
        let ran = room.run_at(audit);
        assert_eq!((ran.code(), &*ran.stdout), (1, ""));
        let shown = audit.display().to_string();
        ran.stderr.replace(shown.trim_end_matches('/'), "D")
    };
    // A place where nobody can make one, the superuser included.
    let none = refused(Path::new("/proc/none/"));
    assert!(none.contains("audit directory D/: "), "{none}");
    let file = room.0.path().join("key/");
    let not = refused(&file);
    assert!(
        not.contains("audit directory D/ is not a directory\n"),
        "{not}"
    );

    fs::create_dir(room.path()).unwrap();
    fs::set_permissions(room.path(), PermissionsExt::from_mode(0o770)).unwrap();
    let shared = refused(&room.path());
    assert!(
        shared.contains("can be changed by other users (mode 0770)"),
        "{shared}"
    );
    fs::set_permissions(room.path(), PermissionsExt::from_mode(0o500)).unwrap();
    let probe = room.path().join("probe");
    if fs::write(&probe, "").is_err() {
        let read_only = refused(&room.path());
        assert!(
            read_only.contains("audit directory D: Permission denied"),
            "{read_only}"
        );
    }
}

const FOREIGN: &str = "20200101T000000Z-1-";
