//! Names that nothing else has.

/// An id for a call that came without one.
pub(crate) fn call_id() -> String {
    format!("call_{:016x}", rand::random::<u64>())
}
