//! Hooks of a running gateway: the examples of the documentation, what hooks decide, and hooks that
//! misbehave.

mod refused;
mod trying;
mod why;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;
use talaria_clock::{Clock, SystemClock};
use talaria_machine::Process;
use talaria_testkit::{Asked, Hold, Home, Reply, ScriptedCall, Truth, VendorSettings, within};

use crate::rig::{HANGS, Rig, run};

/// A hook as a person would write it.
fn hook(home: &Home, path: &str, text: &str) {
    let file = home.file(path);
    let private = |mode| fs::Permissions::from_mode(mode);
    for folder in [home.file("hooks"), file.parent().unwrap().to_owned()] {
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, private(0o700)).unwrap();
    }
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, private(0o700)).unwrap();
}

/// Puts the examples of the documentation into a home: each block stands below the name of its file.
fn examples(home: &Home) -> usize {
    let page = fs::read_to_string("../../docs/hooks.md").unwrap();
    let mut count = 0;
    let mut file: Option<&str> = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(named) = line.strip_prefix("`hooks/") {
            file = named.split('`').next();
        } else if line.starts_with("```")
            && let Some(name) = file.take()
        {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            hook(home, &format!("hooks/{name}"), &format!("{}\n", block.join("\n")));
            count += 1;
        }
    }
    count
}

/// A hook in Python that writes down all that it hears, and decides as the last lines say.
fn python(home: &Home, name: &str, manifest: &str, decides: &str) {
    hook(home, &format!("hooks/{name}/HOOK.yaml"), manifest);
    let handler = format!(
        "import json

async def handle(event_type, context):
    with open('heard.log', 'a') as log:
        print(json.dumps([event_type, context]), file=log)
{decides}
"
    );
    hook(home, &format!("hooks/{name}/handler.py"), &handler);
}

/// What such a hook has heard of an event.
fn heard(home: &Home, name: &str, event: &str) -> Vec<Value> {
    let log = fs::read_to_string(home.file(&format!("hooks/{name}/heard.log"))).unwrap_or_default();
    let heard = log.lines().map(|line| serde_json::from_str::<(String, Value)>(line).unwrap());
    heard.filter(|(heard, _)| heard == event).map(|(_, context)| context).collect()
}

/// What somebody is told who says this, once it is so much.
async fn says(rig: &Rig, who: &str, text: &str, many: usize) -> String {
    rig.vendor.happens(who, text, |event| event.sender = who.into());
    rig.until("what somebody is told", |truth: &Truth| truth.shown_in(who).count() >= many).await;
    rig.vendor.read(|truth| truth.shown_in(who).map(|shown| shown.text.clone()).last().unwrap())
}

#[tokio::test]
async fn the_examples_of_the_documentation_work() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    assert_eq!(examples(&rig.home), 4);
    let (ended, output) = run(rig.home.path(), &["hooks", "list"]).await;
    assert!(ended.success() && output.contains("no-new") && output.contains("audit"), "{output}");
    let (ended, output) = run(rig.home.path(), &["hooks", "test", "no-new", "command:new"]).await;
    assert!(ended.success() && output.contains("Not today."), "{output}");
    rig.start().await;
    let (ended, output) = run(rig.home.path(), &["chat", "/new"]).await;
    assert!(ended.success(), "{output}");
    assert_eq!(output.trim(), "Not today.");
    // The beginning of a name is the same command.
    let (_, output) = run(rig.home.path(), &["chat", "/reset"]).await;
    assert_eq!(output.trim(), "Not today.");
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    let heard = async {
        let log = rig.home.file("hooks/audit/audit.log");
        while !fs::read_to_string(&log).unwrap_or_default().contains("agent:end") {
            tokio::task::yield_now().await;
        }
    };
    within(HANGS, "the hook to be told", heard).await;
    rig.settle().await;
    rig.check();
    rig.end().await;
}

#[tokio::test]
async fn hooks_see_what_arrives_first_and_the_beginning_and_the_end() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    hook(
        &rig.home,
        "hooks/first/HOOK.yaml",
        "events: [pre_dispatch, 'gateway:*', 'session:*', 'agent:*']\ntimeout: 10s\n",
    );
    hook(
        &rig.home,
        "hooks/first/handler.py",
        "
async def handle(event_type, context):
    with open('heard.log', 'a') as log:
        print(event_type, file=log)
    if event_type == 'pre_dispatch' and 'spam' in context['text']:
        return {'action': 'skip', 'reason': 'it is spam'}
    if event_type == 'pre_dispatch' and 'secret' in context['text']:
        return {'action': 'rewrite', 'text': context['text'].replace('secret', '******')}
",
    );
    rig.start().await;
    let mut spam = String::new();
    rig.vendor.happens("ann", "spam spam", |event| spam = event.id.clone());
    rig.vendor.say("ann", "my secret is");
    rig.until_everything_is_answered().await;
    let (ended, output) = run(rig.home.path(), &["why", &spam]).await;
    assert!(
        ended.success() && output.contains("the hook first dropped it: it is spam"),
        "{output}"
    );
    let (_, output) = run(rig.home.path(), &["sessions", "search", "my"]).await;
    assert!(output.contains("******") && !output.contains("secret"), "{output}");
    rig.end().await;
    let heard = fs::read_to_string(rig.home.file("hooks/first/heard.log")).unwrap();
    for event in [
        "gateway:startup",
        "pre_dispatch",
        "session:start",
        "agent:start",
        "agent:end",
        "gateway:shutdown",
    ] {
        assert!(heard.contains(event), "{event} in {heard}");
    }
}

#[tokio::test]
async fn hooks_that_hang_crash_and_babble_lose_nothing() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    for (name, does) in [("hangs", "sleep 1000"), ("crashes", "kill -9 $$"), ("babbles", "yes")] {
        let events = "events: [pre_dispatch, agent:start, agent:end]\ntimeout: 100ms\n";
        hook(&rig.home, &format!("hooks/{name}/HOOK.yaml"), events);
        hook(&rig.home, &format!("hooks/{name}/handler"), &format!("#!/bin/sh\n{does}\n"));
    }
    rig.start().await;
    for number in 0..20 {
        rig.vendor.say(["ann", "ben", "cleo"][number % 3], "hello");
    }
    let said = SystemClock.mark();
    rig.until_everything_is_answered().await;
    // Three hooks with a tenth of a second each, five times, before they are left alone.
    let took = SystemClock.mark().since(said);
    assert!(took < Duration::from_secs(15), "people waited {took:?} for hooks");
    rig.settle().await;
    rig.check();
    rig.end().await;
}

#[tokio::test]
async fn commands_are_decided_by_hooks_once_and_only_for_those_who_may_give_them() {
    let account = ["allow_admin_from: [ann]", "user_allowed_commands: [weather]"];
    let settings = VendorSettings { redelivers: 10, ..VendorSettings::default() };
    let mut rig = Rig::new(settings, &account).await;
    python(
        &rig.home,
        "ops",
        "events: ['command:*']\ntimeout: 10s\n",
        "    if event_type in ('command:deploy', 'command:restart'):
        return {'decision': 'handled', 'message': 'Deployed ' + context['raw_args']}
    if event_type == 'command:weather':
        return {'decision': 'rewrite', 'command_name': 'whoami', 'raw_args': ''}",
    );
    rig.start().await;
    assert_eq!(says(&rig, "ann", "/deploy to the moon", 1).await, "Deployed to the moon");
    assert!(says(&rig, "ben", "/deploy", 1).await.contains("There is no command `/deploy`"));
    assert!(says(&rig, "ben", "/restart", 2).await.contains("is for administrators"));
    assert!(says(&rig, "ben", "/weather Rome", 3).await.contains("ben"), "it became /whoami");
    let known = rig.vendor.read(Truth::connections);
    rig.vendor.hang_up();
    rig.until("a repeat of everything", |truth: &Truth| truth.connections() > known).await;
    assert_eq!(says(&rig, "ann", "/deploy again", 2).await, "Deployed again");
    rig.kill().await;
    rig.start().await;
    rig.vendor.happens("ann", "/deploy once more", |event| event.sender = "ann".into());
    // What was said before may be said again: the process died before it knew that it had arrived.
    let is_done =
        |truth: &Truth| truth.shown_in("ann").any(|shown| shown.text == "Deployed once more");
    rig.until("the last command", is_done).await;
    rig.end().await;
    let deployed = heard(&rig.home, "ops", "command:deploy");
    let what: Vec<_> =
        deployed.iter().map(|context| context["raw_args"].as_str().unwrap()).collect();
    assert_eq!(what, ["to the moon", "again", "once more"]);
    assert!(deployed.iter().all(|context| context["user_id"] == "ann"), "{deployed:?}");
    assert_eq!(heard(&rig.home, "ops", "command:restart"), [Value::Null; 0]);
    assert_eq!(heard(&rig.home, "ops", "command:weather").len(), 1);
}

#[tokio::test]
async fn a_stranger_whom_a_hook_drops_is_given_no_code() {
    let account = ["unauthorized_dm_behavior: pair"];
    let mut rig = Rig::new(VendorSettings::default(), &account).await;
    let written = fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    let listed = written.replace("allow_everyone: true", "allow: [ann]");
    assert_ne!(written, listed);
    rig.home.write("config.yaml", &listed).unwrap();
    let drops = "    if context['user_id'] == 'mallory':
        return {'action': 'skip', 'reason': 'known to be trouble'}";
    python(&rig.home, "gate", "events: [pre_dispatch, 'command:*']\ntimeout: 10s\n", drops);
    rig.start().await;
    let mut trouble = String::new();
    for who in ["mallory", "zoe"] {
        rig.vendor.happens(who, "/help", |event| {
            event.sender = who.into();
            if who == "mallory" {
                trouble.clone_from(&event.id);
            }
        });
    }
    assert!(says(&rig, "ann", "/help", 1).await.contains("/help"));
    let has_code = |truth: &Truth| truth.shown_in("zoe").any(|shown| shown.text.contains("code"));
    rig.until("a code for who was not dropped", has_code).await;
    let (ended, output) = run(rig.home.path(), &["why", &trouble]).await;
    let why = "the hook gate dropped it: known to be trouble";
    assert!(ended.success() && output.contains(why), "{output}");
    rig.end().await;
    let who = |context: &Value| context["user_id"].as_str().unwrap().to_owned();
    let seen: Vec<_> = heard(&rig.home, "gate", "pre_dispatch").iter().map(who).collect();
    assert_eq!(seen.len(), 3, "{seen:?}");
    let asked: Vec<_> = heard(&rig.home, "gate", "command:help").iter().map(who).collect();
    assert_eq!(asked, ["ann"]);
    rig.vendor.read(|truth| assert_eq!(truth.shown_in("mallory").count(), 0));
}

#[tokio::test]
async fn a_hook_that_must_hold_denies_when_it_fails_and_stops_no_stop() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    let manifest = "events: ['command:*']\ntimeout: 10s\non_failure: deny\n";
    hook(&rig.home, "hooks/broken/HOOK.yaml", manifest);
    hook(&rig.home, "hooks/broken/handler", "#!/bin/sh\nexit 1\n");
    let slow = "events: ['command:stop', pre_dispatch]\ntimeout: 10s\n";
    hook(&rig.home, "hooks/slow/HOOK.yaml", slow);
    hook(&rig.home, "hooks/slow/handler", "#!/bin/sh\nif grep -q /stop; then sleep 1000; fi\n");
    rig.start().await;
    // Also when it has been left alone.
    for many in 1..=7 {
        assert_eq!(says(&rig, "ann", "/help", many).await, "That command is not allowed here.");
    }
    let asked = SystemClock.mark();
    let told = says(&rig, "ann", "/stop", 8).await;
    assert_eq!(told, "Nothing is running.");
    let took = SystemClock.mark().since(asked);
    assert!(took < Duration::from_secs(9), "a stop waited {took:?} for a hook");
    rig.end().await;
}

#[tokio::test]
async fn what_a_hook_hangs_over_holds_up_neither_a_stop_nor_another_conversation() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    hook(&rig.home, "hooks/slow/HOOK.yaml", "events: [pre_dispatch]\ntimeout: 10s\n");
    hook(&rig.home, "hooks/slow/handler", "#!/bin/sh\nif grep -q ponder; then sleep 1000; fi\n");
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    let asked = SystemClock.mark();
    let mut pondered = String::new();
    rig.vendor.happens("ben", "ponder this", |event| pondered.clone_from(&event.id));
    rig.vendor.happens("ann", "/stop", |event| event.sender = "ann".into());
    let is_stopped =
        |truth: &Truth| truth.shown_in("ann").any(|shown| shown.text.contains("Stopped."));
    rig.until("a stop", is_stopped).await;
    let took = SystemClock.mark().since(asked);
    // A second is asserted in virtual time; here it is far from the ten that the hook would take.
    assert!(took < Duration::from_secs(4), "a stop waited {took:?} for a hook");
    rig.llm.hold(Hold::Never);
    rig.vendor.say("cleo", "hello");
    let is_answered = |truth: &Truth| truth.shown_in("cleo").count() > 0;
    rig.until("an answer for somebody else", is_answered).await;
    let (_, output) = run(rig.home.path(), &["why", &pondered]).await;
    assert!(output.contains("waits for hooks to decide"), "{output}");
    let took = SystemClock.mark().since(asked);
    assert!(took < Duration::from_secs(8), "another conversation waited {took:?} for a hook");
    rig.end().await;
}

#[tokio::test]
async fn a_python_handler_that_is_busy_does_not_outlive_a_gateway_that_is_killed() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    let begins = "
import os
import subprocess
import time

def works():
    child = subprocess.Popen(['sleep', '1000'])
    with open('busy.new', 'w') as file:
        print(os.getpid(), child.pid, file=file)
    os.rename('busy.new', 'busy')
    time.sleep(1000)
";
    for (name, does) in [
        ("blocks", "async def handle(event_type, context):\n    works()\n"),
        ("plain", "def handle(event_type, context):\n    works()\n"),
        ("loads", "works()\n"),
    ] {
        hook(&rig.home, &format!("hooks/{name}/HOOK.yaml"), "events: ['gateway:startup']\n");
        hook(&rig.home, &format!("hooks/{name}/handler.py"), &format!("{begins}\n{does}"));
    }
    rig.start().await;
    let mut processes = Vec::new();
    for name in ["blocks", "plain", "loads"] {
        let file = rig.home.file(&format!("hooks/{name}/busy"));
        let begun = async {
            while !file.exists() {
                tokio::task::yield_now().await;
            }
        };
        within(HANGS, "a handler to be busy", begun).await;
        let written = fs::read_to_string(&file).unwrap();
        let pids = written.split_whitespace().map(|pid| Process::numbered(pid.parse().unwrap()));
        processes.extend(pids.map(|process| (name, process)));
    }
    assert!(processes.iter().all(|(_, process)| process.is_alive()));
    rig.kill().await;
    for (name, process) in processes {
        let gone = async {
            while process.is_alive() {
                tokio::task::yield_now().await;
            }
        };
        within(HANGS, format!("the end of {name}"), gone).await;
    }
}

#[tokio::test]
async fn hooks_hear_of_every_step_and_of_the_end_of_a_conversation() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    python(&rig.home, "audit", "events: ['agent:*', 'session:*']\n", "");
    rig.llm.script(|asked: &Asked| match asked.returned() {
        None => {
            let arguments = r#"{"query":"plans"}"#.into();
            let call = ScriptedCall { tool: "session_search".into(), arguments };
            Reply::Calls(String::new(), vec![call])
        }
        Some(_) => Reply::Says("I found nothing.".into()),
    });
    rig.start().await;
    assert_eq!(says(&rig, "ann", "look for my plans", 1).await, "I found nothing.");
    says(&rig, "ann", "/new", 2).await;
    rig.end().await;
    let only = |event: &str| {
        let mut heard = heard(&rig.home, "audit", event);
        assert_eq!(heard.len(), 1, "{event}: {heard:?}");
        heard.remove(0)
    };
    let step = only("agent:step");
    assert_eq!(step["iteration"], 1);
    assert_eq!(step["tool_name"], "session_search");
    assert!(step["duration_ms"].is_u64() && step["tools"][0]["duration_ms"].is_u64(), "{step}");
    assert_eq!(step["tool_names"], serde_json::json!(["session_search"]));
    assert_eq!(step["tools"][0]["name"], "session_search");
    assert_eq!(step["tools"][0]["arguments"], r#"{"query":"plans"}"#);
    let (start, end) = (only("agent:start"), only("agent:end"));
    for field in
        ["platform", "user_id", "chat_id", "chat_type", "thread_id", "session_id", "message"]
    {
        assert_eq!(start[field], end[field], "{field}");
    }
    assert_eq!(end["message"], "look for my plans");
    assert_eq!(end["response"], "I found nothing.");
    assert_eq!(end["ok"], true);
    for event in ["session:end", "session:reset"] {
        let over = only(event);
        assert_eq!(over["reason"], "new", "{event}");
        assert_eq!(over["session_id"], start["session_id"], "{event}");
    }
    assert_eq!(heard(&rig.home, "audit", "session:start").len(), 2);
}
