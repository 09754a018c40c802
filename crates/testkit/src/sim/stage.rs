//! Agents that do what a test says.

use std::sync::Arc;

use talaria_agent::{Agent, Emitter, Preview, Running, Turn, events};
use talaria_model::{
    AgentEvent, Answer, Cost, EntryBody, Failure, Question, Seq, Usage, Used, Word,
};
use tokio::sync::{mpsc, watch};

/// One turn, as the test's own code sees it.
pub struct Stage {
    /// The turn.
    pub turn: Turn,
    /// What it is told.
    pub words: mpsc::Receiver<Word>,
    emitter: Emitter,
    preview: watch::Sender<Preview>,
}

struct Actor<F>(Arc<F>);

/// An agent whose turns are played by this function.
pub fn agent<F, Fut>(play: F) -> Arc<dyn Agent>
where
    F: Fn(Stage) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Arc::new(Actor(Arc::new(play)))
}

impl<F, Fut> Agent for Actor<F>
where
    F: Fn(Stage) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    fn start(&self, turn: Turn) -> Running {
        let (preview, shown) = watch::channel(Preview::default());
        let (control, words) = mpsc::channel(32);
        let play = self.0.clone();
        let events =
            events(|emitter| async move { play(Stage { turn, words, emitter, preview }).await });
        Running { preview: shown, events, control }
    }
}

/// Answers everything at once, with what was said.
pub fn echo() -> Arc<dyn Agent> {
    agent(|stage| async move {
        let answer = stage.echo();
        stage.finish(&answer).await;
    })
}

impl Stage {
    /// What this turn answers.
    pub fn said(&self) -> String {
        let ours =
            self.turn.entries.iter().filter(|entry| entry.turn.as_ref() == Some(&self.turn.id));
        let said = ours.filter_map(|entry| match &entry.body {
            EntryBody::Said { text, .. } => Some(text.as_str()),
            _ => None,
        });
        said.collect::<Vec<_>>().join(" / ")
    }

    /// An answer that repeats it.
    pub fn echo(&self) -> String {
        format!("echo: {}", self.said())
    }

    /// Shows so much of the answer.
    pub fn show(&self, text: &str) {
        self.preview.send_replace(Preview::text(text));
    }

    /// Shows so much of the answer, which has used so much.
    pub fn show_for(&self, text: &str, used: Used) {
        self.preview.send_replace(Preview { untold: Some(used), ..Preview::text(text) });
    }

    /// Shows what it is doing, and nothing else.
    pub fn does(&self, doing: &str) {
        self.preview.send_replace(Preview { doing: Some(doing.into()), ..Preview::default() });
    }

    /// Reports this, and goes on when it is durable.
    pub async fn emit(&self, event: AgentEvent) {
        self.emitter.emit(event).await;
    }

    /// Ends with this answer.
    pub async fn finish(&self, text: &str) {
        self.emit(finished(text)).await;
    }

    /// Says something and goes on.
    pub async fn step(&self, text: &str) {
        let (text, files, calls) = (text.to_owned(), vec![], vec![]);
        self.show("");
        let (usage, cost) = (Usage::default(), Cost::FREE);
        self.emit(AgentEvent::Stepped { text, files, calls, reasoning: None, usage, cost }).await;
    }

    /// Ends without an answer.
    pub async fn fail(&self, failure: Failure) {
        let (said, usage, cost) = (String::new(), Usage::default(), Cost::UNKNOWN);
        self.emit(AgentEvent::Failed { failure, said, usage, cost }).await;
    }

    /// Takes up what was said in between.
    pub async fn took(&self, seqs: Vec<Seq>) {
        self.emit(AgentEvent::Took { seqs }).await;
    }

    /// The next thing it is told. Ends the world of the turn when it is told to stop.
    pub async fn hear(&mut self) -> Word {
        match self.words.recv().await {
            Some(word) => word,
            None => std::future::pending().await,
        }
    }

    /// Asks, unless that was done before a restart, and waits for the answer.
    pub async fn ask(&mut self, question: Question) -> Answer {
        if self.turn.asked.is_none() {
            self.emit(AgentEvent::Asked(question)).await;
        }
        loop {
            match self.hear().await {
                Word::Answer { answer, .. } => return answer,
                Word::Stop => {
                    self.fail(Failure::Stopped).await;
                    std::future::pending::<()>().await;
                }
                Word::Steer(_) => {}
            }
        }
    }
}

/// The end of a turn with this answer.
pub fn finished(text: &str) -> AgentEvent {
    AgentEvent::Finished {
        text: text.into(),
        files: vec![],
        reasoning: None,
        usage: Usage::default(),
        cost: Cost::FREE,
    }
}
