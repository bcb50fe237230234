use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn whole(document: &str) -> Sight {
    Sight::Whole(Digest::of(document.as_bytes()))
}

fn gone() -> Sight {
    Sight::Failed("gone".to_owned())
}

fn stamp_of(n: u64) -> Stamp {
    Stamp {
        device: 1,
        inode: 1,
        bytes: n,
        modified: (0, 0),
        changed: (0, 0),
    }
}

/// A look that takes no time.
fn look(at_ms: u64, sight: Sight) -> Look {
    Look {
        began: ms(at_ms),
        ended: ms(at_ms),
        stamp: Some(stamp_of(0)),
        sight,
    }
}

/// A watch that has settled on `document`, which says what is in force.
fn settled(document: &str) -> Watch {
    let mut watch = Watch::default();
    assert_eq!(watch.saw(look(0, whole(document))), Step::Wait);
    assert_eq!(watch.saw(look(500, whole(document))), Step::Judge);
    assert_eq!(watch.judged(Judged::Same), Say::Nothing);
    watch
}

/// SPEC [RELOAD-1]: at the bound, and one short of it.
#[test]
fn a_document_is_taken_over_when_two_reads_agree_half_a_second_apart() {
    let mut watch = settled("a");
    assert_eq!(watch.saw(look(1000, whole("b"))), Step::Wait);
    assert_eq!(watch.saw(look(1499, whole("b"))), Step::Wait);
    assert_eq!(watch.saw(look(1500, whole("b"))), Step::Judge);
    assert_eq!(watch.judged(Judged::Replaced), Say::Replaced);
    assert_eq!(watch.saw(look(2000, whole("b"))), Step::Wait);
}

/// SPEC [RELOAD-1]: from the end of one to the beginning of the other.
#[test]
fn the_time_that_a_read_takes_does_not_count() {
    let slow = |began, ended, sight| Look {
        began: ms(began),
        ended: ms(ended),
        stamp: None,
        sight,
    };
    let mut watch = settled("a");
    assert_eq!(watch.saw(slow(1000, 1400, whole("b"))), Step::Wait);
    assert_eq!(watch.saw(slow(1600, 2000, whole("b"))), Step::Wait);
    assert_eq!(watch.saw(slow(1900, 1901, whole("b"))), Step::Judge);
}

/// SPEC [RELOAD-1].
#[test]
fn a_file_that_differs_between_two_reads_starts_over() {
    for between in [whole("c"), whole("a"), gone(), Sight::Moving] {
        let mut watch = settled("a");
        assert_eq!(watch.saw(look(1000, whole("b"))), Step::Wait);
        assert_eq!(watch.saw(look(1200, between)), Step::Wait);
        assert_eq!(watch.saw(look(1500, whole("b"))), Step::Wait);
        assert_eq!(watch.saw(look(1999, whole("b"))), Step::Wait);
        assert_eq!(watch.saw(look(2000, whole("b"))), Step::Judge);
    }
}

/// SPEC [RELOAD-3].
#[test]
fn a_bad_file_is_complained_of_once_and_its_end_is_told() {
    let mut watch = settled("a");
    watch.saw(look(1000, whole("bad")));
    assert_eq!(watch.saw(look(1500, whole("bad"))), Step::Judge);
    assert_eq!(watch.judged(Judged::Bad), Say::Bad);
    assert_eq!(watch.saw(look(2000, whole("bad"))), Step::Wait);
    assert_eq!(watch.saw(look(9000, whole("bad"))), Step::Wait);
    // Another fault is another complaint.
    assert_eq!(watch.saw(look(9500, gone())), Step::Wait);
    let complaint = Step::Complain("gone".to_owned());
    assert_eq!(watch.saw(look(10_000, gone())), complaint);
    assert_eq!(watch.saw(look(11_000, gone())), Step::Wait);
    watch.saw(look(12_000, whole("a")));
    assert_eq!(watch.saw(look(12_500, whole("a"))), Step::Judge);
    assert_eq!(watch.judged(Judged::Same), Say::GoodAgain);
    assert_eq!(watch.saw(look(13_000, whole("a"))), Step::Wait);
}

/// SPEC [RELOAD-3]: an editor may take a file away for a moment.
#[test]
fn a_file_that_is_gone_for_one_look_is_not_complained_of() {
    let mut watch = settled("a");
    assert_eq!(watch.saw(look(1000, gone())), Step::Wait);
    assert_eq!(watch.saw(look(1500, whole("a"))), Step::Wait);
    assert_eq!(watch.saw(look(2000, whole("a"))), Step::Wait);
}

/// SPEC [RELOAD-4].
#[test]
fn whoever_asks_gets_a_report_of_two_reads() {
    let mut watch = settled("a");
    watch.ask();
    assert!(watch.must_read(Some(stamp_of(0)), ms(1000)));
    assert_eq!(watch.saw(look(1000, whole("a"))), Step::Wait);
    // One report for all who ask before it.
    watch.ask();
    assert_eq!(watch.saw(look(1100, whole("a"))), Step::Wait);
    assert_eq!(watch.saw(look(1500, whole("a"))), Step::Judge);
    assert_eq!(watch.judged(Judged::Same), Say::Unchanged);
    assert_eq!(watch.saw(look(2000, whole("a"))), Step::Wait);
}

/// SPEC [RELOAD-4].
#[test]
fn a_complaint_is_repeated_to_whoever_asks() {
    let mut watch = settled("a");
    let complaint = Step::Complain("gone".to_owned());
    watch.saw(look(1000, gone()));
    assert_eq!(watch.saw(look(1500, gone())), complaint);
    watch.ask();
    assert_eq!(watch.saw(look(2000, gone())), Step::Wait);
    assert_eq!(watch.saw(look(2500, gone())), complaint);
    assert_eq!(watch.saw(look(3000, gone())), Step::Wait);
}

/// SPEC [RELOAD-3].
#[test]
fn a_file_that_never_rests_is_complained_of_once_and_reported_when_it_does() {
    let mut watch = settled("a");
    let mut steps = Vec::new();
    for n in 0..50 {
        steps.push(watch.saw(look(1000 + n * 500, whole(&n.to_string()))));
    }
    // The first look is the one at 1000 ms.
    assert_eq!(steps[..20], [const { Step::Wait }; 20]);
    assert_eq!(steps[20], Step::Restless);
    assert_eq!(steps[21..], [const { Step::Wait }; 29]);
    watch.saw(look(30_000, whole("a")));
    assert_eq!(watch.saw(look(30_500, whole("a"))), Step::Judge);
    assert_eq!(watch.judged(Judged::Same), Say::GoodAgain);
    assert_eq!(watch.saw(look(31_000, whole("a"))), Step::Wait);
    // From the beginning.
    assert_eq!(watch.saw(look(31_500, Sight::Moving)), Step::Wait);
    assert_eq!(watch.saw(look(41_499, Sight::Moving)), Step::Wait);
    assert_eq!(watch.saw(look(41_500, Sight::Moving)), Step::Restless);
}

#[test]
fn a_file_that_looks_the_same_is_not_read_until_it_is_time() {
    let mut watch = settled("a");
    let same = Some(stamp_of(0));
    // The last read was at 500 ms.
    assert!(!watch.must_read(same, ms(1000)));
    assert!(!watch.must_read(same, ms(5499)));
    assert!(watch.must_read(same, ms(5500)));
    assert!(watch.must_read(Some(stamp_of(1)), ms(1000)));
    assert!(watch.must_read(None, ms(1000)));
    watch.saw(look(1000, whole("b")));
    assert!(watch.must_read(same, ms(1500)));
    assert_eq!(watch.due(ms(1300)), ms(1500));
    watch.saw(look(1500, whole("b")));
    watch.judged(Judged::Bad);
    assert!(!watch.must_read(same, ms(2000)));
    assert_eq!(watch.due(ms(2000)), ms(2500));
}

#[derive(Clone, Debug)]
struct Move {
    wait_ms: u64,
    read_ms: u64,
    sight: Sight,
    asks: bool,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let sight = prop_oneof![
        4 => Just(whole("a")),
        4 => Just(whole("b")),
        1 => Just(whole("c")),
        1 => Just(gone()),
        1 => Just(Sight::Failed("a directory".to_owned())),
        1 => Just(Sight::Moving),
    ];
    let one = (0..700_u64, 0..50_u64, sight, prop::bool::weighted(0.1)).prop_map(
        |(wait_ms, read_ms, sight, asks)| Move {
            wait_ms,
            read_ms,
            sight,
            asks,
        },
    );
    // What was written stays for a while.
    let run = (one, 1..4_usize).prop_map(|(one, n)| vec![one; n]);
    prop::collection::vec(run, 1..40).prop_map(|runs| runs.concat())
}

proptest! {
    /// SPEC [RELOAD-1] [RELOAD-2]: whatever is written, whenever: what is
    /// judged was seen whole in two reads that are half a second apart, with
    /// no other sight between them; and what was so seen, and is news, is
    /// judged.
    #[test]
    fn only_what_was_at_rest_is_judged(moves in moves()) {
        let mut watch = Watch::default();
        let mut now = 0;
        // The looks since the sight changed: began, ended.
        let mut run: Vec<(u64, u64)> = Vec::new();
        let mut before: Option<Sight> = None;
        let mut acted_on: Option<Sight> = None;
        let (mut asked, mut restless) = (false, false);
        for Move { wait_ms, read_ms, sight, asks } in moves {
            now += wait_ms;
            if asks {
                // The reads that answer are the ones after the question, but
                // one that came to no end before may be the first of them.
                if !asked && !restless && acted_on == before {
                    run.clear();
                }
                asked = true;
                watch.ask();
            }
            let (began, ended) = (now, now + read_ms);
            now = ended;
            if before.as_ref() != Some(&sight) {
                run.clear();
            }
            before = Some(sight.clone());
            run.push((began, ended));
            let step = watch.saw(Look {
                began: ms(began),
                ended: ms(ended),
                stamp: None,
                sight: sight.clone(),
            });
            let at_rest = sight != Sight::Moving && began >= run[0].1 + 500;
            let is_news = asked || restless || acted_on.as_ref() != Some(&sight);
            match &step {
                Step::Judge => prop_assert!(matches!(sight, Sight::Whole(_))),
                Step::Complain(why) => prop_assert_eq!(&Sight::Failed(why.clone()), &sight),
                Step::Restless => restless = true,
                Step::Wait => {}
            }
            let acts = matches!(step, Step::Judge | Step::Complain(_));
            prop_assert_eq!(acts, at_rest && is_news, "{:?} at {}", step, now);
            if acts {
                acted_on = Some(sight);
                (asked, restless) = (false, false);
                if step == Step::Judge {
                    watch.judged(Judged::Replaced);
                }
            }
        }
    }
}
