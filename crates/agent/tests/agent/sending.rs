//! Files that an answer names go along with it, if they may.

use std::sync::Arc;

use serde_json::json;
use talaria_agent::{Bounds, EffectClass, PromptMessage, Roots, Situation, ToolOutput};
use talaria_model::{AgentEvent, Capabilities, FileRef, Files, Shown};
use tempfile::TempDir;

use crate::stage::{Model, Scripted, Stage, briefs, call, calls, file, home, says, text};

/// Files below a folder may be sent.
fn below(folder: &TempDir) -> Bounds {
    let roots = Roots::new([folder.path().to_owned()], None, 1000);
    Bounds { roots, ..Bounds::default() }
}

async fn answer(reply: &str, roots: Roots) -> (String, Vec<String>) {
    let mut stage = Stage::new(Model::new([says(reply)]));
    stage.settings.fence.set(Bounds { roots, ..Bounds::default() });
    stage.say("draw");
    let mut events = stage.play().await;
    let Some(AgentEvent::Finished { text, files, .. }) = events.pop() else { panic!("{events:?}") };
    (text, files.into_iter().map(|file| file.name).collect())
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_named_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cat.png"), "png").unwrap();
    let path = folder.path().join("cat.png").display().to_string();
    let roots = || Roots::new([folder.path().to_owned()], None, 1000);
    let (text, files) = answer(&format!("Here is your cat.\n\nMEDIA:{path}"), roots()).await;
    assert_eq!((text.as_str(), files), ("Here is your cat.", vec!["cat.png".to_owned()]));
    let (text, files) = answer(&format!("I saved it as {path}."), roots()).await;
    assert!(text.contains("cat.png"), "{text}");
    assert_eq!(files, ["cat.png"]);
    let (_, files) = answer(&format!("I saved it as `{path}`."), roots()).await;
    assert!(files.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_file_that_may_not_be_sent_is_said_to_be() {
    let (text, files) = answer("MEDIA:/etc/ssl/secret.txt", Roots::default()).await;
    assert!(files.is_empty());
    assert_eq!(text, "*(I could not send `secret.txt`: there is no such file.)*");
}

#[tokio::test(start_paused = true)]
async fn the_model_is_told_how_to_send_files_where_they_can_be_sent() {
    let folder = tempfile::tempdir().unwrap();
    let told = async |files, allowed: bool| {
        let mut stage = Stage::new(Model::new([says("x")]));
        let mut situation = Situation::at(home());
        situation.platform.can = Capabilities { files, ..Capabilities::PLAIN };
        stage.situation = situation;
        if allowed {
            stage.settings.fence.set(below(&folder));
        }
        stage.say("hello");
        stage.play().await;
        stage.model.prompts()[0].system.contains("MEDIA:")
    };
    assert!(told(Files::UpTo(1_000_000), true).await);
    assert!(!told(Files::UpTo(1_000_000), false).await);
    assert!(!told(Files::Never, true).await);
}

#[tokio::test(start_paused = true)]
async fn a_preview_shows_no_tags() {
    let mut stage = Stage::new(Model::new([vec![
        crate::stage::text("Here: "),
        crate::stage::text("MEDIA:/tmp/a.png"),
        crate::stage::text(" done"),
        crate::stage::end(talaria_agent::FinishReason::Stop, vec![]),
    ]]));
    stage.say("hm");
    let mut running = stage.start();
    stage.next(&mut running).await;
    assert_eq!(running.preview.borrow().text, "Here:  done");
}

fn shown(files: &[FileRef]) -> Vec<(&str, Shown)> {
    files.iter().map(|file| (file.name.as_str(), file.shown)).collect()
}

#[tokio::test(start_paused = true)]
async fn how_files_are_to_be_shown_goes_with_them() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.ogg", "b.png"] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    let path = |name: &str| folder.path().join(name).display().to_string();
    let both = format!("MEDIA:{}\nMEDIA:{}", path("a.ogg"), path("b.png"));
    for (mark, sound, picture) in [
        ("", Shown::Natural, Shown::Natural),
        ("[[audio_as_voice]]\n", Shown::Voice, Shown::Natural),
        ("[[as_document]]\n", Shown::Document, Shown::Document),
    ] {
        let mut stage = Stage::new(Model::new([
            calls(vec![call("c1", "speak", json!({}))]),
            says(&format!("{mark}{both}")),
        ]));
        stage.settings.fence.set(below(&folder));
        let mut speak = Scripted::new("speak", EffectClass::Pure, &stage.trace);
        speak.deed = Arc::new(|_| {
            let files = vec![file("said.ogg", "audio/ogg", 3)];
            Ok(ToolOutput { files, ..ToolOutput::text("spoken") })
        });
        stage = stage.with_tool(speak);
        stage.say("say it");
        let Some(AgentEvent::Finished { text, files, .. }) = stage.play().await.pop() else {
            panic!("no answer")
        };
        assert_eq!(text, "");
        let expected = [("said.ogg", sound), ("a.ogg", sound), ("b.png", picture)];
        assert_eq!(shown(&files), expected, "{mark}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_sends_its_files_too_and_nothing_is_sent_twice() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cat.png"), "png").unwrap();
    let path = folder.path().join("cat.png").display().to_string();
    let looks = || {
        let mut reply = calls(vec![call("c1", "look", json!({}))]);
        reply
            .insert(0, text(&format!("Your cat.\n[[as_document]]\nMEDIA:{path}\nMEDIA:/no/x.pdf")));
        reply
    };
    let done = || says(&format!("That was {path}."));
    let stage = || {
        let mut stage = Stage::new(Model::new([looks(), done()])).with("look", EffectClass::Pure);
        stage.settings.fence.set(below(&folder));
        stage.say("draw");
        stage
    };
    let mut whole = stage();
    let events = whole.play().await;
    let AgentEvent::Stepped { text, files, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(text, "Your cat.\n\n*(I could not send `x.pdf`: there is no such file.)*");
    assert_eq!(shown(files), [("cat.png", Shown::Document)]);
    let Some(AgentEvent::Finished { files, .. }) = events.last() else { panic!("{events:?}") };
    assert!(files.is_empty(), "{files:?}");
    // The model reads its own words as they are recorded, before and after a restart.
    let prompt = whole.model.prompts().pop().unwrap();
    let PromptMessage::Assistant { text: read, .. } = &prompt.messages[1] else { panic!() };
    assert_eq!(read, text);
    let mut cut = stage();
    cut.play_and_die(1).await;
    cut.with_model(Model::new([done()]));
    let events = cut.play().await;
    let Some(AgentEvent::Finished { files, .. }) = events.last() else { panic!("{events:?}") };
    assert!(files.is_empty(), "{files:?}");
    assert_eq!(cut.model.prompts()[0].messages, prompt.messages);
}

#[tokio::test(start_paused = true)]
async fn a_path_in_the_midst_of_the_work_is_only_talked_about() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cat.png"), "png").unwrap();
    let path = folder.path().join("cat.png").display().to_string();
    let mut looks = calls(vec![call("c1", "look", json!({}))]);
    looks.insert(0, text(&format!("Let me look at {path} first.")));
    let mut stage = Stage::new(Model::new([looks, says("A cat.")])).with("look", EffectClass::Pure);
    stage.settings.fence.set(below(&folder));
    stage.say("what is it?");
    let events = stage.play().await;
    assert!(matches!(&events[0], AgentEvent::Stepped { files, .. } if files.is_empty()));
    assert_eq!(briefs(&events).last().unwrap(), "finished \"A cat.\"");
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_was_taken_back_meanwhile_is_none_to_send_from() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cat.png"), "png").unwrap();
    let path = folder.path().join("cat.png").display().to_string();
    let looks = calls(vec![call("c1", "look", json!({}))]);
    let answer = says(&format!("Here is your cat.\n\nMEDIA:{path}"));
    let mut stage = Stage::new(Model::new([looks, answer])).with("look", EffectClass::Pure);
    stage.settings.fence.set(below(&folder));
    stage.say("draw");
    let fence = stage.settings.fence.clone();
    let mut running = stage.start();
    while !matches!(stage.next(&mut running).await.unwrap(), AgentEvent::Called { .. }) {}
    fence.set(Bounds::default());
    let mut events = stage.finish(&mut running).await;
    let Some(AgentEvent::Finished { files, .. }) = events.pop() else { panic!("{events:?}") };
    assert!(files.is_empty(), "{files:?}");
}
