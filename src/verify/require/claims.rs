//! What an `open` Line says of the things that requirements are about.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Found, Key};
use crate::wire::decode::{Name, Row};
use crate::wire::escape::Shortened;

/// What one `open` Line says, of a size that no record can stretch.
pub(in crate::verify) struct Claims {
    confine: Claim,
    net: Claim,
    metadata: Claim,
    hole: Claim,
    durability: Claim,
    policy: Claim,
}

/// The words that stand there, all of them known; or why none count.
pub(super) type Claim = Result<Vec<&'static str>, NoWord>;

/// Why no word counts, and in which member that shows.
#[derive(Clone)]
pub(super) struct NoWord {
    pub(super) member: &'static str,
    pub(super) found: Found,
}

impl Claims {
    pub(in crate::verify) fn read(row: &Row<'_>) -> Self {
        let confinement = members_of::<Confinement>(row, Name::Confinement, "confinement");
        let policy = members_of::<Policy>(row, Name::Policy, "policy");
        let confine = confinement.as_ref().map_err(NoWord::clone);
        let confine = confine.and_then(|said| Key::Confine.claim(said.status.as_deref()));
        let enforced = match (&confinement, &confine) {
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
            (Ok(said), Ok(status)) if matches!(status[..], ["full" | "partial"]) => Ok(said),
            // Nothing is in force, whatever the other members say.
            (_, Ok(status)) => Err(Key::Confine.without(Found::Other(status.clone()))),
        };
        let of = |key: Key, member: fn(&Confinement) -> Option<&str>| match &enforced {
            Ok(said) => key.claim(member(said)),
            Err(why) => Err(why.clone()),
        };
        Self {
            net: of(Key::Net, |said| said.network.as_deref()),
            metadata: of(Key::Metadata, |said| said.metadata.as_deref()),
            hole: enforced.and_then(|said| match &said.holes.unknown {
                Some(hole) => Err(Key::Hole.without(Found::Unknown(hole.clone()))),
                None => Ok(said.holes.known.clone()),
            }),
            confine,
            durability: match row.string(Name::Durability) {
                None if row.has(Name::Durability) => {
                    Err(Key::Durability.without(Found::Unreadable))
                }
                word => Key::Durability.claim(word.as_deref()),
            },
            policy: policy.and_then(|said| Key::Policy.claim(said.status.as_deref())),
        }
    }

    pub(super) fn of(&self, key: Key) -> &Claim {
        match key {
            Key::Confine => &self.confine,
            Key::Net => &self.net,
            Key::Metadata => &self.metadata,
            Key::Durability => &self.durability,
            Key::Policy => &self.policy,
            Key::Hole => &self.hole,
        }
    }
}

impl Key {
    /// The member that it is about, by its dotted path.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Confine => "confinement.status",
            Self::Net => "confinement.network",
            Self::Metadata => "confinement.metadata",
            Self::Durability => "durability",
            Self::Policy => "policy.status",
            Self::Hole => "confinement.holes",
        }
    }

    fn claim(self, spelled: Option<&str>) -> Claim {
        let Some(spelled) = spelled else {
            return Err(self.without(Found::Absent));
        };
        match self.word(spelled) {
            Some(word) => Ok(vec![word]),
            None => Err(self.without(Found::Unknown(Shortened::of(spelled)))),
        }
    }

    fn without(self, found: Found) -> NoWord {
        NoWord {
            member: self.member(),
            found,
        }
    }
}

/// What is read of `confinement`; one member of another type spoils it all.
#[derive(Deserialize)]
struct Confinement {
    status: Option<String>,
    network: Option<String>,
    metadata: Option<String>,
    /// Omitted when there are none.
    #[serde(default)]
    holes: Holes,
}

#[derive(Deserialize)]
struct Policy {
    status: Option<String>,
}

fn members_of<T: for<'de> Deserialize<'de>>(
    row: &Row<'_>,
    name: Name,
    member: &'static str,
) -> Result<T, NoWord> {
    row.object(name).ok_or_else(|| NoWord {
        member,
        found: match row.has(name) {
            true => Found::Unreadable,
            false => Found::Absent,
        },
    })
}

/// Which holes are listed, each once, and the first that is not known: a list
/// is not kept, since a record may make it of any length.
#[derive(Default)]
struct Holes {
    known: Vec<&'static str>,
    unknown: Option<Shortened>,
}

impl<'de> Deserialize<'de> for Holes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Holes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of strings")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Holes, A::Error> {
                let mut holes = Holes::default();
                while let Some(hole) = list.next_element::<String>()? {
                    match Key::Hole.word(&hole) {
                        Some(known) if holes.known.contains(&known) => {}
                        Some(known) => holes.known.push(known),
                        None => {
                            holes.unknown.get_or_insert_with(|| Shortened::of(&hole));
                        }
                    }
                }
                Ok(holes)
            }
        }

        deserializer.deserialize_seq(List)
    }
}
