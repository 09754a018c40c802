//! A turn with another model, or one that is to think harder.

use std::sync::Arc;

use talaria_agent::{Agent, BuiltIn, Models, NoModel, Provider, Toolbox};
use talaria_model::Effort;

use crate::stage::{Model, Stage, briefs, says};

#[tokio::test(start_paused = true)]
async fn how_hard_to_think_is_passed_on() {
    let mut stage = Stage::new(Model::new([says("Hm."), says("Hm.")]));
    stage.say("think");
    stage.play().await;
    stage.effort = Some(Effort::High);
    stage.say("think harder");
    stage.play().await;
    let efforts: Vec<_> = stage.model.prompts().iter().map(|prompt| prompt.effort).collect();
    assert_eq!(efforts, [None, Some(Effort::High)]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_not_there_is_answered_with_those_that_are() {
    let mut stage = Stage::new(Model::new([says("Yes.")]));
    stage.wished = Some("gpt-9".into());
    stage.say("hello");
    let events = briefs(&stage.play().await);
    assert_eq!(events, ["failed I cannot use gpt-9; I can use test/model. after \"\""]);
    stage.wished = Some("test/model".into());
    assert_eq!(briefs(&stage.play().await), ["finished \"Yes.\""]);
}

struct Two(Arc<Model>, Arc<Model>);

impl Models for Two {
    fn usual(&self) -> Arc<dyn Provider> {
        self.0.clone()
    }

    fn named(&self, name: &str) -> Result<Arc<dyn Provider>, NoModel> {
        if name == "other" { Ok(self.1.clone()) } else { Err(NoModel("No.".into())) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_taken_with_the_model_that_was_wished_for() {
    let one = Arc::new(Model::new([says("one")]));
    let other = Arc::new(Model::new([says("other")]));
    let mut stage = Stage::new(Model::new([]));
    stage.say("hello");
    let agent = BuiltIn::new(
        one.clone(),
        Toolbox::default(),
        stage.files.clone(),
        stage.clock.clone(),
        stage.settings.clone(),
    )
    .with_models(Arc::new(Two(one.clone(), other.clone())));
    for (model, expect) in [(None, "one"), (Some("other".to_owned()), "other")] {
        let mut running = agent.start(talaria_agent::Turn { model, ..stage.turn() });
        let events = briefs(&stage.finish(&mut running).await);
        assert_eq!(events, [format!("finished {expect:?}")]);
    }
    assert_eq!((one.prompts().len(), other.prompts().len()), (1, 1));
}
