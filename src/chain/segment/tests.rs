use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;
use crate::chain::audit::Audit;
use crate::chain::testing::{check, key, record_call, session, without_last};
use crate::chain::writer::{Totals, Writer};
use crate::wire::facts::Durability;
use crate::wire::line::OpenFacts;

struct Room(TempDir);

impl Room {
    fn new() -> Self {
        let room = Self(tempfile::tempdir().unwrap());
        fs::create_dir(room.path()).unwrap();
        room.mode(0o700);
        room
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("d")
    }

    fn mode(&self, mode: u32) {
        fs::set_permissions(self.path(), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn start(&self) -> Writer {
        let audit = Audit::Directory(self.path());
        audit
            .open(key(), OpenFacts::default(), Durability::Process)
            .unwrap()
    }

    fn end_one(&self) {
        self.start().close(Totals::default()).unwrap();
    }

    fn refusal(&self) -> String {
        let shown = self.path().display().to_string();
        let error = prepare(&self.path()).err().unwrap();
        error.to_string().replace(&shown, "D")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = entries
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// What each Segment follows; every row of each is checked.
    fn follows(&self) -> Vec<(String, Vec<String>)> {
        let names = self.names().into_iter();
        let segments = names.filter(|name| name.contains("Z-") && !name.starts_with('.'));
        segments
            .map(|name| {
                let rows = check(&fs::read(self.path().join(&name)).unwrap());
                let follows = rows[0]["follows"].as_array().cloned().unwrap_or_default();
                let follows = follows
                    .iter()
                    .map(|f| f["segment"].as_str().unwrap().into());
                (name, follows.collect())
            })
            .collect()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).unwrap();
    }
}

/// A Segment's name.
fn named(n: usize) -> String {
    segment_name(Timestamp::from_unix_ms(0), 1, n.to_be_bytes())
}

fn follows_of(prepared: &Prepared) -> Vec<&str> {
    let follows = prepared.follows.iter();
    follows.map(|follows| follows.segment.as_str()).collect()
}

/// SPEC [SEG-1] [SEG-2].
#[test]
fn a_segment_is_hidden_until_it_is_published() {
    let room = Room::new();
    let prepared = prepare(&room.path()).unwrap();
    let name = prepared.hidden.name.clone();
    assert_eq!(room.names(), [temporary(&name)]);
    assert!(temporary(&name).starts_with(crate::input::OWN_PREFIX));
    drop(prepared);
    assert_eq!(room.names(), Vec::<String>::new());

    let writer = room.start();
    let names = room.names();
    let [index, segment] = &names[..] else {
        panic!("{names:?}")
    };
    assert_eq!(index, index::INDEX_NAME);
    let path = room.path().join(segment);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(check(&fs::read(path).unwrap()).len(), 1);
    record_call(&writer, "echo").unwrap();

    let stem = segment.strip_suffix(".aarl").unwrap();
    let parts: Vec<_> = stem.split('-').collect();
    let [time, pid, random] = parts[..] else {
        panic!("{stem}")
    };
    assert!(time.len() == 16 && time.ends_with('Z') && time.as_bytes()[8] == b'T');
    assert_eq!(pid, std::process::id().to_string());
    assert!(random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit()));
}

/// SPEC [SEG-4].
#[test]
fn the_ended_are_followed_once_and_the_live_not_at_all() {
    let room = Room::new();
    let live = room.start();
    room.end_one();
    room.end_one();
    room.end_one();
    let mut all: Vec<_> = room.follows().into_iter().flat_map(|(_, f)| f).collect();
    all.sort();
    assert_eq!(all.len(), 2);
    live.close(Totals::default()).unwrap();
    drop(live);
    let last = room.start();
    let mut all: Vec<_> = room.follows().into_iter().flat_map(|(_, f)| f).collect();
    assert_eq!(all.len(), 4);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4);
    drop(last);
}

#[test]
fn what_one_start_has_claimed_is_left_to_it_until_it_fails() {
    let room = Room::new();
    room.write(&named(0), &session(1, None));
    let first = prepare(&room.path()).unwrap();
    let second = prepare(&room.path()).unwrap();
    assert_eq!(follows_of(&first), [named(0)]);
    assert_eq!(follows_of(&second), Vec::<&str>::new());
    drop(first);
    let third = prepare(&room.path()).unwrap();
    assert_eq!(follows_of(&third), [named(0)]);
    third.hidden.publish().unwrap();
    assert_eq!(
        follows_of(&prepare(&room.path()).unwrap()),
        Vec::<&str>::new()
    );
}

/// SPEC [SEG-3].
#[test]
fn a_killed_writers_segment_is_followed_at_its_last_line() {
    let room = Room::new();
    let rows = session(2, None);
    let open = without_last(&rows, 1);
    room.write(&named(0), open);
    room.write(&named(1), &[open, b"{\"call_id\":"].concat());
    let prepared = prepare(&room.path()).unwrap();
    assert_eq!(follows_of(&prepared), [named(0), named(1)]);
    let last = open.strip_suffix(b"\n").unwrap();
    let last = last.rsplit(|&b| b == b'\n').next().unwrap();
    for follows in prepared.follows {
        assert_eq!(follows.tail, crate::wire::digest::Digest::of(last));
    }
}

/// SPEC [SEG-3].
#[test]
fn so_many_are_followed_at_once_and_the_rest_later() {
    for more in [0, 1] {
        let room = Room::new();
        let rows = session(0, None);
        for i in 0..MAX_FOLLOWS + more {
            room.write(&named(i), &rows);
        }
        let first = prepare(&room.path()).unwrap();
        assert_eq!(first.follows.len(), MAX_FOLLOWS);
        first.hidden.publish().unwrap();
        assert_eq!(prepare(&room.path()).unwrap().follows.len(), more);
    }
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    let room = Room::new();
    let audit = Audit::Directory(room.path());
    let dev = crate::sign::SigningKey::insecure_dev();
    let opened = audit.open(dev, OpenFacts::default(), Durability::Intent);
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("needs a provisioned signing key"), "{error}");
    assert_eq!(room.names(), Vec::<String>::new());
}

/// SPEC [SEG-4].
#[test]
fn what_cannot_be_followed_does_not_stand_before_others() {
    let room = Room::new();
    let rows = session(0, None);
    for i in 0..MAX_FOLLOWS {
        room.write(&named(i), &rows);
    }
    let first = prepare(&room.path()).unwrap();
    drop(first);
    // Now that they are known as Segments, they lose what they hold.
    for i in 0..MAX_FOLLOWS {
        room.write(&named(i), b"");
    }
    room.write(&named(MAX_FOLLOWS), &rows);
    let blocked = prepare(&room.path()).unwrap();
    assert_eq!(follows_of(&blocked), Vec::<&str>::new());
    blocked.hidden.publish().unwrap();
    assert_eq!(
        follows_of(&prepare(&room.path()).unwrap()),
        [named(MAX_FOLLOWS)]
    );
}

#[test]
fn many_threads_start_at_once() {
    let room = Room::new();
    room.end_one();
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| room.end_one());
        }
    });
    room.end_one();
    let follows = room.follows();
    assert_eq!(follows.len(), 18);
    let all: Vec<_> = follows.into_iter().flat_map(|(_, f)| f).collect();
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (17, 17));
    assert_eq!(room.names().len(), 19);
}

#[test]
fn what_a_killed_start_left_is_removed_and_what_a_live_one_holds_is_not() {
    let room = Room::new();
    let live = prepare(&room.path()).unwrap();
    let stale = format!("{TEMPORARY_PREFIX}20260101T000000Z-1-0000000000000000");
    room.write(&stale, b"{\"half");
    room.write(".aegis-other", b"");
    let other = prepare(&room.path()).unwrap();
    let mut expected = vec![temporary(&live.hidden.name), temporary(&other.hidden.name)];
    expected.sort();
    expected.push(".aegis-other".to_owned());
    assert_eq!(room.names(), expected);
}

#[test]
fn so_many_that_killed_starts_left_are_removed_at_once() {
    for more in [0, 1] {
        let room = Room::new();
        for i in 0..dir::MAX_STALE + more {
            room.write(&format!("{TEMPORARY_PREFIX}{i}"), b"");
        }
        drop(prepare(&room.path()).unwrap());
        assert_eq!(room.names().len(), more);
    }
}

#[test]
fn a_start_killed_between_link_and_removal_leaves_its_segment() {
    let room = Room::new();
    room.end_one();
    let names = room.names();
    let path = room.path();
    fs::hard_link(path.join(&names[1]), path.join(temporary(&names[1]))).unwrap();
    let next = prepare(&path).unwrap();
    assert_eq!(follows_of(&next), [&*names[1]]);
    drop(next);
    assert_eq!(room.names(), names);
}

#[test]
fn nothing_is_replaced() {
    let room = Room::new();
    let prepared = prepare(&room.path()).unwrap();
    let name = prepared.hidden.name.clone();
    room.write(&name, b"somebody else's");
    let error = prepared.hidden.publish().err().unwrap();
    assert_eq!(
        error.to_string(),
        format!(
            "audit segment {} is there already\ntry again",
            room.path().join(&name).display()
        )
    );
    assert_eq!(room.names(), [&*name]);
    assert_eq!(
        fs::read(room.path().join(name)).unwrap(),
        b"somebody else's"
    );
}

#[test]
fn a_link_does_where_a_rename_cannot() {
    let room = Room::new();
    room.write("a", b"a");
    room.write("b", b"b");
    let dir = AuditDir::open(&room.path()).unwrap();
    let locked = dir.lock(Duration::ZERO).unwrap();
    let taken = locked.link_in("a", "b").unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    locked.link_in("a", "c").unwrap();
    assert_eq!(room.names(), ["b", "c"]);
}

#[test]
fn a_directory_that_others_can_change_is_refused() {
    let room = Room::new();
    for mode in [0o720, 0o702, 0o1777] {
        room.mode(mode);
        assert_eq!(
            room.refusal(),
            format!(
                "audit directory D can be changed by other users (mode {mode:04o})\n\
                 take that from them (`chmod go-w`), or name another one"
            )
        );
    }
    room.mode(0o755);
    room.end_one();
    let directory = room.path().join("x");
    fs::create_dir(&directory).unwrap();
    if std::os::unix::fs::chown(&directory, Some(12_345), None).is_ok() {
        assert_eq!(
            prepare(&directory).err().unwrap().to_string(),
            format!(
                "audit directory {} belongs to user 12345\nname one of your own",
                directory.display()
            )
        );
    }
}

#[test]
fn a_lock_that_stays_taken_is_not_waited_for_forever() {
    let room = Room::new();
    let (first, second) = (
        AuditDir::open(&room.path()).unwrap(),
        AuditDir::open(&room.path()).unwrap(),
    );
    let held = first.lock(Duration::ZERO).unwrap();
    let error = second.lock(Duration::from_millis(5)).err().unwrap();
    let shown = room.path().display().to_string();
    assert_eq!(
        error.to_string().replace(&shown, "D"),
        "audit directory D stayed locked by another process for 10 s\n\
         end the one that hangs (`lslocks` names it), or name another directory"
    );
    drop(held);
    assert!(second.lock(Duration::ZERO).is_ok());
}

#[test]
fn what_is_no_directory_is_refused() {
    let room = Room::new();
    room.write("f", b"");
    let path = room.path().join("f/");
    assert!(matches!(
        prepare(&path),
        Err(SegmentError::NotADirectory(_))
    ));
    assert!(matches!(
        prepare(&room.path().join("f/below")),
        Err(SegmentError::NotADirectory(_))
    ));
}

#[test]
fn a_path_is_a_directory_by_its_end_or_by_what_is_there() {
    let room = Room::new();
    let new = room.path().join("new");
    assert_eq!(Audit::at(new.clone()), Audit::File(new.clone()));
    let slashed = PathBuf::from(format!("{}/", new.display()));
    assert_eq!(
        Audit::at(slashed.clone()),
        Audit::Directory(slashed.clone())
    );
    assert_eq!(Audit::at(slashed.clone()).directory(), slashed);
    assert_eq!(Audit::at(room.path()), Audit::Directory(room.path()));
    assert_eq!(Audit::at(new).directory(), room.path());
}

#[test]
fn foreign_entries_stop_no_start_and_are_not_followed() {
    let room = Room::new();
    let path = |name: &str| room.path().join(name);
    room.write(&named(0), b"");
    room.write(&named(1), &[0xff; 5_000]);
    room.write(&named(2), b"{\"a\":1}\n");
    room.write("session.aarl", &session(0, None));
    room.write("record.txt", &session(0, None));
    room.write("line\nbreak.aarl", &session(0, None));
    fs::create_dir(path(&named(3))).unwrap();
    symlink("record.txt", path(&named(4))).unwrap();
    symlink("nowhere", path(&named(5))).unwrap();
    mknodat(
        CWD,
        path(&named(6)),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    fs::write(room.path().join(OsStr::from_bytes(b"\xff.aarl")), b"").unwrap();
    assert_eq!(
        follows_of(&prepare(&room.path()).unwrap()),
        Vec::<&str>::new()
    );
    room.end_one();
    let last = prepare(&room.path()).unwrap();
    let [only] = follows_of(&last)[..] else {
        panic!("{:?}", last.follows)
    };
    let own = std::process::id().to_string();
    assert_eq!(only.split('-').nth(1), Some(&*own));
}

#[test]
fn an_index_that_is_something_else_is_left_alone() {
    let index = |room: &Room| room.path().join(index::INDEX_NAME);
    let makes: [&dyn Fn(&Room); 4] = [
        &|room| fs::create_dir(index(room)).unwrap(),
        &|room| symlink(room.0.path().join("target"), index(room)).unwrap(),
        &|room| mknodat(CWD, index(room), FileType::Fifo, Mode::RUSR, 0).unwrap(),
        &|room| fs::write(index(room), b"aegis index 1 \xff").unwrap(),
    ];
    for make in makes {
        let room = Room::new();
        make(&room);
        fs::write(room.0.path().join("target"), "user's").unwrap();
        for _ in 0..3 {
            room.end_one();
        }
        let all: Vec<_> = room.follows().into_iter().flat_map(|(_, f)| f).collect();
        assert_eq!(all.len(), 2);
        let target = fs::read(room.0.path().join("target")).unwrap();
        assert_eq!(target, b"user's");
    }
}
