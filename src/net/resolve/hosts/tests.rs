use proptest::prelude::*;

use super::*;

fn found(file: &str, name: &str) -> Vec<String> {
    let found = search(file.as_bytes(), &Name::parse(name).unwrap()).unwrap();
    found.iter().map(IpAddr::to_string).collect()
}

#[test]
fn a_name_has_the_addresses_of_its_lines() {
    let file = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n\
                2001:db8::5\tDB.example db # db2\n10.0.0.5 db\n10.0.0.5 db\n\
                # 10.0.0.6 db\n10.0.0.7 dbx xdb\n::ffff:10.0.0.8 mapped\n";
    assert_eq!(found(file, "localhost"), ["127.0.0.1", "::1"]);
    assert_eq!(found(file, "db"), ["10.0.0.5", "2001:db8::5"]);
    assert_eq!(found(file, "db.example"), ["2001:db8::5"]);
    assert_eq!(found(file, "mapped"), ["10.0.0.8"]);
    for name in ["db2", "example", "d", "other"] {
        assert_eq!(found(file, name), [""; 0], "{name}");
    }
}

#[test]
fn a_line_that_is_not_understood_says_nothing() {
    for line in [
        "db",
        "db 10.0.0.1",
        "0x7f.1 db",
        "127.1 db",
        "010.0.0.1 db",
        "10.0.0.1/8 db",
        "fe80::1%lo db",
        "10.0.0.1#db",
        "10.0.0.1,db",
        "10.0.0.1",
        "#10.0.0.1 db",
    ] {
        assert_eq!(found(line, "db"), [""; 0], "{line}");
    }
    let name = Name::parse("db").unwrap();
    let not_utf8: &[u8] = b"10.0.0.1 db \xff\n10.0.0.2 db";
    assert_eq!(
        search(not_utf8, &name).unwrap(),
        ["10.0.0.2".parse::<IpAddr>().unwrap()]
    );
}

#[test]
fn addresses_and_bytes_are_bounded() {
    let lines: String = (1..=17).map(|last| format!("10.0.0.{last} db\n")).collect();
    let found = found(&lines, "db");
    assert_eq!(found.len(), MAX_ADDRESSES);
    assert_eq!(found.last().unwrap(), "10.0.0.16");
    let name = Name::parse("db").unwrap();
    let mut file = vec![b'#'; MAX_BYTES as usize];
    assert!(search(file.as_slice(), &name).is_ok());
    file.push(b'\n');
    assert!(matches!(
        search(file.as_slice(), &name),
        Err(FileFault::Large(MAX_BYTES))
    ));
}

#[test]
fn a_file_that_is_not_there_is_empty_and_one_that_cannot_be_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let name = Name::parse("db").unwrap();
    assert!(read(&dir.path().join("hosts"), &name).unwrap().is_empty());
    assert!(matches!(read(dir.path(), &name), Err(FileFault::Io(_))));
}

proptest! {
    #[test]
    fn any_file_is_read(bytes in any::<Vec<u8>>()) {
        prop_assert!(search(bytes.as_slice(), &Name::parse("db").unwrap()).is_ok());
    }
}
