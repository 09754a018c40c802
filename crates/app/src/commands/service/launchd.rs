//! A property list of launchd; see launchd.plist(5).

use std::fmt::Write;
use std::path::Path;

use super::system::{Step, words};
use super::{Job, Level};

pub(super) fn label(name: &str) -> String {
    format!("gateway.{name}")
}

/// launchd knows no exit code that it leaves alone but zero, so a wrong configuration is tried again and
/// again, ten seconds apart.
pub(super) fn plist(job: &Job) -> String {
    let text = |text: &str| format!("<string>{}</string>", escaped(text));
    let (program, home) = (job.program.to_string_lossy(), job.home.to_string_lossy());
    let mut plist = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n",
    );
    let mut environment = format!("<key>TALARIA_HOME</key>{}", text(&home));
    if let Some(path) = &job.path {
        let _ = write!(environment, "<key>PATH</key>{}", text(path));
    }
    let mut entries = vec![
        ("Label", text(&label(&job.name))),
        ("ProgramArguments", format!("<array>{}{}</array>", text(&program), text("run"))),
        ("EnvironmentVariables", format!("<dict>{environment}</dict>")),
        ("RunAtLoad", "<true/>".into()),
        ("KeepAlive", "<dict><key>SuccessfulExit</key><false/></dict>".into()),
        ("ThrottleInterval", "<integer>10</integer>".into()),
        ("ExitTimeOut", format!("<integer>{}</integer>", job.end.as_secs())),
        // Octal 077; a property list has decimal numbers only.
        ("Umask", "<integer>63</integer>".into()),
        ("ProcessType", text("Background")),
        // launchd never begins a new file; what is said is in our own log, which does.
        ("StandardErrorPath", text("/dev/null")),
    ];
    if let Some(user) = &job.user {
        entries.push(("UserName", text(user)));
    }
    for (key, value) in entries {
        let _ = writeln!(plist, "  <key>{key}</key>\n  {value}");
    }
    plist.push_str("</dict>\n</plist>\n");
    plist
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn domain(level: Level) -> String {
    match level {
        Level::User => format!("gui/{}", talaria_machine::user_number()),
        Level::System => "system".into(),
    }
}

/// launchd does not take a service that it has; see launchctl(1).
pub(super) fn begin(name: &str, level: Level, file: &Path) -> Vec<Step> {
    let had = end(name, level).into_iter().map(Step::Undoes);
    let bootstrap = words(&["launchctl", "bootstrap", &domain(level), &file.to_string_lossy()]);
    had.chain([Step::Needed(bootstrap)]).collect()
}

pub(super) fn end(name: &str, level: Level) -> Vec<Vec<String>> {
    vec![words(&["launchctl", "bootout", &format!("{}/{}", domain(level), label(name))])]
}

pub(super) fn status(name: &str, level: Level) -> Vec<String> {
    words(&["launchctl", "print", &format!("{}/{}", domain(level), label(name))])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::exit::Halt;

    #[test]
    fn a_service_that_is_there_already_is_taken_out_first() {
        // launchctl, as far as it matters here.
        let mut loaded = false;
        let mut launchctl = |words: &[String]| match words[1].as_str() {
            "bootstrap" if loaded => Err(Halt::failed("5: Input/output error")),
            "bootstrap" => {
                assert_eq!(words[3], "/x.plist");
                loaded = true;
                Ok(String::new())
            }
            "bootout" if !loaded => Err(Halt::failed("3: No such process")),
            "bootout" => {
                loaded = false;
                Ok(String::new())
            }
            other => panic!("{other}"),
        };
        for time in ["first", "second"] {
            let steps = begin("talaria", Level::System, Path::new("/x.plist"));
            crate::commands::service::system::begin(&steps, &mut launchctl).expect(time);
        }
        assert!(loaded);
    }

    #[test]
    fn a_property_list_escapes_what_a_path_may_contain() {
        let plist = plist(&Job {
            name: "talaria".into(),
            level: Level::User,
            program: "/opt/a&b/talaria".into(),
            home: "/Users/ann/<home>".into(),
            path: Some("/bin".into()),
            user: None,
            end: Duration::from_secs(210),
        });
        assert!(
            plist.contains("<string>/opt/a&amp;b/talaria</string><string>run</string>"),
            "{plist}"
        );
        assert!(plist.contains("<string>/Users/ann/&lt;home&gt;</string>"), "{plist}");
        assert!(plist.contains("<key>ExitTimeOut</key>\n  <integer>210</integer>"), "{plist}");
        assert!(!plist.contains("UserName"), "{plist}");
    }

    /// The elements of a property list in order, each with what stands before its end. Whatever is not
    /// well formed panics.
    fn elements(plist: &str) -> Vec<(String, String)> {
        let mut rest = plist;
        let mut open: Vec<(String, usize)> = Vec::new();
        let mut closed = Vec::new();
        while let Some(begin) = rest.find('<') {
            let place = plist.len() - rest.len() + begin;
            let end = begin + rest[begin..].find('>').expect("a tag has an end");
            let tag = &rest[begin + 1..end];
            if let Some(name) = tag.strip_prefix('/') {
                let (opened, from) = open.pop().expect("something is open");
                assert_eq!(opened, name, "{plist}");
                closed.push((opened, plist[from..place].to_owned()));
            } else if let Some(name) = tag.strip_suffix('/') {
                closed.push((name.to_owned(), String::new()));
            } else if !tag.starts_with(['?', '!']) {
                let name = tag.split(' ').next().expect("a name");
                open.push((name.to_owned(), plist.len() - rest.len() + end + 1));
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty(), "{open:?} of {plist}");
        closed
    }

    #[test]
    fn a_property_list_is_well_formed_and_says_when_the_service_is_begun_again() {
        let plist = plist(&Job {
            name: "talaria".into(),
            level: Level::System,
            program: "/opt/a&b/talaria".into(),
            home: "/Users/ann/<home>".into(),
            path: Some("/bin".into()),
            user: Some("ann".into()),
            end: Duration::from_secs(210),
        });
        let elements = elements(&plist);
        let keys: Vec<&str> = elements
            .iter()
            .filter(|(name, _)| name == "key")
            .map(|(_, text)| text.as_str())
            .collect();
        assert_eq!(
            keys,
            [
                "Label",
                "ProgramArguments",
                "EnvironmentVariables",
                "TALARIA_HOME",
                "PATH",
                "RunAtLoad",
                "KeepAlive",
                "SuccessfulExit",
                "ThrottleInterval",
                "ExitTimeOut",
                "Umask",
                "ProcessType",
                "StandardErrorPath",
                "UserName",
            ]
        );
        // An end that was asked for stays one; whatever else ends is begun again.
        assert!(plist.contains("<dict><key>SuccessfulExit</key><false/></dict>"), "{plist}");
        let texts = elements.iter().filter(|(name, _)| name == "string");
        assert!(texts.into_iter().all(|(_, text)| !text.contains('<')), "{plist}");
    }
}
