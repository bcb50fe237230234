//! Text that is kept while it is scanned: the start of it, and of what goes
//! past the bound the length and SHA-256.

use crate::rpc::message::{Cut, Sum, Text};
use crate::wire::digest::{self, Hasher};

/// One text being gathered. Its buffer is reused for the next.
#[derive(Default)]
pub(super) struct Capture {
    head: String,
    bound: usize,
    total: u64,
    /// Over the whole text, once it went past the bound.
    hasher: Option<Hasher<digest::Text>>,
}

impl Capture {
    /// Starts a text of which at most `bound` bytes are kept.
    pub(super) fn start(&mut self, bound: usize) {
        self.head.clear();
        self.bound = bound;
        self.total = 0;
        self.hasher = None;
    }

    pub(super) fn push(&mut self, piece: &str) {
        self.total += piece.len() as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(piece.as_bytes());
            return;
        }
        let room = self.bound - self.head.len();
        if piece.len() <= room {
            self.head.push_str(piece);
            return;
        }
        let mut hasher = Hasher::new();
        hasher.update(self.head.as_bytes());
        hasher.update(piece.as_bytes());
        self.hasher = Some(hasher);
        self.head
            .push_str(&piece[..piece.floor_char_boundary(room)]);
    }

    pub(super) fn push_char(&mut self, letter: char) {
        self.push(letter.encode_utf8(&mut [0; 4]));
    }

    pub(super) fn text(&self) -> Text {
        Text::new(&self.head, self.cut())
    }

    /// What the text is as a whole, if it went past its bound.
    pub(super) fn cut(&self) -> Option<Cut> {
        self.is_cut().then(|| Cut {
            bytes: self.total,
            sum: self.sum(),
        })
    }

    /// The SHA-256 of the whole text.
    pub(super) fn sum(&self) -> Sum {
        match &self.hasher {
            Some(hasher) => hasher.clone().finish(),
            None => Sum::of(self.head.as_bytes()),
        }
    }

    pub(super) fn head(&self) -> &str {
        &self.head
    }

    pub(super) fn is_cut(&self) -> bool {
        self.hasher.is_some()
    }
}
