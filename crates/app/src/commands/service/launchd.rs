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
}
