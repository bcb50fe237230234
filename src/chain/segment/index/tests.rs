use std::cell::Cell;
use std::collections::BTreeSet;

use super::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn unfollowed(index: &Index) -> Vec<&str> {
    index.unfollowed().collect()
}

/// What each of a few Segments follows.
fn reader(name: &str) -> Option<Vec<String>> {
    match name {
        "b" => Some(names(&["a", "gone"])),
        "c" => Some(names(&["b", "d"])),
        "garbage" => None,
        _ => Some(Vec::new()),
    }
}

#[test]
fn what_is_followed_is_read_once() {
    let mut index = Index::default();
    assert!(index.bring_up_to(&names(&["a", "b"]), reader));
    assert_eq!(unfollowed(&index), ["b"]);
    let reads = Cell::new(0);
    let counting = |name: &str| {
        reads.set(reads.get() + 1);
        reader(name)
    };
    // `d` is followed before it is looked into itself.
    assert!(index.bring_up_to(&names(&["a", "b", "c", "d"]), counting));
    assert_eq!(unfollowed(&index), ["c"]);
    assert_eq!(reads.get(), 2);
    index.add("e", ["c"].into_iter());
    assert_eq!(unfollowed(&index), ["e"]);
    // What is gone is forgotten, so that it counts again when it comes back.
    assert!(index.bring_up_to(&names(&["b"]), counting));
    assert_eq!(unfollowed(&index), Vec::<&str>::new());
    assert_eq!(reads.get(), 2);
}

#[test]
fn an_index_is_whole_or_none() {
    let mut index = Index::default();
    index.bring_up_to(&names(&["a", "a b", "b", "garbage", "é"]), reader);
    let bytes = index.to_bytes();
    assert_eq!(Index::parse_states(&bytes), Some(index.states));
    for at in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 1;
        assert_eq!(Index::parse_states(&broken), None, "byte {at}");
        assert_eq!(Index::parse_states(&bytes[..at]), None, "cut at {at}");
    }
    let longer = [&bytes[..], b"followed x\n"].concat();
    assert_eq!(Index::parse_states(&longer), None);
}

#[test]
fn too_many_new_segments_are_read_over_several_starts() {
    let many = |n: usize| (0..n).map(|i| format!("{i:06}")).collect::<Vec<_>>();
    let read = |_: &str| Some(Vec::new());
    assert!(Index::default().bring_up_to(&many(MAX_READ), read));
    let mut index = Index::default();
    let segments = many(MAX_READ + 1);
    assert!(!index.bring_up_to(&segments, read));
    assert_eq!(index.unfollowed().count(), MAX_READ);
    assert!(index.bring_up_to(&segments, read));
    assert_eq!(index.unfollowed().count(), MAX_READ + 1);
}

#[test]
fn foreign_files_have_their_turn_again() {
    let segments: Vec<_> = (0..100).map(|i| format!("{i:03}")).collect();
    let mut index = Index::default();
    assert!(index.bring_up_to(&segments, |_| None));
    assert_eq!(index.unfollowed().count(), 0);
    let seen = std::cell::RefCell::new(BTreeSet::new());
    for turn in 0..500 {
        assert!(index.bring_up_to(&segments, |name| {
            seen.borrow_mut().insert(name.to_owned());
            None
        }));
        assert!(turn > 0 || seen.borrow().len() == MAX_READ_AGAIN);
    }
    assert_eq!(seen.borrow().len(), 100);
    // One that was being copied is there now.
    while index.unfollowed().next().is_none() {
        index.bring_up_to(&segments, |name| (name == "042").then(Vec::new));
    }
    assert_eq!(unfollowed(&index), ["042"]);
}
