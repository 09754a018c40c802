//! What a provider wants to see again with an answer, as the opaque text that a transcript keeps.
//!
//! It carries the name of the provider that wrote it, because what one provider signed another one
//! rejects: a conversation that moves on to a second provider goes without the first one's thoughts.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The most that is kept of one answer. Beyond it nothing is kept: half a signature is worse than
/// none.
pub(crate) const MOST_KEPT: usize = 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    from: String,
    kept: T,
}

/// Makes the text to keep.
pub(crate) fn keep(from: &str, kept: &impl Serialize) -> Option<String> {
    let text = serde_json::to_string(&Kept { from: from.to_owned(), kept }).ok()?;
    (text.len() <= MOST_KEPT).then_some(text)
}

/// Reads it back, if it is from that provider.
pub(crate) fn recall<T: serde::de::DeserializeOwned>(from: &str, text: &str) -> Option<T> {
    let kept: Kept<Box<RawValue>> = serde_json::from_str(text).ok()?;
    (kept.from == from).then(|| serde_json::from_str(kept.kept.get()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_wrote_it_reads_it_back() {
        let text = keep("anthropic", &["signed"]).unwrap();
        assert_eq!(recall::<Vec<String>>("anthropic", &text), Some(vec!["signed".to_owned()]));
        assert_eq!(recall::<Vec<String>>("openai", &text), None);
        assert_eq!(recall::<Vec<String>>("anthropic", "not json"), None);
        assert_eq!(recall::<u32>("anthropic", &text), None);
    }

    #[test]
    fn too_much_is_not_kept_at_all() {
        assert_eq!(keep("anthropic", &"x".repeat(MOST_KEPT)), None);
    }
}
