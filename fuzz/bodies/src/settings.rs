//! Configuration files and variables, with a secret in them that must not be seen anywhere.

use talaria_config::{Loaded, Problems, Shown, Sources, load};
use talaria_platforms::ALL;

use crate::bytes::Bytes;

const CANARY: &str = "canary-4bf1c9-sings";

/// Any YAML beside secrets in the environment.
pub(crate) fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data).replace(CANARY, "");
    let sources = || {
        Sources::default()
            .with_config(text.clone())
            .with_dotenv(format!("OPENAI_API_KEY={CANARY}\nP_KEY='{CANARY}'\n"))
            .with_variable("TALARIA_PROVIDERS__P__API_KEY", CANARY)
    };
    let again = Again::sometimes(data);
    let loaded = load_and_look(again, sources);
    if let (Ok(loaded), Again::Too) = (loaded, again) {
        let (reloaded, changes) =
            loaded.reload(sources()).expect("what was loaded can be loaded again");
        assert!(changes.is_empty(), "nothing changed, and yet {changes:?}");
        for line in loaded.show() {
            assert_eq!(reloaded.origin(&line.path), loaded.origin(&line.path));
        }
    }
    // A file that holds the secret itself, where a secret belongs, and is otherwise as bad as it likes.
    let with_secret = format!("{text}\nproviders:\n  q:\n    api_key: {CANARY}\n");
    let _ = load_and_look(Again::No, || Sources::default().with_config(with_secret.clone()));
}

/// Any `.env`, and a value in it that is written as values are to be written.
pub(crate) fn dotenv(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let quoted: String = bytes.words().chars().filter(|c| *c != '\'' && *c != '\0').collect();
    let value = format!("{quoted}{CANARY}");
    let junk = bytes.text().replace(CANARY, "");
    let junk: String =
        junk.lines().filter(|line| !line.contains(['"', '\''])).collect::<Vec<_>>().join("\n");
    let names_ours = junk.contains("SECRET_VALUE") || junk.contains("TALARIA");
    let text = format!("SECRET_VALUE='{value}'\n{junk}\n");
    let loaded =
        load_and_look(Again::sometimes(data), || Sources::default().with_dotenv(text.clone()));
    if let (Ok(loaded), false) = (loaded, names_ours) {
        let found =
            loaded.environment().get("SECRET_VALUE").map(|found| found.value.expose().to_owned());
        assert_eq!(found.as_deref(), Some(value.as_str()), "a quoted value changed");
    }
    // The whole of the bytes as one file, with the secret where a careless hand would put it.
    let text = format!(
        "{}\nMY_TOKEN=\"{CANARY}\n{CANARY}\nMY TOKEN={CANARY}\n",
        String::from_utf8_lossy(data).replace(CANARY, "")
    );
    let settings_named = text.contains("TALARIA");
    if !settings_named {
        let _ = load_and_look(Again::No, || Sources::default().with_dotenv(text.clone()));
    }
}

/// Loads, now and then twice to compare, and looks for the secret in everything that can be printed.
fn load_and_look(again: Again, sources: impl Fn() -> Sources) -> Result<Loaded, Problems> {
    let loaded = load(sources(), ALL);
    let printed = printed(&loaded);
    for text in &printed {
        assert!(!text.contains(CANARY), "the secret is printed: {text}");
    }
    if again == Again::Too {
        assert_eq!(printed, self::printed(&load(sources(), ALL)), "not the same twice");
    }
    loaded
}

/// Whether to load a second time: it takes long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Too,
    No,
}

impl Again {
    fn sometimes(data: &[u8]) -> Self {
        if data.len().is_multiple_of(4) { Self::Too } else { Self::No }
    }
}

fn printed(loaded: &Result<Loaded, Problems>) -> Vec<String> {
    match loaded {
        Err(problems) => vec![problems.to_string(), format!("{problems:?}")],
        Ok(loaded) => {
            let lines = loaded.show();
            let mut printed: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let hidden = lines.iter().filter(|line| line.value == Shown::Hidden);
            printed.extend(hidden.map(|line| format!("{:?}", loaded.explain(&line.path))));
            printed.extend(loaded.warnings().iter().map(ToString::to_string));
            printed.push(format!("{loaded:?}"));
            printed
        }
    }
}
