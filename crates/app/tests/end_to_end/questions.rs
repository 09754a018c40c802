//! A question that is open when the process dies is still open afterwards.

use talaria_testkit::{Asked, Reply, ScriptedCall, Truth, VendorSettings};

use crate::rig::Rig;

/// A model that asks which colour, once, and then says which it was told.
pub(crate) fn asks(asked: &Asked) -> Reply {
    match asked.returned() {
        None => Reply::Calls(
            String::new(),
            vec![ScriptedCall {
                tool: "ask".into(),
                arguments: r#"{"question":"Which colour?","choices":["red","green"]}"#.into(),
            }],
        ),
        Some(answer) => Reply::Says(format!("The colour is: {answer}")),
    }
}

fn asked(truth: &Truth) -> bool {
    truth.shown().iter().any(|shown| shown.text.contains("Which colour?"))
}

fn answered(truth: &Truth) -> bool {
    truth
        .shown()
        .iter()
        .any(|shown| shown.text.contains("The colour is:") && shown.text.contains("green"))
}

#[tokio::test]
async fn a_button_works_after_a_kill() {
    let mut rig = Rig::new(VendorSettings::default(), &["buttons: 4"]).await;
    rig.llm.script(asks);
    rig.start().await;
    rig.vendor.say_plainly("ann", "paint it");
    rig.until("the question", asked).await;
    let choices = rig.vendor.read(|truth| truth.shown()[0].choices.clone());
    let green = choices.iter().find(|choice| choice.label == "green").unwrap().clone();
    rig.kill().await;
    rig.start().await;
    rig.vendor.press("ann", &green.id);
    rig.until("the answer", answered).await;
    let times = rig.vendor.read(|truth| {
        truth.shown().iter().filter(|shown| shown.text.contains("Which colour?")).count()
    });
    assert!(times == 1 || rig.marked() > 0, "{}", rig.vendor.transcript());
}

#[tokio::test]
async fn an_answer_in_words_works_after_a_kill() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.llm.script(asks);
    rig.start().await;
    rig.vendor.say_plainly("ann", "paint it");
    rig.until("the question", asked).await;
    rig.kill().await;
    // Said while nobody was there.
    rig.vendor.say_plainly("ann", "2");
    rig.start().await;
    rig.until("the answer", answered).await;
}
