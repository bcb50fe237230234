use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::super::testing::{check, key, of_type, open as open_session, record_call, start};
use super::super::writer::{SessionStart, Totals, Writer};
use super::*;
use crate::wire::facts::Durability;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn record(path: &Path) -> Writer {
    let opened = open(path).unwrap();
    let start = SessionStart {
        prev_session_tail: opened.tail,
        ..start(Durability::Intent)
    };
    let writer = Writer::open(opened.sink, key(), start).unwrap();
    record_call(&writer, "echo").unwrap();
    writer
}

fn refusal(path: &Path) -> String {
    let shown = path.display().to_string();
    open(path).err().unwrap().to_string().replace(&shown, "A")
}

/// SPEC [MODEL-3] [SESS-2] [SESS-3] [SESS-7].
#[test]
fn sessions_follow_each_other_in_a_private_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/deeper/a.aarl");
    let first = record(&path);
    first.close(Totals::default()).unwrap();
    drop(first);
    let before = fs::read(&path).unwrap();
    drop(record(&path));
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before));
    let rows = check(&after);
    assert_eq!(of_type(&rows, "open").len(), 2);
    assert_eq!(of_type(&rows, "close").len(), 2);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&directory.path().join("new")), 0o700);
}

/// SPEC [SESS-5].
#[test]
fn a_second_writer_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aarl");
    let first = record(&path);
    assert_eq!(
        refusal(&path),
        "audit file A is in use: another aegis writes to it\n\
         give each one a file of its own, or a directory, in which each makes one"
    );
    drop(first);
    drop(record(&path));
}

#[test]
fn a_descriptor_that_a_new_process_holds_does_not_keep_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aarl");
    let file = open_locked(&path, Missing::Create).unwrap();
    let copy = file.try_clone().unwrap();
    drop(file);
    assert!(open_locked(&path, Missing::Create).is_ok());
    drop(copy);
}

/// SPEC [SESS-7].
#[test]
fn only_a_regular_file_by_its_own_name_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name| directory.path().join(name);
    fs::write(path("target"), "").unwrap();
    symlink(path("target"), path("link")).unwrap();
    symlink(path("nowhere"), path("dangling")).unwrap();
    mknodat(
        CWD,
        path("pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    for link in ["link", "dangling"] {
        assert_eq!(
            refusal(&path(link)),
            "audit file A is a symbolic link\nname the file itself"
        );
    }
    let other = "audit file A is not a regular file\nname another one";
    assert_eq!(refusal(&path("pipe")), other);
    assert_eq!(refusal(directory.path()), other);
    assert!(!path("nowhere").exists());
}

#[test]
fn a_refusal_names_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aarl");
    drop(record(&path));
    let whole = fs::read(&path).unwrap();
    let mut torn = whole.clone();
    torn.pop();
    fs::write(&path, torn).unwrap();
    assert_eq!(
        refusal(&path),
        "audit file has a torn final line at line 4; refusing to chain onto it\n\
         `aegis recover A` moves what is damaged to a file beside it"
    );
    fs::write(&path, b"{\"phase\":\"intent\"}\n").unwrap();
    assert_eq!(
        refusal(&path),
        "audit file contradicts itself: line 1 carries no line_type; refusing to chain onto \
         it\nkeep A as it is and record to another file"
    );
}

/// A file whose `fail_at`th operation (from 0) fails.
struct FaultFile {
    file: LockedFile,
    ops: Mutex<usize>,
    fail_at: usize,
    fault: FileFault,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FileFault {
    /// Nothing is taken.
    Refused,
    /// Half is taken.
    Short,
    /// Half is taken, then an error is told.
    ShortError,
    /// As `Short`, and the file cannot be cut either.
    Stuck,
}

impl FaultFile {
    fn fails(&self) -> bool {
        let mut ops = self.ops.lock().unwrap();
        *ops += 1;
        *ops - 1 == self.fail_at
    }
}

impl Storage for FaultFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        if !self.fails() {
            return self.file.append(bytes);
        }
        let full = Err(io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error()));
        if self.fault == FileFault::Refused {
            return full;
        }
        let taken = self.file.append(&bytes[..bytes.len() / 2]);
        if self.fault == FileFault::ShortError {
            return full;
        }
        taken
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        if self.fault == FileFault::Stuck {
            return Err(io::Error::from_raw_os_error(Errno::IO.raw_os_error()));
        }
        self.file.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        if self.fails() {
            return Err(io::Error::from_raw_os_error(Errno::IO.raw_os_error()));
        }
        Ok(())
    }

    fn has_name(&self) -> io::Result<bool> {
        self.file.has_name()
    }
}

/// Records into a file that fails; returns what it then holds and the
/// error, if the fault was met.
fn record_with_fault(fault: FileFault, fail_at: usize) -> (Vec<u8>, Option<String>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aarl");
    let file = open_locked(&path, Missing::Create).unwrap();
    let sink = FileSink {
        storage: FaultFile {
            file,
            ops: Mutex::new(0),
            fail_at,
            fault,
        },
        path: "A".into(),
        length: Mutex::new(0),
    };
    let error = open_session(sink, Durability::Full).and_then(|writer| {
        let recorded = record_call(&writer, "echo").and_then(|()| record_call(&writer, "echo"));
        let closed = writer.close(Totals::default());
        if let Err(error) = &recorded {
            assert_eq!(closed, Err(error.clone()));
        }
        recorded.and(closed)
    });
    let error = error.err().map(|error| error.to_string());
    (fs::read(&path).unwrap(), error)
}

/// SPEC [CHAIN-6] [MODEL-3].
#[test]
fn a_fault_at_any_operation_leaves_whole_rows() {
    let (whole, error) = record_with_fault(FileFault::Refused, usize::MAX);
    assert_eq!((check(&whole).len(), error), (6, None));
    for fault in [FileFault::Refused, FileFault::Short, FileFault::ShortError] {
        let mut rows = 0;
        for fail_at in 0..12 {
            let (bytes, error) = record_with_fault(fault, fail_at);
            let error = error.unwrap();
            assert!(error.starts_with("audit "), "{error}");
            assert!(error.contains(" failed: A: "), "{error}");
            assert!(
                error.ends_with("; nothing more will be recorded"),
                "{error}"
            );
            assert_eq!(check(&bytes).len(), rows, "{fault:?} at {fail_at}");
            assert!(whole.starts_with(&bytes));
            // Each row is an append and a flush.
            rows += usize::from(fail_at % 2 == 0);
        }
        assert_eq!(record_with_fault(fault, 12), (whole.clone(), None));
    }
}

#[test]
fn a_torn_row_that_stays_is_told() {
    let (bytes, error) = record_with_fault(FileFault::Stuck, 2);
    assert!(!bytes.ends_with(b"\n"));
    let error = error.unwrap();
    assert!(
        error.starts_with("audit write failed: A: only ")
            && error.contains("`aegis recover A` takes it off"),
        "{error}"
    );
}

#[test]
fn what_others_appended_is_not_cut() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aarl");
    let sink = FileSink {
        storage: FaultFile {
            file: open_locked(&path, Missing::Create).unwrap(),
            ops: Mutex::new(0),
            fail_at: 0,
            fault: FileFault::Short,
        },
        path: path.clone(),
        length: Mutex::new(0),
    };
    fs::write(&path, "somebody else's").unwrap();
    sink.append(b"row\n").unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"somebody else'sro");
}
