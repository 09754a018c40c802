//! What happened, in order, as people read it, and a digest of it to compare two runs by.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Time;

/// A log. Clones are the same one.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Lines>>);

struct Lines {
    time: Time,
    keeps: Keeps,
    kept: Vec<String>,
    line: String,
    digest: u64,
    count: u64,
}

/// What a log keeps besides its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// The name of the last thing that happened.
    Last,
    /// Every line.
    Everything,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            time: Time::default(),
            keeps: Keeps::Last,
            kept: Vec::new(),
            line: String::new(),
            digest: 0xcbf2_9ce4_8422_2325,
            count: 0,
        }
    }
}

impl Log {
    /// A log of what happens at these times.
    pub fn at(time: Time, keeps: Keeps) -> Self {
        Self(Arc::new(Mutex::new(Lines { time, keeps, ..Lines::default() })))
    }

    /// Something happened.
    pub fn note(&self, what: fmt::Arguments<'_>) {
        let mut lines = self.lock();
        let lines = &mut *lines;
        let elapsed = lines.time.elapsed();
        lines.line.clear();
        write!(lines.line, "{:>6}.{:03}  {what}", elapsed.as_secs(), elapsed.subsec_millis())
            .expect("a string takes everything");
        for byte in lines.line.bytes() {
            lines.digest = (lines.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        lines.count += 1;
        if lines.keeps == Keeps::Everything {
            lines.kept.push(lines.line.clone());
        }
    }

    /// Equal for runs in which the same happened at the same time in the same order.
    pub fn digest(&self) -> u64 {
        self.lock().digest
    }

    /// How many things happened.
    pub fn len(&self) -> u64 {
        self.lock().count
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last line.
    pub fn last(&self) -> String {
        self.lock().line.clone()
    }

    /// The lines that were kept.
    pub fn lines(&self) -> Vec<String> {
        self.lock().kept.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
