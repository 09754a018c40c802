//! A unit of systemd; see systemd.service(5) and systemd.exec(5).

use std::fmt::Write;

use super::system::{Step, words};
use super::{Job, Level};

/// How long nothing may be heard of the gateway before systemd starts it anew.
const WATCHDOG_SECONDS: u32 = 60;

/// How long a start may take: a long journal is read again first.
const START_SECONDS: u32 = 300;

/// What holds for every process of a gateway and needs no privileges.
const HARDENED: &str = "\
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
";

/// What only the manager of the whole machine can do.
const HARDENED_SYSTEM: &str = "\
CapabilityBoundingSet=
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=full
RestrictNamespaces=yes
";

pub(super) fn unit(job: &Job) -> String {
    let Job { level, user, end, .. } = job;
    let (program, home) = (job.program.to_string_lossy(), job.home.to_string_lossy());
    let mut unit = format!(
        "[Unit]\n\
         Description=Talaria gateway\n\
         After=network-online.target\n\
         Wants=network-online.target\n\
         # Started again for as long as it takes; what cannot be mended by that ends with 78, and one that\n\
         # is started too often waits by itself.\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         Type=notify\n\
         NotifyAccess=main\n\
         ExecStart={} run\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         Environment={}\n",
        command(&program),
        quoted(&format!("TALARIA_HOME={home}")),
    );
    if let Some(path) = &job.path {
        let _ = writeln!(unit, "Environment={}", quoted(&format!("PATH={path}")));
    }
    if let Some(user) = user {
        let _ = writeln!(unit, "User={}", user.replace('%', "%%"));
    }
    let _ = write!(
        unit,
        "Restart=on-failure\n\
         RestartSec=500ms\n\
         RestartForceExitStatus=75\n\
         RestartPreventExitStatus=78\n\
         SuccessExitStatus=75\n\
         KillMode=mixed\n\
         TimeoutStartSec={START_SECONDS}\n\
         TimeoutStopSec={}\n\
         WatchdogSec={WATCHDOG_SECONDS}\n\
         {HARDENED}",
        end.as_secs(),
    );
    if *level == Level::System {
        unit.push_str(HARDENED_SYSTEM);
    }
    let target = match level {
        Level::User => "default.target",
        Level::System => "multi-user.target",
    };
    let _ = write!(unit, "\n[Install]\nWantedBy={target}\n");
    unit
}

/// A word in quotes. Specifiers begin with a percent sign.
fn quoted(word: &str) -> String {
    let word = word.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{word}\"")
}

/// The same in a command, where variables begin with a dollar sign.
fn command(word: &str) -> String {
    quoted(word).replace('$', "$$")
}

fn systemctl(level: Level, rest: &[&str]) -> Vec<String> {
    let mut line = vec!["systemctl"];
    if level == Level::User {
        line.push("--user");
    }
    line.extend(rest);
    words(&line)
}

pub(super) fn begin(name: &str, level: Level) -> Vec<Step> {
    let unit = format!("{name}.service");
    let steps = [
        systemctl(level, &["daemon-reload"]),
        systemctl(level, &["enable", &unit]),
        // Also when another version of the file was there and runs.
        systemctl(level, &["restart", &unit]),
    ];
    steps.map(Step::Needed).to_vec()
}

pub(super) fn end(name: &str, level: Level) -> Vec<Vec<String>> {
    vec![systemctl(level, &["disable", "--now", &format!("{name}.service")])]
}

pub(super) fn status(name: &str, level: Level) -> Vec<String> {
    let properties =
        "--property=ActiveState,SubState,UnitFileState,MainPID,NRestarts,Result,StatusText";
    systemctl(level, &["show", properties, &format!("{name}.service")])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn job(level: Level) -> Job {
        Job {
            name: "talaria".into(),
            level,
            program: "/opt/my \"tools\"/tal$ria".into(),
            home: "/home/ann/50% of it".into(),
            path: None,
            user: (level == Level::System).then(|| "ann".into()),
            end: Duration::from_secs(210),
        }
    }

    #[test]
    fn names_mean_what_they_say() {
        let unit = unit(&job(Level::User));
        assert!(unit.contains(r#"ExecStart="/opt/my \"tools\"/tal$$ria" run"#), "{unit}");
        assert!(unit.contains(r#"Environment="TALARIA_HOME=/home/ann/50%% of it""#), "{unit}");
        assert!(!unit.contains("User=") && !unit.contains("ProtectSystem"), "{unit}");
        assert!(unit.ends_with("WantedBy=default.target\n"), "{unit}");
    }

    #[test]
    fn exit_codes_and_times_mean_to_systemd_what_they_mean_to_us() {
        let unit = unit(&job(Level::System));
        for line in [
            "Type=notify",
            "Restart=on-failure",
            "RestartForceExitStatus=75",
            "RestartPreventExitStatus=78",
            "TimeoutStopSec=210",
            "WatchdogSec=60",
            "NoNewPrivileges=yes",
            "ProtectSystem=full",
            "User=ann",
            "WantedBy=multi-user.target",
        ] {
            assert!(unit.lines().any(|found| found == line), "{line}\n{unit}");
        }
    }
}
