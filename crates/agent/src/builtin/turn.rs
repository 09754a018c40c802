//! The way from what was said to an answer.

use std::collections::HashMap;

use futures::StreamExt;
use talaria_model::{
    AgentEvent, CallId, Cost, EntryBody, Failure, FileRef, Steer, Task, ToolCall, Usage, Used, Word,
};

use talaria_render::{Thoughts, Told};

use super::calls::UNKNOWN_EFFECT;
use super::{Counted, Cut, Shortened, TurnLoop, UnderWay};
use crate::budget::BYTES_PER_TOKEN;
use crate::media::Named;
use crate::prefix::{Conversation, Prefix, weight};
use crate::prompt;
use crate::{
    Delta, FinishReason, Part, Preview, Prompt, PromptMessage, ProviderError, budget, media,
};

/// What the model said in one step.
pub(super) struct Step {
    pub(super) text: String,
    pub(super) reason: FinishReason,
    pub(super) calls: Vec<ToolCall>,
    pub(super) reasoning: Option<String>,
    pub(super) usage: Usage,
    pub(super) cost: Cost,
}

/// Whether people see what the model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    People,
    Nobody,
}

impl TurnLoop {
    pub(super) async fn run(mut self) -> AgentEvent {
        let outcome = match self.turn.task.clone() {
            Task::Answer => self.answer().await,
            Task::Compress { focus } => self.only_compress(focus.as_deref()).await,
        };
        outcome.unwrap_or_else(|cut| {
            let failure = match cut {
                Cut::Stopped => Failure::Stopped,
                Cut::TimedOut => Failure::TimedOut {
                    minutes: self.agent.settings.turn_limit.as_secs().div_ceil(60),
                },
                Cut::Failed(error) => Failure::Model(error.sentence()),
            };
            let said = self.preview.borrow().text.clone();
            self.failed(failure, said)
        })
    }

    async fn answer(&mut self) -> Result<AgentEvent, Cut> {
        let open = self.recollect().await;
        self.call_all(open).await?;
        while self.steps < self.agent.settings.max_steps {
            self.steps += 1;
            self.take_steers().await?;
            self.stay_within().await?;
            let mut step = self.step().await?;
            if step.calls.is_empty() {
                return Ok(self.finished(step).await);
            }
            let mut named = media::named(&step.text);
            // A path in the midst of the work is talked about; only a tag sends it.
            named.mentioned.clear();
            let files = self.take_files(&mut named).await;
            // What the model reads of it is what will be recorded.
            step.text = named.text;
            self.messages.push(PromptMessage::Assistant {
                text: step.text.clone(),
                calls: step.calls.clone(),
                reasoning: step.reasoning.clone(),
            });
            if step.usage.prompt() > 0 {
                let tokens = step.usage.counted();
                self.counted = Counted { messages: self.messages.len(), tokens };
            }
            let calls = step.calls.clone();
            // Emptied before the event, so that the next delivery does not begin with this text.
            self.clear_preview();
            let Step { text, reasoning, usage, cost, .. } = step;
            let stepped =
                AgentEvent::Stepped { text, files, calls: calls.clone(), reasoning, usage, cost };
            self.emitter.emit(stepped).await;
            self.call_all(calls).await?;
        }
        let steps = self.agent.settings.max_steps;
        let (failure, said) = (Failure::TooManySteps { steps }, String::new());
        Ok(self.failed(failure, said))
    }

    fn failed(&self, failure: Failure, said: String) -> AgentEvent {
        let Used { usage, cost } = self.lost;
        AgentEvent::Failed { failure, said, usage, cost }
    }

    /// Asks the model, and once more with less if it did not read all of it.
    async fn step(&mut self) -> Result<Step, Cut> {
        match self.ask_model().await {
            Err(Cut::Failed(ProviderError::TooLong)) if self.shortened == Shortened::NotYet => {
                self.shortened = Shortened::Once;
                if !self.shorten().await? {
                    return Err(Cut::Failed(ProviderError::TooLong));
                }
                self.ask_model().await
            }
            step => step,
        }
    }

    /// Rebuilds the conversation, and says which calls of this turn are still to be made.
    pub(super) async fn recollect(&mut self) -> Vec<ToolCall> {
        let entries = prompt::standing(&self.turn.entries);
        let before = self.system.len() + self.agent.tools_size;
        let whole = budget::tokens(&entries, before);
        self.is_full = self.agent.settings.budget.is_full(whole, entries.len(), self.window);
        // A third of the window is left for tools and the answer.
        let entries = prompt::fit(entries, &self.turn.id, self.most_bytes(66), self.turn.history);
        let (history, ours) = prompt::split(&entries, &self.turn.id);

        let seen = prompt::seen(&entries);
        let kept = self.lease.prefix.clone().filter(|prefix| {
            prefix.entries.len() <= history.len() && seen.starts_with(&prefix.entries)
        });
        let (mut said, done) = match kept {
            Some(prefix) => (prefix.said.clone(), prefix.entries.len()),
            None => (Conversation::default(), 0),
        };
        let attachments = self.agent.attachments.as_ref();
        for entry in &history[done..] {
            said.add(entry, self.sight, attachments).await;
        }
        said.close(&[]);
        self.old = said.messages.len();
        for entry in ours {
            said.add(entry, self.sight, attachments).await;
        }
        let (system, instructions) = (Some(self.system.clone()), self.instructions.clone());
        self.lease.keep(Prefix { system, instructions, entries: seen, said: said.clone() });
        let open = prompt::open_calls(ours);
        let ids: Vec<CallId> = open.iter().map(|call| call.id.clone()).collect();
        said.close(&ids);
        self.messages = said.messages;
        let tokens = budget::tokens(&entries, before);
        self.counted = Counted { messages: self.messages.len(), tokens };

        let mut tools = HashMap::new();
        for entry in ours {
            match &entry.body {
                EntryBody::Answered { calls, files, .. } if !calls.is_empty() => {
                    self.steps += 1;
                    self.sent.extend(files.iter().map(|file| file.id.clone()));
                    tools.extend(calls.iter().map(|call| (&call.id, &call.tool)));
                }
                EntryBody::Returned { call, output, files, .. } => {
                    self.files.extend(files.iter().cloned());
                    let unknown = tools.get(call).filter(|_| output == UNKNOWN_EFFECT);
                    self.unknown.extend(unknown.map(|tool| (*tool).clone()));
                }
                _ => {}
            }
        }
        open
    }

    async fn ask_model(&mut self) -> Result<Step, Cut> {
        let messages = self.messages.clone();
        self.complete(messages, Audience::People).await
    }

    /// Asks the model, and keeps account of what that took even where it does not come to say so.
    pub(super) async fn complete(
        &mut self,
        messages: Vec<PromptMessage>,
        audience: Audience,
    ) -> Result<Step, Cut> {
        let said: usize = messages.iter().map(weight).sum();
        let read = self.system.len() + self.agent.tools_size + said;
        self.under_way = Some(UnderWay { read, written: 0 });
        self.tell_untold();
        let heard = self.listen(messages, audience).await;
        let heard = match heard {
            Ok(mut step) => {
                let Used { usage, cost } = std::mem::take(&mut self.lost);
                step.usage += usage;
                step.cost += cost;
                Ok(step)
            }
            Err(Cut::Failed(error)) if !error.was_asked() => Err(Cut::Failed(error)),
            Err(cut) => {
                self.lost = self.untold();
                Err(cut)
            }
        };
        self.under_way = None;
        self.tell_untold();
        heard
    }

    /// What was used and no event has told yet, by an estimate.
    fn untold(&self) -> Used {
        let mut used = self.lost;
        if let Some(UnderWay { read, written }) = self.under_way {
            let tokens = |bytes: usize| bytes as u64 / BYTES_PER_TOKEN;
            let (input, output) = (tokens(read), tokens(written));
            used.cost += self.provider.unfinished(Usage { input, output, ..Usage::NONE });
            used.usage += Usage::estimate(input + output);
        }
        used
    }

    /// Whoever stops listening can still read what the turn used.
    pub(super) fn tell_untold(&self) {
        let untold = Some(self.untold());
        self.preview
            .send_if_modified(|preview| std::mem::replace(&mut preview.untold, untold) != untold);
    }

    fn writes(&mut self, bytes: usize) {
        if let Some(under_way) = &mut self.under_way {
            under_way.written += bytes;
        }
        self.tell_untold();
    }

    /// What was written so far came to nothing, and all of it is asked again.
    fn begin_again(&mut self) {
        self.lost = self.untold();
        if let Some(under_way) = &mut self.under_way {
            under_way.written = 0;
        }
        self.tell_untold();
    }

    async fn listen(
        &mut self,
        messages: Vec<PromptMessage>,
        audience: Audience,
    ) -> Result<Step, Cut> {
        let mut deltas = self.provider.complete(Prompt {
            system: self.system.clone(),
            messages,
            tools: self.tools.clone(),
            effort: self.turn.effort,
        });
        let mut text = String::new();
        let mut thoughts = Thoughts::default();
        loop {
            let delta = tokio::select! {
                biased;
                word = self.words.recv() => { self.hear(word).await?; continue }
                () = &mut self.limit => return Err(Cut::TimedOut),
                delta = deltas.next() => delta,
            };
            match delta {
                Some(Ok(Delta::Text(more))) => {
                    self.writes(more.len());
                    self.told(thoughts.feed(&more), &mut text, audience);
                }
                Some(Ok(Delta::Reasoning(more))) => {
                    self.writes(more.len());
                    if audience == Audience::People {
                        self.doing(|| "thinking".to_owned());
                    }
                }
                Some(Ok(Delta::Restarted)) => {
                    text.clear();
                    thoughts = Thoughts::default();
                    self.begin_again();
                    if audience == Audience::People {
                        self.clear_preview();
                    }
                }
                Some(Ok(Delta::Finished { reason, calls, reasoning, usage, cost })) => {
                    self.told(thoughts.finish(), &mut text, audience);
                    return Ok(Step { text, reason, calls, reasoning, usage, cost });
                }
                Some(Err(error)) => return Err(Cut::Failed(error)),
                None => return Err(Cut::Failed(ProviderError::Cut)),
            }
        }
    }

    /// Takes in what the model wrote. What it thinks between tags is no part of what it says.
    fn told(&self, told: Vec<Told>, text: &mut String, audience: Audience) {
        for piece in told {
            match piece {
                Told::Said(more) => {
                    // Behind its thoughts a model leaves lines empty before it speaks.
                    let more = match text.is_empty() {
                        true => more.trim_start_matches('\n'),
                        false => more.as_str(),
                    };
                    text.push_str(more);
                    if audience == Audience::People && !more.is_empty() {
                        self.show(text, more);
                    }
                }
                Told::Thought(_) if audience == Audience::People => {
                    self.doing(|| "thinking".to_owned());
                }
                Told::Thought(_) => {}
            }
        }
    }

    /// Shows the answer as it grows, without the tags of files.
    fn show(&self, text: &str, more: &str) {
        self.preview.send_modify(|preview| {
            preview.doing = None;
            let is_plain = !text.contains("MEDIA:") && !text.contains("[[");
            if is_plain && preview.text.len() + more.len() == text.len() {
                preview.text.push_str(more);
            } else {
                preview.text = media::without_tags(text);
            }
        });
    }

    async fn finished(&mut self, step: Step) -> AgentEvent {
        let Step { text, reason, reasoning, usage, cost, .. } = step;
        let mut named = media::named(&text);
        match reason {
            FinishReason::Stop | FinishReason::ToolCalls => {}
            FinishReason::Length => {
                note(&mut named.text, "*(The answer was cut off at the model's limit.)*");
            }
            FinishReason::Refused => note(&mut named.text, "*(The model declined to go on.)*"),
        }
        let taken = self.take_files(&mut named).await;
        let mut files = std::mem::take(&mut self.files);
        files.extend(taken);
        media::show(&mut files, named.shown);
        let mut text = named.text;
        for tool in self.unknown.drain(..) {
            let words = format!(
                "*(A restart interrupted `{tool}`. Whether it took effect is not known; it was not repeated.)*"
            );
            note(&mut text, &words);
        }
        AgentEvent::Finished { text, files, reasoning, usage, cost }
    }

    /// The files that a text names, none of them twice in one turn. What could not be taken is said in
    /// the text.
    async fn take_files(&mut self, named: &mut Named) -> Vec<FileRef> {
        let attachments = self.agent.attachments.as_ref();
        let bounds = self.agent.settings.fence.now();
        let (mut files, not_sent) = bounds.roots.take_all(named, attachments).await;
        let (waiting, sent) = (&self.files, &mut self.sent);
        files.retain(|file| {
            let is_known =
                waiting.iter().map(|file| &file.id).chain(&*sent).any(|id| *id == file.id);
            if !is_known {
                sent.push(file.id.clone());
            }
            !is_known
        });
        media::show(&mut files, named.shown);
        for (path, why) in not_sent {
            let name = path.rsplit('/').next().unwrap_or_default().replace('`', "");
            note(&mut named.text, &format!("*(I could not send `{name}`: {why}.)*"));
        }
        files
    }

    /// Takes in what was said while the turn ran.
    pub(super) async fn take_steers(&mut self) -> Result<(), Cut> {
        while let Ok(word) = self.words.try_recv() {
            self.hear(Some(word)).await?;
        }
        if self.steers.is_empty() {
            return Ok(());
        }
        let mut seqs = Vec::with_capacity(self.steers.len());
        for (seq, parts) in self.steers.drain(..) {
            seqs.push(seq);
            self.messages.push(PromptMessage::User(parts));
        }
        self.emitter.emit(AgentEvent::Took { seqs }).await;
        Ok(())
    }

    pub(super) async fn hear(&mut self, word: Option<Word>) -> Result<(), Cut> {
        match word {
            // Nobody holds the other end any more: the turn was abandoned.
            None | Some(Word::Stop) => Err(Cut::Stopped),
            // An answer to a question that is not open.
            Some(Word::Answer { .. }) => Ok(()),
            Some(Word::Steer(steer)) => {
                let Steer { seq, message, heard, .. } = *steer;
                let mut parts = Vec::with_capacity(message.files.len() + 1);
                for file in &message.files {
                    let attachments = self.agent.attachments.as_ref();
                    parts.extend(prompt::parts_of(file, self.sight, attachments).await);
                }
                parts.push(Part::Text(heard.unwrap_or(message.text)));
                self.steers.push_back((seq, parts));
                Ok(())
            }
        }
    }

    /// Nothing is being written any more.
    pub(super) fn clear_preview(&self) {
        let untold = Some(self.untold());
        self.preview.send_replace(Preview { untold, ..Preview::default() });
    }

    pub(super) fn doing(&self, what: impl FnOnce() -> String) {
        self.preview.send_if_modified(|preview| {
            if preview.doing.is_some() && !preview.text.is_empty() {
                return false;
            }
            let what = Some(what());
            let changed = preview.doing != what;
            preview.doing = what;
            changed
        });
    }
}

/// Adds a remark of ours to what the model said.
fn note(text: &mut String, words: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(words);
}
