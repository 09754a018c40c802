//! An agent that does what it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use talaria_agent::{Agent, Preview, Running, Turn, events};
use talaria_model::{AgentEvent, Cost, Failure, Usage, Word};
use tokio::sync::{mpsc, watch};

/// One thing a scripted agent does.
#[derive(Debug, Clone)]
pub enum Scene {
    /// Shows this much of its answer.
    Shows(Preview),
    /// Reports this, and goes on when it is durable.
    Reports(AgentEvent),
    /// Goes on when it is told something.
    Listens,
    /// Panics.
    Panics,
}

/// Plays the scenes of one script per turn, in the order in which turns start. A turn beyond the
/// last script fails, and so does one that is told to stop.
#[derive(Default)]
pub struct ScriptedAgent {
    played: Arc<Played>,
}

#[derive(Default)]
struct Played {
    scripts: Mutex<VecDeque<Vec<Scene>>>,
    turns: Mutex<Vec<Turn>>,
    heard: Mutex<Vec<Word>>,
}

impl ScriptedAgent {
    /// An agent with one script per turn.
    pub fn new(scripts: impl IntoIterator<Item = Vec<Scene>>) -> Self {
        let scripts = Mutex::new(scripts.into_iter().collect());
        Self { played: Arc::new(Played { scripts, ..Played::default() }) }
    }

    /// The turns that were started so far.
    pub fn turns(&self) -> Vec<Turn> {
        self.played.turns.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What its turns were told so far.
    pub fn heard(&self) -> Vec<Word> {
        self.played.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Agent for ScriptedAgent {
    fn start(&self, turn: Turn) -> Running {
        let (preview, shown) = watch::channel(Preview::default());
        let (control, mut words) = mpsc::channel(32);
        let played = self.played.clone();
        let script = played.scripts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        played.turns.lock().unwrap_or_else(PoisonError::into_inner).push(turn);
        let events = events(|emitter| async move {
            let failed = |failure| {
                let (said, usage, cost) = (String::new(), Usage::default(), Cost::UNKNOWN);
                AgentEvent::Failed { failure, said, usage, cost }
            };
            for scene in script.unwrap_or_default() {
                match scene {
                    Scene::Shows(text) => drop(preview.send_replace(text)),
                    Scene::Reports(event) => {
                        let ends = matches!(
                            event,
                            AgentEvent::Finished { .. } | AgentEvent::Failed { .. }
                        );
                        emitter.emit(event).await;
                        if ends {
                            return;
                        }
                    }
                    Scene::Listens => match words.recv().await {
                        None => return,
                        Some(word) => {
                            let stops = word == Word::Stop;
                            played.heard.lock().unwrap_or_else(PoisonError::into_inner).push(word);
                            if stops {
                                return emitter.emit(failed(Failure::Stopped)).await;
                            }
                        }
                    },
                    Scene::Panics => panic!("the script says so"),
                }
            }
            emitter.emit(failed(Failure::Model("The script ended.".into()))).await;
        });
        Running { preview: shown, events, control }
    }
}
