//! `talaria hooks test`: a hook hears an event as the gateway would let it, and its answer is judged.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use talaria_machine::Process;
use talaria_testkit::{Home, Launch, within};

use super::hook;
use crate::rig::{HANGS, binary, run};

/// A home with hooks in the shell: what each is called, its manifest, and what it does with what it heard.
fn home(hooks: &[(&str, &str, &str)]) -> Home {
    let home = Home::empty().unwrap();
    for (name, manifest, does) in hooks {
        hook(&home, &format!("hooks/{name}/HOOK.yaml"), manifest);
        let program = format!("#!/bin/sh\ncat > /dev/null\n{does}\n");
        hook(&home, &format!("hooks/{name}/handler"), &program);
    }
    home
}

#[tokio::test]
async fn a_test_says_what_the_gateway_would_make_of_the_answer() {
    let says = |answer: &str| format!("echo '{answer}'");
    let skip = says(r#"{"action": "skip"}"#);
    let change = says(r#"{"decision": "rewrite", "command_name": "help"}"#);
    let home = home(&[
        ("skips", "events: [pre_dispatch, 'command:*', agent:end]\ntimeout: 10s\n", &skip),
        ("changes", "events: ['command:*']\ntimeout: 10s\n", &change),
        ("silent", "events: [pre_dispatch]\ntimeout: 10s\n", ""),
    ]);
    for (hook, event, context, expected) in [
        ("skips", "pre_dispatch", "{}", "→ it is dropped without an answer"),
        ("skips", "command:new", "{}", "the person is told: That command is not allowed here."),
        ("skips", "command:stop", "{}", "told, with 30s to hear it; nobody waits for an answer"),
        ("skips", "agent:end", "{}", "told, with 30s"),
        ("changes", "command:new", r#"{"raw_args": "me"}"#, "this is said: /help me"),
        ("changes", "pre_dispatch", "{}", "a rewrite without a text changes nothing"),
        ("changes", "pre_dispatch", "{}", "does not name pre_dispatch among its events"),
        ("silent", "pre_dispatch", "{}", "asked, with 10s to decide"),
        ("silent", "pre_dispatch", "{}", "it says nothing: the next hook is asked"),
    ] {
        let (ended, output) = run(home.path(), &["hooks", "test", hook, event, context]).await;
        assert!(ended.success() && output.contains(expected), "{hook} {event}: {output}");
    }
    let (ended, output) =
        run(home.path(), &["hooks", "test", "skips", "pre_dispatch", "--json"]).await;
    assert!(ended.success(), "{output}");
    let told: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&told["asked"], &told["limit_ms"]), (&true.into(), &10_000.into()));
    assert_eq!(told["answer"]["action"], "skip");
    assert_eq!(told["meaning"], "it is dropped without an answer");
}

#[tokio::test]
async fn a_test_fails_where_the_gateway_could_not_go_by_the_answer() {
    let home = home(&[
        ("maybe", "events: [pre_dispatch]\ntimeout: 10s\n", "echo '{\"decision\": \"maybe\"}'"),
        ("words", "events: [pre_dispatch]\ntimeout: 10s\non_failure: deny\n", "echo hello"),
        ("slow", "events: [pre_dispatch]\ntimeout: 50ms\n", "sleep 1000"),
    ]);
    for (hook, problem, meaning) in [
        ("maybe", "its answer cannot be understood: `maybe` is no decision", "as if the hook"),
        ("words", "its answer cannot be understood", "by its on_failure, it is denied"),
        ("slow", "it did not answer in time", "as if the hook were not there"),
    ] {
        let (ended, output) = run(home.path(), &["hooks", "test", hook, "pre_dispatch"]).await;
        assert_eq!(ended.code(), Some(1), "{hook}: {output}");
        assert!(output.contains(problem) && output.contains(meaning), "{hook}: {output}");
    }
    // Nobody looks at what is answered where it is only told.
    let (ended, output) = run(home.path(), &["hooks", "test", "maybe", "agent:end"]).await;
    assert!(ended.success(), "{output}");
}

#[tokio::test]
async fn whoever_interrupts_a_test_ends_the_hook_with_all_that_it_started() {
    let does = "sleep 1000 &\necho $$ $! > busy.new\nmv busy.new busy\nwait";
    let home = home(&[("hangs", "events: [agent:end]\n", does)]);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let file = home.file("hooks/hangs/busy");
        let arguments = ["hooks", "test", "hangs", "agent:end"];
        let mut process = Launch::new(binary()).arguments(&arguments).start(home.path()).unwrap();
        let begun = async {
            while !file.exists() {
                tokio::task::yield_now().await;
            }
        };
        within(HANGS, "the hook to begin", begun).await;
        let written = fs::read_to_string(&file).unwrap();
        let started: Vec<Process> =
            written.split_whitespace().map(|pid| Process::numbered(pid.parse().unwrap())).collect();
        fs::remove_file(&file).unwrap();
        kill(Pid::from_raw(process.pid().try_into().unwrap()), signal).unwrap();
        let ended = within(HANGS, "the end of the test", process.ended()).await.unwrap();
        assert_eq!(ended.code(), Some(1), "{signal}");
        for process in started {
            let gone = async {
                while process.is_alive() {
                    tokio::task::yield_now().await;
                }
            };
            within(HANGS, format!("the end of {process:?}"), gone).await;
        }
    }
}
