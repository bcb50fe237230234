//! The end of a Writer that failed: for good, and everybody hears of it once.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What broke a Writer: the first failure, whatever came after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken(Arc<Cause>);

#[derive(Debug, PartialEq, Eq)]
struct Cause {
    step: Step,
    text: String,
}

impl Broken {
    pub(crate) fn new(step: Step, error: &io::Error) -> Self {
        Self(Arc::new(Cause {
            step,
            text: error.to_string(),
        }))
    }

    /// A panic in the middle of `step`: how far it went is unknown.
    pub(crate) fn panicked(step: Step) -> Self {
        Self(Arc::new(Cause {
            step,
            text: "a thread panicked in the middle of it".to_owned(),
        }))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cause { step, text } = &*self.0;
        write!(
            f,
            "audit {step} failed: {text}; nothing more will be recorded"
        )
    }
}

impl std::error::Error for Broken {}

/// What a Writer was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Appending a row.
    Write,
    /// Flushing the rows before.
    Flush,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::Flush => "flush",
        })
    }
}

/// Whether a Writer is broken, and who wants to know.
///
/// Breaking has two halves, because it happens under a lock that listeners
/// must not find taken: [`set`](Fault::set), then [`tell`](Fault::tell).
#[derive(Default)]
pub(crate) struct Fault {
    first: OnceLock<Broken>,
    listeners: Mutex<Vec<Listener>>,
}

/// Called once when a Writer breaks.
pub(crate) type Listener = Box<dyn FnOnce(&Broken) + Send>;

impl Fault {
    /// # Errors
    /// What broke the Writer, if something did.
    pub(crate) fn check(&self) -> Result<(), Broken> {
        match self.first.get() {
            Some(broken) => Err(broken.clone()),
            None => Ok(()),
        }
    }

    /// Breaks the Writer, unless it is broken already, and returns what broke
    /// it first.
    pub(crate) fn set(&self, broken: Broken) -> Broken {
        self.first.get_or_init(|| broken).clone()
    }

    /// Calls every listener that has not been called, with no lock held.
    pub(crate) fn tell(&self) {
        let Some(broken) = self.first.get() else {
            return;
        };
        // One that registers from now on finds `first` set.
        let listeners = std::mem::take(
            &mut *self
                .listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for listener in listeners {
            listener(broken);
        }
    }

    /// Registers `listener`; when the Writer is broken already it is called
    /// here and now.
    pub(crate) fn listen(&self, listener: Listener) {
        {
            let mut listeners = self
                .listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            listeners.push(listener);
        }
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_first_cause_stays_and_listeners_hear_it_once() {
        let fault = Fault::default();
        let (sender, heard) = mpsc::channel();
        let early = sender.clone();
        fault.listen(Box::new(move |b| early.send(b.to_string()).unwrap()));
        fault.tell();
        assert!(heard.try_recv().is_err());

        fault.set(Broken::new(Step::Flush, &io::Error::other("disk gone")));
        fault.set(Broken::panicked(Step::Write));
        fault.tell();
        fault.tell();
        fault.listen(Box::new(move |b| sender.send(b.to_string()).unwrap()));
        let text = "audit flush failed: disk gone; nothing more will be recorded";
        assert_eq!(heard.iter().collect::<Vec<_>>(), [text, text]);
        assert_eq!(fault.check().unwrap_err().to_string(), text);
    }
}
