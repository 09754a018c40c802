//! Tools that not everybody may use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use talaria_agent::{EffectClass, Permitted};

use crate::stage::{Model, Stage, briefs, call, calls, says};

#[tokio::test]
async fn a_tool_that_somebody_may_not_use_is_neither_offered_nor_called() {
    // The model asks for it all the same: somebody else's turn in the same conversation had it.
    let wants = vec![call("c1", "pay", json!({})), call("c2", "look", json!({}))];
    let model = Model::new([calls(wants), says("done")]);
    let mut stage =
        Stage::new(model).with("pay", EffectClass::Unsafe).with("look", EffectClass::Pure);
    stage.permitted = Permitted::by(|tool| tool == "look");
    stage.say("pay for me");
    let events = stage.play().await;
    let prompts = stage.model.prompts();
    let offered: Vec<_> = prompts[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, ["look"]);
    let briefs = briefs(&events).join("\n");
    assert!(briefs.contains("does not let them use this tool"), "{briefs}");
    assert_eq!(stage.trace(), ["look {}"], "nothing of the other one was begun");
    assert!(!briefs.contains("calling c1"), "{briefs}");
}

#[tokio::test]
async fn what_is_taken_from_somebody_during_a_turn_is_not_theirs_at_the_next_call() {
    let look = |id| calls(vec![call(id, "look", json!({}))]);
    let model = Model::new([look("c1"), look("c2"), says("done")]);
    let mut stage = Stage::new(model).with("look", EffectClass::Idempotent);
    let may = Arc::new(AtomicBool::new(true));
    let asked = may.clone();
    stage.permitted = Permitted::by(move |_| asked.load(Ordering::Relaxed));
    stage.say("look twice");
    let mut running = stage.start();
    while let Some(event) = stage.next(&mut running).await {
        if let talaria_model::AgentEvent::Called { .. } = event {
            may.store(false, Ordering::Relaxed);
        }
    }
    assert_eq!(stage.trace().len(), 1, "{:?}", stage.trace());
}
