//! What panics is reported in the log, where it happened and in which words. What becomes of it is for
//! whoever looks after it to say.

use std::panic::PanicHookInfo;

/// Reports every panic from here on, in place of the raw lines that Rust writes to standard error.
pub(super) fn report() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("unnamed");
        tracing::error!(place, thread, problem = words(panic), "something panicked; this is a bug");
    }));
}

fn words<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    panic.payload_as_str().unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    use serde_json::Value;
    use talaria_config::{LogFormat, Sources, load};

    use super::super::start;
    use crate::discretion::Discretion;
    use crate::home::Home;

    const CANARY: &str = "canary-9b74c9897bac770f";

    /// Tells the process in which a thread panics for the test where its home is.
    const HOME: &str = "TALARIA_TEST_HOME_THAT_PANICS";

    fn discretion() -> Arc<Discretion> {
        let yaml = format!("providers: {{p: {{api_key: {CANARY}}}}}");
        let loaded = load(Sources::default().with_config(yaml), talaria_platforms::ALL).unwrap();
        let discretion = Discretion::new();
        discretion.learn(&loaded);
        discretion
    }

    /// Only a process of its own can be told what it does with panics.
    fn panics_in(home: &Path) {
        let home = Home::at(home);
        let loaded = load(Sources::default(), talaria_platforms::ALL).unwrap();
        let mut settings = loaded.config().log.clone();
        settings.format = LogFormat::Json;
        let mut log = start(&home, &settings, &discretion());
        log.keep();
        for words in [format!("planted\nwith {CANARY}"), "and on ".repeat(10_000)] {
            let planted = std::thread::Builder::new().name("a task".into());
            let planted = planted.spawn(move || panic!("{words}")).unwrap();
            planted.join().unwrap_err();
        }
        drop(log);
    }

    #[test]
    fn a_panic_is_one_line_of_the_log_that_says_where_and_no_secret() {
        if let Some(home) = std::env::var_os(HOME) {
            return panics_in(home.as_ref());
        }
        let folder = tempfile::tempdir().unwrap();
        let here = std::thread::current();
        let test = here.name().unwrap();
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(HOME, folder.path())
            .stdout(Stdio::null())
            .output()
            .unwrap();
        assert!(ended.status.success(), "{ended:?}");
        let kept = std::fs::read_to_string(folder.path().join("logs/gateway.log")).unwrap();
        for log in [kept, String::from_utf8(ended.stderr).unwrap()] {
            let lines: Vec<_> = log.lines().collect();
            let [line, long] = lines[..] else { panic!("one line each: {log}") };
            let long: Value = serde_json::from_str(long).unwrap();
            assert_eq!(long["fields"]["thread"], "a task");
            assert!(long["fields"]["line_bytes"].as_u64() > Some(70_000), "{long}");
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["level"], "ERROR");
            let fields = &line["fields"];
            assert_eq!(fields["problem"], "planted\nwith (hidden)");
            assert_eq!(fields["thread"], "a task");
            let place = fields["place"].as_str().unwrap();
            assert!(place.contains("panics.rs:"), "{place}");
        }
    }
}
