//! Choices on buttons. A button carries 64 bytes and a choice can be longer, so that a long one travels
//! as its digest and is kept here, on disk: the button may be pressed after a restart.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use talaria_model::ChoiceId;

/// What fits on a button.
const LONGEST: usize = 64;

/// How many long choices are kept. Whoever presses an older button is told that it is too late.
const KEPT: usize = 512;

const FILE: &str = "choices.json";

/// What stands before a digest. No choice of ours begins so.
const SIGN: char = '~';

/// The long choices on buttons.
pub(super) struct Choices {
    path: PathBuf,
    kept: Mutex<VecDeque<ChoiceId>>,
}

impl Choices {
    /// Reads what was kept. A file that cannot be read has nothing in it.
    pub(super) fn open(folder: &std::path::Path) -> Self {
        let path = folder.join(FILE);
        let kept = std::fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        Self { path, kept: Mutex::new(kept) }
    }

    /// Keeps the long ones of these before their buttons are shown.
    pub(super) fn keep<'a>(&self, choices: impl Iterator<Item = &'a ChoiceId>) {
        let long: Vec<&ChoiceId> =
            choices.filter(|choice| on_button(choice) != choice.as_str()).collect();
        if long.is_empty() {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.len();
        for choice in long {
            if !kept.contains(choice) {
                kept.push_back(choice.clone());
            }
        }
        if kept.len() == known {
            return;
        }
        while kept.len() > KEPT {
            kept.pop_front();
        }
        let written = serde_json::to_vec(&*kept).map_err(std::io::Error::other).and_then(|bytes| {
            let beside = self.path.with_extension("new");
            std::fs::write(&beside, bytes)?;
            std::fs::rename(&beside, &self.path)
        });
        if let Err(error) = written {
            // They work until the next restart.
            tracing::warn!(%error, "choices cannot be kept");
        }
    }

    /// The choice that a button stands for.
    pub(super) fn whole(&self, pressed: &ChoiceId) -> ChoiceId {
        if !pressed.as_str().starts_with(SIGN) {
            return pressed.clone();
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().rev().find(|choice| on_button(choice) == pressed.as_str());
        found.unwrap_or(pressed).clone()
    }
}

/// A choice as it stands on a button.
pub(super) fn on_button(choice: &ChoiceId) -> String {
    let text = choice.as_str();
    if text.len() <= LONGEST && !text.starts_with(SIGN) {
        return text.to_owned();
    }
    format!("{SIGN}{}", BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_choice_comes_back_whole_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let long = ChoiceId::new(format!("{}.1", "call_".repeat(30))).unwrap();
        let short = ChoiceId::literal("20261115_093000_0badcafe/1.call_1.1");
        Choices::open(folder.path()).keep([&long, &short].into_iter());
        let choices = Choices::open(folder.path());
        for choice in [&long, &short] {
            let button = on_button(choice);
            assert!(button.len() <= 64, "{button}");
            assert_eq!(choices.whole(&ChoiceId::new(button).unwrap()), *choice);
        }
    }

    #[test]
    fn a_button_that_nobody_knows_is_some_choice() {
        let folder = tempfile::tempdir().unwrap();
        let unknown = ChoiceId::literal("~AAAA");
        assert_eq!(Choices::open(folder.path()).whole(&unknown), unknown);
    }

    #[test]
    fn a_bounded_number_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let choices = Choices::open(folder.path());
        let long = |n: usize| ChoiceId::new(format!("{n:0>100}")).unwrap();
        let all: Vec<ChoiceId> = (0..KEPT + 3).map(long).collect();
        choices.keep(all.iter());
        assert_eq!(choices.kept.lock().unwrap().len(), KEPT);
        let newest = ChoiceId::new(on_button(&all[KEPT + 2])).unwrap();
        assert_eq!(choices.whole(&newest), all[KEPT + 2]);
    }
}
