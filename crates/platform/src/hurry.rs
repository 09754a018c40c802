//! How long a request may take to say what it wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// That the body of a request has to be there within seconds, however steadily it trickles in.
///
/// It is put into the extensions of every request that came over a network, and holds until whoever
/// answers the request knows the sender and says so: what nobody thought of is in a hurry.
#[derive(Debug, Clone, Default)]
pub struct Hurry(Arc<AtomicBool>);

impl Hurry {
    /// Lets the body take its time, as long as it goes on arriving: the sender has proved who they are.
    pub fn waive(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the body may take its time.
    pub fn is_waived(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
