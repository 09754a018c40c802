//! Hooks that are refused: nothing of them is run, and what they guard does not happen meanwhile.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use serde_json::json;
use talaria_clock::SystemClock;
use talaria_hooks::{Denied, HookError, Hooks, Ruling, Verdict};

use crate::{EVENTS, HANGS, Place, with};

const GUARD: &str = "events: [pre_dispatch, 'command:new']\non_failure: deny\n";

/// A program that leaves a trace of having been run.
const TRACE: &str = "#!/bin/sh\ncat > /dev/null\ntouch ran\necho '{\"decision\": \"allow\"}'\n";

fn open(place: &Place) -> Hooks {
    Hooks::open(place.path(), EVENTS, Arc::new(SystemClock))
}

async fn ask(hooks: &Hooks, event: &str) -> Verdict {
    with(hooks, hooks.ask(event, &json!({}))).await
}

/// Insists that a hook is refused and that what it guards is denied because of that.
async fn check_guarded(place: &Place, what: &str) {
    let hooks = open(place);
    let [refused] = hooks.refused() else { panic!("{what}: {:?}", hooks.refused()) };
    assert!(!hooks.is_empty(), "{what}");
    for event in ["pre_dispatch", "command:new"] {
        assert!(hooks.decides(event), "{what}");
        let Verdict { ruling, by, failure } = ask(&hooks, event).await;
        assert_eq!(ruling, Ruling::Deny { message: None }, "{what}: {event}");
        assert_eq!((by.as_deref(), failure), (Some("guard"), Some(HookError::Refused)), "{what}");
    }
    assert!(refused.to_string().contains("denied meanwhile"), "{what}: {refused}");
    assert!(!place.path().join("guard/ran").exists(), "{what}: it was run");
}

#[tokio::test]
async fn a_guard_that_others_could_have_changed_denies_what_it_guards_and_is_not_run() {
    for file in ["guard", "guard/HOOK.yaml", "guard/handler", ""] {
        let place = Place::new();
        place.hook("guard", GUARD, ("handler", TRACE));
        let open_to_all = fs::Permissions::from_mode(0o722);
        fs::set_permissions(place.path().join(file), open_to_all).unwrap();
        check_guarded(&place, file).await;
    }
}

#[tokio::test]
async fn a_guard_with_a_mistake_denies_what_it_guards() {
    for (manifest, program) in [
        (GUARD.to_owned(), "no-handler"),
        (format!("{GUARD}colour: red\n"), "handler"),
        (format!("{GUARD}timeout: 1h\n"), "handler"),
        (format!("{GUARD}handler: ../elsewhere\n"), "handler"),
        (GUARD.replace("pre_dispatch", "pre_dispach"), "handler"),
        (GUARD.replace("events:", "event:"), "handler"),
        (GUARD.replace(']', ""), "handler"),
        (format!("{GUARD}on_failure: deny\n"), "handler"),
    ] {
        let place = Place::new();
        place.hook("guard", &manifest, (program, TRACE));
        check_guarded(&place, &manifest).await;
    }
}

#[tokio::test]
async fn a_guard_that_is_refused_denies_no_more_than_it_names_whatever_others_say() {
    let place = Place::new();
    place.hook("a-lenient", "events: ['command:*', pre_dispatch]\n", ("handler", TRACE));
    place.hook("guard", "events: ['command:new']\non_failure: deny\n", ("none", ""));
    let hooks = open(&place);
    assert_eq!(hooks.refused()[0].denies, Denied::Events(vec!["command:new".into()]));
    assert_eq!(ask(&hooks, "command:new").await.ruling, Ruling::Deny { message: None });
    assert!(!place.path().join("a-lenient/ran").exists(), "nobody else is asked");
    assert_eq!(ask(&hooks, "command:help").await.ruling, Ruling::Allow);
    assert_eq!(ask(&hooks, "pre_dispatch").await.ruling, Ruling::Allow);
}

#[tokio::test]
async fn who_is_only_told_hears_of_what_is_denied_for_a_guard() {
    let place = Place::new();
    place.hook("guard", GUARD, ("none", ""));
    place.hook("audit", "events: [pre_dispatch]\ndecides: false\n", ("handler", TRACE));
    let hooks = open(&place);
    with(&hooks, async {
        assert_eq!(
            hooks.ask("pre_dispatch", &json!({})).await.ruling,
            Ruling::Deny { message: None }
        );
        hooks.quiet(HANGS).await;
    })
    .await;
    assert!(place.path().join("audit/ran").exists());
}

#[tokio::test]
async fn what_is_no_guard_denies_nothing_when_it_is_refused() {
    for manifest in [
        "events: [pre_dispatch]\n",
        "events: [pre_dispatch]\non_failure: deny\ndecides: false\n",
        "events: [agent:end]\non_failure: deny\n",
    ] {
        let place = Place::new();
        place.hook("plain", manifest, ("no-handler", TRACE));
        let hooks = open(&place);
        assert_eq!(hooks.refused()[0].denies, Denied::Nothing, "{manifest}");
        assert!(hooks.is_empty() && !hooks.decides("pre_dispatch"), "{manifest}");
        assert_eq!(ask(&hooks, "pre_dispatch").await.ruling, Ruling::Pass, "{manifest}");
    }
}

#[test]
fn a_hook_that_is_switched_off_is_neither_a_guard_nor_refused() {
    let place = Place::new();
    let off = format!("{GUARD}enabled: false\nname: audit\n");
    place.hook("a-off", &off, ("no-handler", TRACE));
    place.hook("audit", "events: [agent:end]\n", ("handler", TRACE));
    let hooks = place.open();
    let names: Vec<_> = hooks.listed().into_iter().map(|listed| listed.name).collect();
    assert_eq!(names, ["audit"], "its name is free");
    assert!(!hooks.decides("pre_dispatch"));
}

#[test]
fn a_hook_that_cannot_be_looked_at_is_refused_and_not_overlooked() {
    let place = Place::new();
    place.hook("lost", GUARD, ("handler", TRACE));
    fs::remove_file(place.path().join("lost/HOOK.yaml")).unwrap();
    symlink("nowhere", place.path().join("lost/HOOK.yaml")).unwrap();
    fs::create_dir_all(place.path().join("odd/HOOK.yaml")).unwrap();
    for path in ["odd", "odd/HOOK.yaml"] {
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(place.path().join(path), private).unwrap();
    }
    fs::create_dir(place.path().join("nothing")).unwrap();
    let hooks = open(&place);
    let names: Vec<_> = hooks.refused().iter().map(|refused| refused.name()).collect();
    assert_eq!(names, ["lost", "odd"]);
    let file = place.path().join("nothing/file");
    fs::write(&file, "").unwrap();
    let hooks = Hooks::open(&file, EVENTS, Arc::new(SystemClock));
    assert_eq!(hooks.refused().len(), 1, "what is no folder has no hooks that could be used");
}
