//! Work in the background, where nobody answers.

use serde_json::json;
use talaria_model::Attended;

use crate::stage::{Model, Stage, briefs, call, calls, says};

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_where_nobody_is() {
    let asks = calls(vec![call("c1", "ask", json!({ "question": "Which?" }))]);
    let mut stage = Stage::new(Model::new([asks, says("I took the red one.")]));
    stage.attended = Attended::No;
    stage.say("paint it");
    let events = briefs(&stage.play().await);
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events[1].starts_with("c1 failed: this is work in the background"), "{events:?}");
    assert_eq!(events[2], "finished \"I took the red one.\"");
}

#[tokio::test(start_paused = true)]
async fn the_model_is_told_that_nobody_is_there() {
    let told = async |attended| {
        let mut stage = Stage::new(Model::new([says("Yes.")]));
        stage.attended = attended;
        stage.say("hello");
        stage.play().await;
        stage.model.prompts()[0].system.contains("nobody is there to answer questions")
    };
    assert!(told(Attended::No).await);
    assert!(!told(Attended::Yes).await);
}
