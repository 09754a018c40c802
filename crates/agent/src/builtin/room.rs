//! How a turn stays within what the model reads.

use talaria_model::{AgentEvent, Cost, Entry, EntryBody, Usage, Used, Work};

use super::turn::Audience;
use super::{Counted, Cut, TurnLoop};
use crate::budget::{Automatic, BYTES_PER_TOKEN, Budget, COOLDOWN, Stretch};
use crate::compress::{shorten_result, squeeze, wish};
use crate::prefix::{Conversation, Prefix, weight};
use crate::{PromptMessage, prompt};

/// What is left of an old result when a turn has become too long.
const SHORT_RESULT: usize = 2000;

/// How many of the newest results of a turn stay whole.
const WHOLE_RESULTS: usize = 2;

/// How many of the newest entries stay as they are when somebody asks for a summary, or when there has
/// to be one.
const KEEP_FEW: usize = 4;

/// How much of the window a conversation may take that is to be summarised, in percent.
const SUMMARISED: u64 = 75;

/// What became of the wish for a summary.
enum Outcome {
    /// It stands in the transcript.
    Written,
    /// There is nothing that a summary could stand for.
    NothingToDo,
    /// The model wrote none that could be used; the person was told.
    Failed,
}

impl TurnLoop {
    /// A turn that only writes a summary.
    pub(super) async fn only_compress(&mut self, focus: Option<&str>) -> Result<AgentEvent, Cut> {
        self.recollect().await;
        if let Outcome::NothingToDo = self.compress(focus, self.tight()).await? {
            let why = "There is not enough to summarise yet.".to_owned();
            let (usage, cost) = (Usage::default(), Cost::FREE);
            self.emitter.emit(AgentEvent::NotCompressed { why, usage, cost }).await;
        }
        Ok(AgentEvent::Finished {
            text: String::new(),
            files: Vec::new(),
            reasoning: None,
            usage: Usage::default(),
            cost: Cost::FREE,
        })
    }

    /// Before the model is asked: summarises or shortens if the prompt has become too long.
    pub(super) async fn stay_within(&mut self) -> Result<(), Cut> {
        let budget = self.agent.settings.budget;
        self.is_full |= budget.is_full(self.tokens(), 0, self.window);
        if std::mem::take(&mut self.is_full) && self.may_compress() {
            self.compress(None, budget).await?;
        }
        if budget.is_hard(self.tokens(), self.window) {
            self.shorten_results();
        }
        Ok(())
    }

    /// After the model said that the prompt is too long. Returns whether it is shorter.
    pub(super) async fn shorten(&mut self) -> Result<bool, Cut> {
        let before: usize = self.messages.iter().map(weight).sum();
        if self.agent.settings.budget.automatic == Automatic::On {
            self.compress(None, self.tight()).await?;
        }
        self.shorten_results();
        let after: usize = self.messages.iter().map(weight).sum();
        if after < before {
            return Ok(true);
        }
        // Nothing to summarise and nothing to cut: the oldest have to go.
        let own = self.messages.split_off(self.old);
        let old = squeeze(std::mem::take(&mut self.messages), before / 2);
        self.old = old.len();
        self.messages = old;
        self.messages.extend(own);
        self.counted = Counted::default();
        Ok(self.messages.iter().map(weight).sum::<usize>() < before)
    }

    /// The budget, with fewer of the newest entries left as they are.
    fn tight(&self) -> Budget {
        let budget = self.agent.settings.budget;
        Budget { keep_last: budget.keep_last.min(KEEP_FEW), ..budget }
    }

    /// About how many tokens the next prompt has.
    fn tokens(&self) -> u64 {
        let rest = self.messages.get(self.counted.messages..).unwrap_or_default();
        let since = rest.iter().map(weight).sum::<usize>() as u64 / BYTES_PER_TOKEN;
        self.counted.tokens + since
    }

    /// So many percent of the window, in bytes.
    pub(super) fn most_bytes(&self, percent: u64) -> usize {
        usize::try_from(self.window * BYTES_PER_TOKEN * percent / 100).unwrap_or(usize::MAX)
    }

    fn may_compress(&self) -> bool {
        let now = self.agent.clock.now();
        let rested = |failed| now.since(failed) >= COOLDOWN;
        self.agent.settings.budget.automatic == Automatic::On
            && self.lease.failed().is_none_or(rested)
    }

    /// Shortens what tools returned earlier in this turn.
    fn shorten_results(&mut self) -> bool {
        let is_result =
            |message: &PromptMessage| matches!(message, PromptMessage::ToolResult { .. });
        let own = &mut self.messages[self.old..];
        let results = own.iter().filter(|message| is_result(message)).count();
        let old = own
            .iter_mut()
            .filter(|message| is_result(message))
            .take(results.saturating_sub(WHOLE_RESULTS));
        let mut changed = false;
        for message in old {
            changed |= shorten_result(message, SHORT_RESULT);
        }
        if changed {
            let bytes: usize = self.messages.iter().map(weight).sum();
            let bytes = bytes + self.system.len() + self.agent.tools_size;
            let tokens = bytes as u64 / BYTES_PER_TOKEN;
            self.counted = Counted { messages: self.messages.len(), tokens };
        }
        changed
    }

    /// Puts a summary in the place of what is old. Where that does not succeed nothing changes.
    async fn compress(&mut self, focus: Option<&str>, budget: Budget) -> Result<Outcome, Cut> {
        let Some((stretch, conversation)) = self.old_part(budget).await else {
            return Ok(Outcome::NothingToDo);
        };
        self.emitter.emit(AgentEvent::Working(Work::Compression)).await;
        self.doing(|| "summarising what was said".to_owned());
        let stood_for: usize = conversation.iter().map(weight).sum();
        let mut messages = squeeze(conversation, self.most_bytes(SUMMARISED));
        messages.push(wish(focus));
        let (written, usage, cost) = match self.complete(messages, Audience::Nobody).await {
            Ok(step) => {
                let text = step.text.trim().to_owned();
                let written = match text.len() {
                    0 => Err("the model wrote none".to_owned()),
                    length if length >= stood_for => Err("it would not be shorter".to_owned()),
                    _ => Ok(text),
                };
                (written, step.usage, step.cost)
            }
            Err(Cut::Failed(error)) => {
                let Used { usage, cost } = std::mem::take(&mut self.lost);
                self.tell_untold();
                (Err(error.to_string()), usage, cost)
            }
            Err(cut) => return Err(cut),
        };
        let outcome = match written {
            Ok(text) => {
                let Stretch { after, upto, .. } = stretch;
                let compressed =
                    AgentEvent::Compressed { after, upto, text: text.clone(), usage, cost };
                self.emitter.emit(compressed).await;
                self.lease.set_failed(None);
                self.replace(EntryBody::Summary { after, upto, text, usage, cost }).await;
                Outcome::Written
            }
            Err(problem) => {
                tracing::warn!(turn = %self.turn.id, %problem, "no summary was written");
                self.lease.set_failed(Some(self.agent.clock.now()));
                let why = format!(
                    "I could not write a summary of what was said before ({problem}). Nothing has changed."
                );
                self.emitter.emit(AgentEvent::NotCompressed { why, usage, cost }).await;
                Outcome::Failed
            }
        };
        self.preview.send_if_modified(|preview| preview.doing.take().is_some());
        self.emitter.emit(AgentEvent::Working(Work::Plain)).await;
        Ok(outcome)
    }

    /// What a summary is to stand for, and the conversation up to its end.
    async fn old_part(&mut self, budget: Budget) -> Option<(Stretch, Vec<PromptMessage>)> {
        let entries = prompt::standing(&self.turn.entries);
        let (history, ours) = prompt::split(&entries, &self.turn.id);
        let stretch = budget.stretch(history, ours.len(), self.window)?;
        let mut said = Conversation::default();
        for entry in &history[..stretch.end] {
            said.add(entry, self.sight, self.agent.attachments.as_ref()).await;
        }
        said.close(&[]);
        Some((stretch, said.messages))
    }

    /// Takes up a summary, and leaves what the turn itself said and did as it is.
    async fn replace(&mut self, body: EntryBody) {
        let newest = self.turn.entries.iter().map(|entry| entry.number).max().unwrap_or(0);
        let number = newest.saturating_add(1);
        let (at, turn) = (self.agent.clock.now(), Some(self.turn.id.clone()));
        self.turn.entries.push(Entry {
            number,
            at,
            turn,
            body,
            because: None,
            about: None,
            resumed: None,
        });
        let entries = prompt::standing(&self.turn.entries);
        let (history, _) = prompt::split(&entries, &self.turn.id);
        let mut said = Conversation::default();
        for entry in history {
            said.add(entry, self.sight, self.agent.attachments.as_ref()).await;
        }
        said.close(&[]);
        let bytes = said.messages.iter().map(weight).sum::<usize>();
        let own = self.messages.split_off(self.old);
        self.old = said.messages.len();
        self.messages = said.messages;
        self.messages.extend(own);
        let bytes = bytes + self.system.len() + self.agent.tools_size;
        self.counted = Counted { messages: self.old, tokens: bytes as u64 / BYTES_PER_TOKEN };
        // The session gives the summary its own number, so the next turn begins anew.
        let (system, instructions) = (Some(self.system.clone()), self.instructions.clone());
        self.lease.keep(Prefix { system, instructions, ..Prefix::default() });
    }
}
