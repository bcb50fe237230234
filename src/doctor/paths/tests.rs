use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;

/// A directory that is nobody else's, and its findings by id and status.
struct Place {
    _dir: tempfile::TempDir,
    base: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        Self { _dir: dir, base }
    }

    fn file(&self, name: &str, mode: u32, text: &str) -> PathBuf {
        let path = self.base.join(name);
        fs::write(&path, text).unwrap();
        set_mode(&path, mode);
        path
    }

    fn directory(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.base.join(name);
        fs::create_dir(&path).unwrap();
        set_mode(&path, mode);
        path
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn key(place: &Place, mode: u32) -> PathBuf {
    place.file("key", mode, &format!("{}\n", "07".repeat(32)))
}

fn of_key(path: &Path) -> Vec<Finding> {
    let signing_key = Some(path.to_owned());
    Paths {
        signing_key,
        ..Paths::default()
    }
    .findings()
}

fn of_audit(path: &Path) -> Vec<Finding> {
    let audit = Some(path.to_owned());
    Paths {
        audit,
        ..Paths::default()
    }
    .findings()
}

fn of_policy(path: &Path) -> Vec<Finding> {
    let policy = Some(path.to_owned());
    Paths {
        policy,
        ..Paths::default()
    }
    .findings()
}

/// The statuses of one kind of finding.
fn statuses(findings: &[Finding], id: Id) -> Vec<Status> {
    let of_id = findings.iter().filter(|found| found.id == id);
    of_id.map(|found| found.status).collect()
}

/// The commands that the cures of what is not as it should be have.
fn commands(findings: &[Finding]) -> Vec<&str> {
    let cures = findings.iter().filter_map(|found| found.cure.as_ref());
    cures
        .flat_map(|cure| &cure.lines)
        .map(String::as_str)
        .collect()
}

#[test]
fn nothing_is_looked_at_that_was_not_named() {
    assert_eq!(Paths::default().findings(), []);
}

/// SPEC [DOCTOR-4].
#[test]
fn a_key_is_judged_as_whoever_loads_it_judges_it() {
    let place = Place::new();
    let path = key(&place, 0o600);
    assert_eq!(statuses(&of_key(&path), Id::SigningKey), [Status::Ok]);
    let link = place.base.join("link");
    symlink(&path, &link).unwrap();
    assert_eq!(statuses(&of_key(&link), Id::SigningKey), [Status::Ok]);
    for mode in [0o640, 0o604, 0o620] {
        set_mode(&path, mode);
        let found = of_key(&path);
        assert_eq!(
            statuses(&found, Id::SigningKey),
            [Status::Unsafe],
            "{mode:o}"
        );
        assert!(commands(&found).contains(&format!("chmod 600 {}", path.display()).as_str()));
        assert!(keyfile::load(&path).is_err());
    }
    let torn = place.file("torn", 0o600, "07");
    for (path, expected) in [
        (place.base.join("none"), Status::Missing),
        (place.base.clone(), Status::Missing),
        (torn, Status::Missing),
    ] {
        assert_eq!(
            statuses(&of_key(&path), Id::SigningKey),
            [expected],
            "{path:?}"
        );
        assert!(keyfile::load(&path).is_err());
    }
}

/// The cure that is printed is one.
#[test]
fn what_the_cure_says_mends_it() {
    let place = Place::new();
    let shared = place.directory("a b", 0o777);
    let path = shared.join("key");
    fs::write(&path, "07".repeat(32)).unwrap();
    set_mode(&path, 0o644);
    let found = of_key(&path);
    assert_eq!(statuses(&found, Id::SigningKey), [Status::Unsafe]);
    assert!(statuses(&found, Id::SigningKeyPath).contains(&Status::Unsafe));
    let inside = place.base.to_str().unwrap();
    for command in commands(&found).into_iter().filter(|c| c.contains(inside)) {
        let ran = std::process::Command::new("sh")
            .args(["-c", command])
            .status();
        assert!(ran.unwrap().success(), "{command}");
    }
    let found = of_key(&path);
    assert_eq!(statuses(&found, Id::SigningKey), [Status::Ok]);
    assert!(
        !commands(&found)
            .iter()
            .any(|command| command.contains(inside))
    );
}

/// SPEC [DOCTOR-4].
#[test]
fn an_audit_directory_is_refused_where_wrap_refuses_it() {
    let place = Place::new();
    for (mode, expected) in [
        (0o700, Status::Ok),
        (0o755, Status::Ok),
        (0o775, Status::Unsafe),
        (0o777, Status::Unsafe),
    ] {
        let path = place.directory(&format!("{mode:o}"), mode);
        let found = of_audit(&path);
        assert_eq!(statuses(&found, Id::Audit), [expected], "{mode:o}");
        assert_eq!(statuses(&found, Id::AuditStorage).len(), 1);
        let is_refused = crate::chain::segment::prepare(&path).is_err();
        assert_eq!(is_refused, expected == Status::Unsafe, "{mode:o}");
    }
    let mut to_be_made = place.base.join("not/yet").into_os_string();
    to_be_made.push("/");
    let found = of_audit(to_be_made.as_ref());
    assert_eq!(statuses(&found, Id::Audit), [Status::Ok]);
    assert!(!place.base.join("not").exists());
}

#[test]
fn an_audit_file_is_its_owners_alone() {
    let place = Place::new();
    for (mode, expected) in [
        (0o600, Status::Ok),
        (0o640, Status::Limited),
        (0o604, Status::Limited),
        (0o620, Status::Unsafe),
        (0o602, Status::Unsafe),
    ] {
        let path = place.file("r.aarl", mode, "");
        let found = of_audit(&path);
        assert_eq!(statuses(&found, Id::Audit), [expected], "{mode:o}");
    }
    let link = place.base.join("link.aarl");
    symlink(place.base.join("r.aarl"), &link).unwrap();
    assert_eq!(statuses(&of_audit(&link), Id::Audit), [Status::Missing]);
    assert_eq!(
        statuses(&of_audit(Path::new("/dev/null")), Id::Audit),
        [Status::Missing]
    );
    let beneath_a_file = place.base.join("r.aarl/x");
    assert_eq!(
        statuses(&of_audit(&beneath_a_file), Id::Audit),
        [Status::Unknown]
    );
}

#[test]
fn a_policy_has_to_be_one_and_nobody_elses() {
    let place = Place::new();
    let path = place.file("p.yaml", 0o644, "version: 1\ndefault: deny\nrules: []\n");
    assert_eq!(statuses(&of_policy(&path), Id::Policy), [Status::Ok]);
    set_mode(&path, 0o664);
    assert_eq!(
        statuses(&of_policy(&path), Id::Policy),
        [Status::Ok, Status::Limited]
    );
    set_mode(&path, 0o666);
    assert_eq!(
        statuses(&of_policy(&path), Id::Policy),
        [Status::Ok, Status::Unsafe]
    );
    let other = place.file("q.yaml", 0o600, "rules: 7\n");
    assert_eq!(statuses(&of_policy(&other), Id::Policy), [Status::Missing]);
    let none = place.base.join("none.yaml");
    assert_eq!(statuses(&of_policy(&none), Id::Policy), [Status::Missing]);
}

/// SPEC [DOCTOR-4]: only root can give a file to somebody else.
#[test]
fn what_is_somebody_elses_is_unsafe() {
    let place = Place::new();
    let path = place.directory("theirs", 0o755);
    if chown(&path, Some(4242), None).is_err() {
        eprintln!("SKIPPED: only root can give a directory away");
        return;
    }
    let key = path.join("key");
    fs::write(&key, "07".repeat(32)).unwrap();
    set_mode(&key, 0o600);
    let found = of_key(&key);
    assert_eq!(statuses(&found, Id::SigningKey), [Status::Ok]);
    assert!(statuses(&found, Id::SigningKeyPath).contains(&Status::Unsafe));
    assert_eq!(statuses(&of_audit(&path), Id::Audit), [Status::Unsafe]);
    chown(&key, Some(4242), None).unwrap();
    assert_eq!(statuses(&of_key(&key), Id::SigningKey), [Status::Unsafe]);
    assert_eq!(
        statuses(&of_policy(&key), Id::Policy)[1..],
        [Status::Unsafe]
    );
}

#[test]
fn a_way_that_is_nobody_elses_names_its_links() {
    let place = Place::new();
    let path = key(&place, 0o600);
    symlink("key", place.base.join("link")).unwrap();
    let found = of_key(&place.base.join("link"));
    let way: Vec<_> = found
        .iter()
        .filter(|f| f.id == Id::SigningKeyPath)
        .collect();
    let [only] = way.as_slice() else {
        // Directories above belong to whoever runs this.
        assert!(way.iter().all(|found| found.status != Status::Ok));
        return;
    };
    if only.status == Status::Ok {
        assert!(
            only.found.ends_with(&format!("to {}", path.display())),
            "{only:?}"
        );
    }
}
