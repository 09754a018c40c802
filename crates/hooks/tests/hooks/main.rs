//! Hooks as their operators write them: in the shell and in Python, well and badly.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod refused;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::{Value, json};
use talaria_clock::{Clock, Sleep, SystemClock};
use talaria_hooks::{Events, HookError, Hooks, Rewrite, Ruling, Way};
use talaria_model::Timestamp;
use tempfile::TempDir;

/// A test that takes this long hangs.
const HANGS: Duration = Duration::from_secs(60);

struct Place {
    folder: TempDir,
}

const EVENTS: Events<'static> = Events {
    all: &["gateway:startup", "agent:step", "agent:end", "command:*", "pre_dispatch"],
    asked: &["command:*", "pre_dispatch"],
};

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder }
    }

    fn hook(&self, name: &str, manifest: &str, program: (&str, &str)) -> &Self {
        let folder = self.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in [("HOOK.yaml", manifest), program] {
            fs::write(folder.join(file), text).unwrap();
            fs::set_permissions(folder.join(file), fs::Permissions::from_mode(0o700)).unwrap();
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        self
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn open(&self) -> Hooks {
        let hooks = Hooks::open(self.path(), EVENTS, Arc::new(SystemClock));
        assert_eq!(hooks.refused(), []);
        hooks
    }
}

/// Drives the hooks while something is done with them.
async fn with<T>(hooks: &Hooks, done: impl Future<Output = T>) -> T {
    tokio::select! {
        done = tokio::time::timeout(HANGS, done) => done.expect("it hangs"),
        never = hooks.work() => match never {},
    }
}

/// How often a hook has failed, and how often it was not told something.
fn count(hooks: &Hooks, name: &str) -> (u64, u64) {
    let tally = hooks.tallies().into_iter().find(|tally| tally.name == name).unwrap();
    (tally.failed, tally.untold)
}

const SAYS_WHAT_IT_HEARD: &str = "#!/bin/sh\ncat > heard\n";

#[tokio::test]
async fn a_program_is_told_and_nobody_waits_for_it() {
    let place = Place::new();
    place.hook("audit", "events: [agent:step]", ("handler", SAYS_WHAT_IT_HEARD));
    let hooks = place.open();
    assert!(hooks.wants("agent:step") && !hooks.wants("agent:end"));
    hooks.tell("agent:step", &json!({"tool_names": ["sum"]}));
    with(&hooks, hooks.quiet(HANGS)).await;
    let heard = fs::read_to_string(place.path().join("audit/heard")).unwrap();
    let heard: Value = serde_json::from_str(&heard).unwrap();
    assert_eq!(heard, json!({"event": "agent:step", "context": {"tool_names": ["sum"]}}));
}

#[tokio::test]
async fn whoever_names_a_command_decides_before_whoever_names_them_all() {
    let place = Place::new();
    let say = |what: &str| format!("#!/bin/sh\ncat > /dev/null\necho '{what}'\n");
    let deny = say(r#"{"decision": "deny", "message": "not here"}"#);
    let rewrite = say(r#"{"decision": "rewrite", "command_name": "help", "raw_args": ""}"#);
    place.hook("a-all", "events: ['command:*']", ("handler", &deny));
    place.hook("b-new", "events: ['command:new']", ("handler", &rewrite));
    let hooks = place.open();
    let new = with(&hooks, async {
        (hooks.ask("command:new", &json!({})).await, hooks.ask("command:stop", &json!({})).await)
    });
    let (new, stop) = new.await;
    let rewritten = Rewrite {
        command: Some("help".into()),
        arguments: Some(String::new()),
        ..Rewrite::default()
    };
    assert_eq!((new.ruling, new.by.as_deref()), (Ruling::Rewrite(rewritten), Some("b-new")));
    let denied = Ruling::Deny { message: Some("not here".into()) };
    assert_eq!((stop.ruling, stop.by.as_deref()), (denied, Some("a-all")));
}

#[tokio::test]
async fn a_python_handler_is_kept_warm_and_its_prints_are_no_answer() {
    let place = Place::new();
    let handler = "
import asyncio
count = 0

async def handle(event_type, context):
    global count
    count += 1
    print('this is no answer', count)
    await asyncio.sleep(0)
    return {'decision': 'deny', 'message': f'{event_type} {context[\"user_id\"]} {count}'}
";
    place.hook("policy", "events: ['command:*']\ntimeout: 10s", ("handler.py", handler));
    let hooks = place.open();
    let said = with(&hooks, async {
        let mut said = Vec::new();
        for _ in 0..3 {
            said.push(hooks.ask("command:new", &json!({"user_id": "ann"})).await.ruling);
        }
        said
    });
    let denied = |count| Ruling::Deny { message: Some(format!("command:new ann {count}")) };
    assert_eq!(said.await, [denied(1), denied(2), denied(3)]);
}

#[tokio::test]
async fn a_python_handler_may_be_a_plain_function_and_many_are_heard_at_once() {
    let place = Place::new();
    let handler = "
import threading
both = threading.Barrier(2, timeout=30)

def handle(event_type, context):
    both.wait()
    return {'decision': 'allow'}
";
    place.hook("pair", "events: [pre_dispatch]\ntimeout: 10s", ("handler.py", handler));
    let hooks = place.open();
    let both = with(&hooks, async {
        let context = json!({});
        futures::join!(hooks.ask("pre_dispatch", &context), hooks.ask("pre_dispatch", &context))
    });
    let (one, other) = both.await;
    assert_eq!((one.ruling, other.ruling), (Ruling::Allow, Ruling::Allow));
}

#[tokio::test]
async fn a_python_handler_needs_no_event_loop_that_watches_pipes() {
    let place = Place::new();
    let handler = "
import asyncio

async def cannot(*_):
    raise NotImplementedError('as on Windows')

asyncio.SelectorEventLoop.connect_read_pipe = cannot

async def handle(event_type, context):
    return {'decision': 'allow'}
";
    place.hook("anywhere", "events: [pre_dispatch]\ntimeout: 10s", ("handler.py", handler));
    let hooks = place.open();
    let verdict = with(&hooks, hooks.ask("pre_dispatch", &json!({}))).await;
    assert_eq!(verdict.ruling, Ruling::Allow);
}

#[tokio::test]
async fn a_python_handler_that_crashes_is_started_again() {
    let place = Place::new();
    let handler = "
import os

async def handle(event_type, context):
    if context.get('crash'):
        os._exit(3)
    if context.get('raise'):
        raise ValueError('no')
    return {'decision': 'allow'}
";
    place.hook("frail", "events: [pre_dispatch]\ntimeout: 10s", ("handler.py", handler));
    let hooks = place.open();
    with(&hooks, async {
        let judge = async |context: Value| hooks.ask("pre_dispatch", &context).await.ruling;
        for _ in 0..3 {
            assert_eq!(judge(json!({"crash": true})).await, Ruling::Pass, "it fails open");
            assert_eq!(judge(json!({"raise": true})).await, Ruling::Pass);
            assert_eq!(judge(json!({})).await, Ruling::Allow);
        }
        let tried =
            hooks.try_one("frail", "pre_dispatch", &json!({"raise": true}), Way::Asked).await;
        assert_eq!(tried, Some(Err(HookError::Failed("ValueError: no".into()))));
    })
    .await;
}

#[tokio::test]
async fn a_hook_that_hangs_is_not_waited_for_and_then_left_alone() {
    let place = Place::new();
    let hangs = "#!/bin/sh\nsleep 1000\n";
    let manifest =
        |policy: &str| format!("events: ['command:*']\ntimeout: 50ms\non_failure: {policy}");
    place.hook("closed", &manifest("deny"), ("handler", hangs));
    let hooks = place.open();
    with(&hooks, async {
        for _ in 0..5 {
            let ruling = hooks.ask("command:new", &json!({})).await.ruling;
            assert_eq!(ruling, Ruling::Deny { message: None }, "it fails closed");
        }
        // What nobody waits for any more is counted, too.
        hooks.quiet(HANGS).await;
        let tried = hooks.try_one("closed", "command:new", &json!({}), Way::Asked).await;
        assert_eq!(tried, Some(Err(HookError::LeftAlone)));
        let ruling = hooks.ask("command:new", &json!({})).await.ruling;
        assert_eq!(ruling, Ruling::Deny { message: None });
    })
    .await;
}

#[tokio::test]
async fn a_python_handler_that_blocks_everything_is_ended() {
    let place = Place::new();
    let handler = "
import os
import time

async def handle(event_type, context):
    with open('process', 'w') as file:
        print(os.getpid(), file=file)
    time.sleep(1000)
";
    place.hook("blocks", "events: [pre_dispatch]\ntimeout: 1s", ("handler.py", handler));
    let hooks = place.open();
    with(&hooks, async {
        for _ in 0..6 {
            assert_eq!(hooks.ask("pre_dispatch", &json!({})).await.ruling, Ruling::Pass);
        }
        hooks.quiet(HANGS).await;
        let process = fs::read_to_string(place.path().join("blocks/process")).unwrap();
        let process = Pid::from_raw(process.trim().parse().unwrap());
        while kill(process, None).is_ok() {
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn hooks_whose_work_was_cut_off_are_driven_again() {
    let place = Place::new();
    let deny = "#!/bin/sh\ncat > /dev/null\necho '{\"decision\": \"deny\"}'\n";
    place.hook("judge", "events: ['command:*']", ("handler", deny));
    let hooks = place.open();
    for _ in 0..3 {
        // As when it panics: what was being done is lost, and no more.
        let asked = with(&hooks, hooks.ask("command:new", &json!({}))).await;
        assert_eq!(asked.ruling, Ruling::Deny { message: None });
    }
}

#[tokio::test]
async fn nobody_waits_for_hooks_that_nobody_drives() {
    let place = Place::new();
    place.hook("audit", "events: [pre_dispatch]\ntimeout: 50ms", ("handler", SAYS_WHAT_IT_HEARD));
    let hooks = place.open();
    let asked = tokio::time::timeout(HANGS, hooks.ask("pre_dispatch", &json!({}))).await;
    assert_eq!(asked.expect("it hangs").ruling, Ruling::Pass);
    // So much waits for a hook, and not more.
    let room = 256;
    for told in 0..10_000 {
        hooks.tell("pre_dispatch", &json!({}));
        assert_eq!(count(&hooks, "audit"), (0, (told + 1_u64).saturating_sub(room)));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_for_many_hooks_than_for_one() {
    let place = Place::new();
    for name in ["a", "b", "c", "d"] {
        let manifest = "events: [pre_dispatch]\ntimeout: 4s";
        place.hook(name, manifest, ("handler", "#!/bin/sh\nsleep 1000\n"));
    }
    let last = "events: [pre_dispatch]\ntimeout: 1s\non_failure: deny";
    place.hook("e", last, ("handler", "#!/bin/sh\necho '{\"decision\": \"allow\"}'\n"));
    let hooks = place.open();
    let clock = SystemClock;
    let begun = clock.mark();
    let verdict = hooks.ask("pre_dispatch", &json!({})).await;
    assert_eq!(clock.mark().since(begun), Duration::from_secs(10));
    assert_eq!(
        (verdict.ruling, verdict.by.as_deref()),
        (Ruling::Deny { message: None }, Some("e"))
    );
    assert_eq!(count(&hooks, "e"), (0, 0), "it was never asked");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_however_many_questions_there_are() {
    let place = Place::new();
    place.hook("slow", "events: [pre_dispatch]\ntimeout: 4s", ("handler", "#!/bin/sh\nsleep 9\n"));
    let hooks = place.open();
    let clock = SystemClock;
    let begun = clock.mark();
    let ask = async |_| {
        hooks.ask("pre_dispatch", &json!({})).await;
        clock.mark().since(begun).as_secs()
    };
    let mut took = futures::future::join_all((0..30).map(ask)).await;
    took.sort_unstable();
    // Eight at a time have the time of their own; who has waited for ten seconds is not asked any more.
    assert_eq!(took, [[4; 8].to_vec(), [8; 8].to_vec(), [10; 14].to_vec()].concat());
}

/// A clock that somebody sets back by a day whenever it is looked at.
struct SetBack(AtomicI64);

impl Clock for SetBack {
    fn now(&self) -> Timestamp {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        Timestamp::from_millis(self.0.fetch_sub(DAY, Ordering::Relaxed))
    }

    fn sleep(&self, wait: Duration) -> Sleep {
        SystemClock.sleep(wait)
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_nobody_wait_longer() {
    let place = Place::new();
    let blocks = "import time\n\nasync def handle(event_type, context):\n    time.sleep(1000)\n";
    let manifest = "events: [pre_dispatch]\ntimeout: 1s";
    place.hook("program", manifest, ("handler", "#!/bin/sh\nsleep 1000\n"));
    place.hook("python", manifest, ("handler.py", blocks));
    let clock = Arc::new(SetBack(AtomicI64::new(1_794_735_000_000)));
    let hooks = Hooks::open(place.path(), EVENTS, clock);
    // Time passes as soon as everybody waits, so each question takes exactly as long as it may.
    tokio::select! {
        () = async {
            let begun = SystemClock.mark();
            for _ in 0..5 {
                assert_eq!(hooks.ask("pre_dispatch", &json!({})).await.ruling, Ruling::Pass);
            }
            assert_eq!(SystemClock.mark().since(begun), Duration::from_secs(10));
            hooks.quiet(Duration::from_secs(5)).await;
            let left_alone = Some(Err(HookError::LeftAlone));
            for name in ["program", "python"] {
                assert_eq!(hooks.try_one(name, "pre_dispatch", &json!({}), Way::Asked).await, left_alone);
            }
            SystemClock.sleep(Duration::from_secs(61)).await;
            for name in ["program", "python"] {
                let tried = hooks.try_one(name, "pre_dispatch", &json!({}), Way::Asked).await;
                assert_eq!(tried, Some(Err(HookError::Late)), "{name} is tried again");
            }
            hooks.tell("pre_dispatch", &json!({}));
            let begun = SystemClock.mark();
            hooks.quiet(Duration::from_secs(3)).await;
            assert!(SystemClock.mark().since(begun) <= Duration::from_secs(4));
        } => {}
        never = hooks.work() => match never {},
    }
}

#[tokio::test]
async fn who_is_only_told_hears_what_others_decide() {
    let place = Place::new();
    let deny = "#!/bin/sh\ncat > /dev/null\necho '{\"decision\": \"deny\"}'\n";
    place.hook("a-policy", "events: ['command:new']\ntimeout: 10s", ("handler", deny));
    place.hook("z-audit", "events: ['command:*']\ndecides: false", ("handler", SAYS_WHAT_IT_HEARD));
    let hooks = place.open();
    with(&hooks, async {
        let ruling = hooks.ask("command:new", &json!({})).await.ruling;
        assert_eq!(ruling, Ruling::Deny { message: None });
        hooks.quiet(HANGS).await;
    })
    .await;
    let heard = fs::read_to_string(place.path().join("z-audit/heard")).unwrap();
    assert!(heard.contains("command:new"), "{heard}");
}

#[tokio::test]
async fn nobody_can_switch_a_hook_off_by_what_they_write() {
    let place = Place::new();
    let manifest = "events: ['command:*', pre_dispatch]\ntimeout: 10s\non_failure: deny";
    let program = "#!/bin/sh\ncat > /dev/null\necho \"{\\\"decision\\\": \\\"handled\\\", \\\"message\\\": \\\"$1\\\"}\"\n";
    let python = "
async def handle(event_type, context):
    return {'decision': 'rewrite', 'text': context.get('text', '')}
";
    place.hook("program", manifest, ("handler", program));
    let other = Place::new();
    other.hook("python", manifest, ("handler.py", python));
    let hooks = place.open();
    with(&hooks, async {
        let long = "x".repeat(200 * 1024);
        for name in ["\0x", "$(id)", "a b", &long] {
            for _ in 0..6 {
                let ruling = hooks.ask(&format!("command:{name}"), &json!({})).await.ruling;
                assert_eq!(ruling, Ruling::Handled { message: Some("command".into()) });
            }
        }
        let ruling = hooks.ask("command:new", &json!({})).await.ruling;
        assert_eq!(ruling, Ruling::Handled { message: Some("command:new".into()) });
        assert_eq!(count(&hooks, "program"), (0, 0));
    })
    .await;
    let hooks = other.open();
    with(&hooks, async {
        // As long as a message can be, and every character has to be escaped.
        let text = "\u{1}".repeat(256 * 1024);
        let both = json!({ "text": text, "args": text });
        for _ in 0..2 {
            let ruling = hooks.ask("pre_dispatch", &both).await.ruling;
            let rewritten = Rewrite { text: Some(text.clone()), ..Rewrite::default() };
            assert!(ruling == Ruling::Rewrite(rewritten), "it is heard and answered whole");
        }
        let endless = json!({ "text": "x".repeat(8 * 1024 * 1024) });
        for _ in 0..6 {
            let ruling = hooks.ask("pre_dispatch", &endless).await.ruling;
            assert_eq!(ruling, Ruling::Deny { message: None }, "as the manifest says");
        }
        let ruling = hooks.ask("pre_dispatch", &json!({ "text": "hello" })).await.ruling;
        let rewritten = Rewrite { text: Some("hello".into()), ..Rewrite::default() };
        assert_eq!(ruling, Ruling::Rewrite(rewritten));
        assert_eq!(count(&hooks, "python"), (0, 6));
    })
    .await;
}

#[tokio::test]
async fn what_lies_beside_a_python_handler_does_not_break_its_host() {
    let place = Place::new();
    let handler = "
import beside

def handle(event_type, context):
    return {'decision': 'deny', 'message': beside.WORD}
";
    place.hook("crowded", "events: [pre_dispatch]\ntimeout: 10s", ("handler.py", handler));
    for name in ["json.py", "asyncio.py", "queue.py", "threading.py"] {
        fs::write(place.path().join("crowded").join(name), "raise RuntimeError('no')\n").unwrap();
    }
    fs::write(place.path().join("crowded/beside.py"), "WORD = 'found'\n").unwrap();
    let hooks = place.open();
    with(&hooks, async {
        let ruling = hooks.ask("pre_dispatch", &json!({})).await.ruling;
        assert_eq!(ruling, Ruling::Deny { message: Some("found".into()) });
    })
    .await;
}

#[tokio::test]
async fn answers_that_make_no_sense_count_as_failures() {
    let place = Place::new();
    let cases = [
        ("words", "echo words"),
        ("much", "yes | head -c 1000000"),
        ("unknown", "echo '{\"decision\": \"perhaps\"}'"),
        ("fails", "echo no >&2; exit 1"),
    ];
    for (name, says) in cases {
        let program = format!("#!/bin/sh\ncat > /dev/null\n{says}\n");
        let manifest = format!("events: ['command:{name}']\ntimeout: 10s\non_failure: deny");
        place.hook(name, &manifest, ("handler", &program));
    }
    let hooks = place.open();
    with(&hooks, async {
        for (name, _) in cases {
            let event = format!("command:{name}");
            for _ in 0..5 {
                let ruling = hooks.ask(&event, &json!({})).await.ruling;
                assert_eq!(ruling, Ruling::Deny { message: None }, "{name}");
            }
            assert_eq!(count(&hooks, name), (5, 0), "{name}");
            let tried = hooks.try_one(name, &event, &json!({}), Way::Asked).await;
            assert_eq!(tried, Some(Err(HookError::LeftAlone)), "{name}");
            let ruling = hooks.ask(&event, &json!({})).await.ruling;
            assert_eq!(ruling, Ruling::Deny { message: None }, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_hook_sees_nothing_of_our_environment_and_works_in_its_folder() {
    let place = Place::new();
    let program = "#!/bin/sh\ncat > /dev/null\nenv | sed 's/=.*//' | sort > names\npwd > place\n\
                   echo $TALARIA_HOOK $TALARIA_EVENT $1 > told\n";
    place.hook("nosy", "events: [gateway:startup]", ("handler", program));
    let hooks = place.open();
    hooks.tell("gateway:startup", &json!({}));
    with(&hooks, hooks.quiet(HANGS)).await;
    let read = |name: &str| fs::read_to_string(place.path().join("nosy").join(name)).unwrap();
    let known = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
    for name in read("names").lines() {
        let ours = ["TALARIA_HOOK", "TALARIA_EVENT", "PWD", "OLDPWD", "SHLVL", "_"];
        assert!(known.contains(&name) || ours.contains(&name), "{name}");
    }
    assert!(read("place").trim().ends_with("nosy"));
    assert_eq!(read("told").trim(), "nosy gateway:startup gateway:startup");
}

#[test]
fn a_hook_that_others_could_have_changed_is_refused() {
    let manifest = "events: [agent:end]";
    for file in ["HOOK.yaml", "handler", ""] {
        let place = Place::new();
        place.hook("shared", manifest, ("handler", SAYS_WHAT_IT_HEARD));
        let path = place.path().join("shared").join(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o722)).unwrap();
        let hooks = Hooks::open(place.path(), EVENTS, Arc::new(SystemClock));
        assert!(hooks.listed().is_empty());
        let reason = &hooks.refused()[0].reason;
        assert!(reason.contains("chmod go-w"), "{file}: {reason}");
    }
}

#[test]
fn a_hook_that_is_wrong_says_what_is_wrong_with_it() {
    let cases = [
        ("events: []", "handler", "has to name events"),
        ("events: ['no event']", "handler", "is no event"),
        (
            "events: [pre_dispach]",
            "handler",
            "\"pre_dispach\" never happens; there are gateway:startup",
        ),
        ("event: [agent:end]", "handler", "HOOK.yaml is wrong"),
        ("events: [agent:end]\ntimeout: 1h", "handler", "10s at most"),
        ("events: [agent:end]\nhandler: ../elsewhere", "handler", "in the hook's folder"),
        ("events: [agent:end]", "other", "there is no handler"),
    ];
    for (manifest, program, reason) in cases {
        let place = Place::new();
        place.hook("wrong", manifest, (program, SAYS_WHAT_IT_HEARD));
        let hooks = Hooks::open(place.path(), EVENTS, Arc::new(SystemClock));
        let refused = &hooks.refused()[0].reason;
        assert!(refused.contains(reason), "{manifest}: {refused}");
    }
    let place = Place::new();
    place.hook("plain", "events: [agent:end]", ("handler", SAYS_WHAT_IT_HEARD));
    let plain = place.path().join("plain/handler");
    fs::set_permissions(plain, fs::Permissions::from_mode(0o600)).unwrap();
    let hooks = Hooks::open(place.path(), EVENTS, Arc::new(SystemClock));
    assert!(hooks.refused()[0].reason.contains("chmod u+x"));
    let nothing = Hooks::open(&place.path().join("nowhere"), EVENTS, Arc::new(SystemClock));
    assert!(nothing.listed().is_empty() && nothing.refused().is_empty());
}
