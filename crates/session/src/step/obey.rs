//! Commands.

use talaria_model::{Because, ChatKind, Effort, Sender, SenderKind, Task, WITHHELD, Word};

use super::question::Says;
use super::say::{LONGEST_TITLE, shortened};
use super::turn::Asker;
use super::words::is_of;
use super::{Begun, Step};
use crate::Closed;
use crate::access::{Deed, Reach, Surface, Whose};
use crate::command::{self, Command, CommandSpec, QuickCommand, WhileRunning};
use crate::event::{Effect, PairWish, Passed, Pause, Request};
use crate::life::{Happening, Life, ResetReason, ResumeReason};
use crate::pairing::{Code, TypedCode};
use crate::reply::count;
use crate::rules::AfterStop;
use crate::session::{Footer, Joins, Phase, Verbosity, Waiting};

/// How many entries are shown of what was said last, if nobody says how many.
const SOME_HISTORY: u16 = 10;

/// The most that is shown.
const MUCH_HISTORY: u16 = 50;

impl Step<'_> {
    pub(super) fn command(
        &mut self,
        mut said: Waiting,
        spec: &'static CommandSpec,
        arguments: String,
    ) {
        if let (Command::Pair, Some(words)) =
            (spec.command, without_code(&arguments, self.by.surface))
        {
            self.conceal(&mut said, words);
        }
        if !self.by.may_give(spec.name, spec.who) {
            return self.not_allowed(said, spec.name);
        }
        if spec.running == WhileRunning::Refused && self.session.hand().is_some() {
            let text =
                format!("⏳ Not while I am working: wait, or `/stop` before `/{}`.", spec.name);
            return self.reply(said, text);
        }
        let lacks_words = arguments.is_empty() && said.message.files.is_empty();
        match spec.command {
            Command::Help => {
                let rules = self.session.rules.clone();
                let text = command::help(&self.by, &rules.quick);
                self.reply(said, text);
            }
            Command::Start => self.close(said.seq, Closed::Ignored("a platform's own greeting")),
            Command::Stop => {
                let is_own = self.session.hand().is_none_or(|hand| is_of(hand, &said));
                let whose = if is_own { Whose::Own } else { Whose::Anothers };
                if !self.by.may_stop(whose) {
                    return self.not_allowed(said, spec.name);
                }
                self.close(said.seq, Closed::Handled);
                let (from, seq) = (said.from.clone(), said.seq);
                self.aside(said);
                self.stop_for(&from, seq);
            }
            Command::New => self.begin_anew(said, &arguments),
            Command::Status => {
                self.look_beside();
                let text = self.status();
                self.reply(said, text);
            }
            Command::Usage => {
                let text = self.usage();
                self.reply(said, text);
            }
            Command::Whoami => {
                let text = self.whoami(&said);
                match self.by.bounds.is_none() {
                    true => self.reply(said, text),
                    false => self.ask(said, Request::Left { said: text }),
                }
            }
            Command::Queue | Command::Steer | Command::Background | Command::Search
                if lacks_words =>
            {
                self.reply(said, format!("Say it like this: `{}`.", spec.usage()));
            }
            Command::Queue => {
                said.message.text = arguments;
                said.joins = Joins::Nothing;
                self.queue(said);
            }
            Command::Steer => {
                said.message.text = arguments;
                self.steer_or_say(said);
            }
            Command::Background => self.work_beside(said),
            Command::Retry => self.retry(said),
            Command::Undo => self.undo(said, &arguments),
            Command::Branch => self.branch(said, &arguments),
            Command::Compress => self.compress(said, arguments),
            Command::Title => self.title(said, &arguments),
            Command::Model => self.model(said, arguments),
            Command::Reasoning => self.reasoning(said, &arguments),
            Command::Verbose => self.verbose(said, &arguments),
            Command::Footer => self.footer(said, &arguments),
            Command::Voice => self.voice(said, &arguments),
            Command::Approve => self.judged(said, Says::Yes, arguments),
            Command::Deny => self.judged(said, Says::No, arguments),
            Command::Resume if arguments.is_empty() => self.ask(said, Request::Lives),
            Command::Resume => self.ask(said, Request::Resume(arguments)),
            Command::Sessions => self.ask(said, Request::Lives),
            Command::Search => self.ask(said, Request::Search(arguments)),
            Command::History => {
                let last = arguments.parse().unwrap_or(SOME_HISTORY).clamp(1, MUCH_HISTORY);
                self.ask(said, Request::History { last });
            }
            Command::Platforms => self.platforms(said, &arguments),
            Command::SetHome => self.ask(said, Request::SetHome),
            Command::Reload => self.ask(said, Request::Reload),
            Command::Restart => self.ask(said, Request::Restart),
            Command::Pair => self.pair(said, &arguments),
        }
    }

    /// `/platforms`: how they are doing, and which are connected.
    fn platforms(&mut self, said: Waiting, arguments: &str) {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let (pause, account) = match words.as_slice() {
            [] => return self.ask(said, Request::Platforms),
            ["pause", account] => (Pause::Pause, *account),
            ["resume", account] => (Pause::Resume, *account),
            _ => {
                let text = "`/platforms` shows how they are doing; `/platforms pause ACCOUNT` and \
                            `/platforms resume ACCOUNT` disconnect and connect one.";
                return self.reply(said, text);
            }
        };
        // Nobody could say here that it is to go on.
        if pause == Pause::Pause && account == said.to.account.as_str() {
            let text = format!(
                "That is the account you speak on, and it could not be told to go on. Pause it on another \
                 one, or with `talaria platforms pause {account}`."
            );
            return self.reply(said, text);
        }
        self.ask(said, Request::Platform { account: account.to_owned(), pause });
    }

    /// `/pair`: who is let in.
    fn pair(&mut self, said: Waiting, arguments: &str) {
        match (self.by.may(Deed::LetIn), self.by.is_admin()) {
            (true, _) => {}
            (false, true) => {
                let text = "Others read along here. Say that to me in a direct chat.";
                return self.reply(said, text);
            }
            (false, false) => return self.not_allowed(said, "pair"),
        }
        match pairing_wish(arguments, self.by.surface) {
            Some((account, wish)) => self.ask(said, Request::Pair { account, wish }),
            None => self.reply(said, pairing_usage(self.by.surface)),
        }
    }

    /// Runs a quick command.
    pub(super) fn run(&mut self, said: Waiting, quick: &QuickCommand) {
        self.ask(said, Request::Run(quick.name.clone()));
    }

    /// A command was dealt with, and this is what whoever gave it wants to know.
    pub(super) fn reply(&mut self, said: Waiting, text: impl Into<String>) {
        self.close(said.seq, Closed::Handled);
        let from = said.from.clone();
        self.aside(said);
        self.whisper(&from, text);
    }

    /// A command was dealt with, and this is what has changed for everybody.
    pub(super) fn answer(&mut self, said: Waiting, text: impl Into<String>) {
        self.close(said.seq, Closed::Handled);
        self.aside(said);
        self.notice(text);
    }

    pub(super) fn not_allowed(&mut self, said: Waiting, name: &str) {
        let text = format!(
            "`/{name}` is for administrators. `/help` lists what you may do, `/whoami` says who you \
             are here."
        );
        self.reply(said, text);
        self.because(Because::NotAllowed);
    }

    /// Stops what runs: the turn in hand or, if there is none, what runs beside it.
    pub(super) fn stop(&mut self) {
        let dropped = self.tell_dropped();
        match self.put_down() {
            None => {
                let beside = self.session.background.clone();
                for beside in &beside {
                    let to = self.session.key.beside(beside.side);
                    self.effects.push(Effect::Pass { to, passed: Passed::Stop });
                }
                match beside.len() {
                    0 => self.notice(format!("Nothing is running.{dropped}")),
                    1 => self.notice(format!("Stopping what runs in the background.{dropped}")),
                    n => self.notice(format!("Stopping the {n} tasks in the background.{dropped}")),
                }
            }
            Some(hand) => {
                self.effects.push(Effect::Tell { turn: hand.turn.clone(), word: Word::Stop });
                self.session.phase = Phase::Stopping(hand);
                if !dropped.is_empty() {
                    self.notice(format!("Stopping.{dropped}"));
                }
                // Who stops nothing loses nothing.
                if self.session.rules.stop == AfterStop::Wipe {
                    self.happened(Happening::Wiped);
                }
            }
        }
    }

    /// Stops the turn of somebody and drops what they said. Others go on, and what runs in the background is
    /// everybody's.
    pub(super) fn stop_own(&mut self, somebody: &Sender) {
        let dropped = words_dropped(self.drop_waiting_of(somebody));
        let is_theirs = self.session.hand().is_some_and(|hand| hand.from.is(somebody));
        match is_theirs.then(|| self.put_down()).flatten() {
            Some(hand) => {
                self.fall_silent();
                self.effects.push(Effect::Tell { turn: hand.turn.clone(), word: Word::Stop });
                self.session.phase = Phase::Stopping(hand);
                if !dropped.is_empty() {
                    self.notice(format!("Stopping.{dropped}"));
                }
            }
            None => self.notice(format!("Nothing of yours is running.{dropped}")),
        }
    }

    /// Drops what waits; says how much that was, for the end of a notice.
    pub(super) fn tell_dropped(&mut self) -> String {
        words_dropped(self.drop_waiting() + self.overtaken)
    }

    fn queue(&mut self, said: Waiting) {
        if let Phase::Idle = self.session.phase {
            return self.words(said);
        }
        let queued = |said: &&Waiting| said.joins == Joins::Nothing;
        let place = self.session.waiting.iter().filter(queued).count() + 1;
        if place > self.session.rules.queue {
            let text = format!("The queue is full: {} messages wait already.", place - 1);
            return self.reply(said, text);
        }
        self.session.active = self.now;
        self.effects.push(Effect::Take(said.seq));
        let from = said.from.clone();
        self.session.waiting.push_back(said);
        self.whisper(&from, format!("⏳ Queued; it is number {place}."));
    }

    fn compress(&mut self, said: Waiting, focus: String) {
        if self.session.turns == 0 {
            return self.reply(said, "There is nothing to summarise yet.");
        }
        self.close(said.seq, Closed::Handled);
        let asker = Asker::of(&said);
        self.aside(said);
        let focus = (!focus.is_empty()).then_some(focus);
        self.begin_turn(Vec::new(), Task::Compress { focus }, asker, None);
    }

    fn title(&mut self, said: Waiting, title: &str) {
        let title = shortened(title, LONGEST_TITLE);
        if title.is_empty() {
            let text = match self.session.title.as_str() {
                "" => "This conversation has no title yet.".to_owned(),
                title => format!("This conversation is called “{title}”."),
            };
            return self.reply(said, text);
        }
        self.session.title.clone_from(&title);
        self.answer(said, format!("This conversation is called “{title}”."));
    }

    fn model(&mut self, said: Waiting, name: String) {
        match name.as_str() {
            "" => self.ask(said, Request::Models),
            "default" => {
                self.session.preferences.model = None;
                self.answer(said, "The configured model answers here again.");
            }
            _ => self.ask(said, Request::Model(name)),
        }
    }

    fn reasoning(&mut self, said: Waiting, word: &str) {
        let text = match word {
            "" => match self.session.preferences.effort {
                Some(effort) => format!("The model's effort here is `{effort}`."),
                None => "The model's effort here is as configured.".to_owned(),
            },
            "default" => {
                self.session.preferences.effort = None;
                "The model's effort here is as configured again.".to_owned()
            }
            word => match word.parse::<Effort>() {
                Ok(effort) => {
                    self.session.preferences.effort = Some(effort);
                    format!("The model's effort here is `{effort}`.")
                }
                Err(_) => {
                    let known: Vec<_> =
                        Effort::ALL.iter().map(|known| format!("`{known}`")).collect();
                    format!("There is no such effort. Say {} or `default`.", known.join(", "))
                }
            },
        };
        self.answer(said, text);
    }

    fn verbose(&mut self, said: Waiting, word: &str) {
        let preferences = &mut self.session.preferences;
        let verbosity = preferences.verbosity.unwrap_or(self.session.rules.verbosity);
        let next = match (word, verbosity) {
            ("off", _) | ("", Verbosity::Verbose) => Some(Verbosity::Off),
            ("new", _) | ("", Verbosity::Off) => Some(Verbosity::New),
            ("all", _) | ("", Verbosity::New) => Some(Verbosity::All),
            ("verbose", _) | ("", Verbosity::All) => Some(Verbosity::Verbose),
            _ => None,
        };
        let Some(verbosity) = next else {
            return self.reply(said, "Say `off`, `new`, `all` or `verbose`.");
        };
        preferences.verbosity = Some(verbosity);
        self.answer(
            said,
            match verbosity {
                Verbosity::Off => "I do not tell which tools I call.",
                Verbosity::New => "I tell which tool I call when it is another one.",
                Verbosity::All => "I tell which tools I call.",
                Verbosity::Verbose => "I tell which tools I call, and with what.",
            },
        );
    }

    fn footer(&mut self, said: Waiting, word: &str) {
        let preferences = &mut self.session.preferences;
        let footer = preferences.footer.unwrap_or(self.session.rules.footer);
        let next = match (word, footer) {
            ("on", _) | ("", Footer::Off) => Some(Footer::On),
            ("off", _) | ("", Footer::On) => Some(Footer::Off),
            _ => None,
        };
        let Some(footer) = next else {
            return self.reply(said, "Say `on` or `off`.");
        };
        preferences.footer = Some(footer);
        self.answer(
            said,
            match footer {
                Footer::On => "Answers say what they used.",
                Footer::Off => "Answers do not say what they used.",
            },
        );
    }

    fn status(&self) -> String {
        let session = &*self.session;
        let doing = match &session.phase {
            Phase::Idle => "idle",
            Phase::Thinking(_) if self.unsaid.begun == Begun::No => {
                "has your message and has not begun yet"
            }
            Phase::Thinking(_) => "working on an answer",
            Phase::Asking { .. } => "waiting for your answer",
            Phase::Interrupting(_) | Phase::Stopping(_) => "stopping",
        };
        let life = match session.life {
            Life::Fresh | Life::Continuing | Life::Finalized => "",
            Life::AutoReset { reason: ResetReason::Idle, .. } => {
                ", begun anew after a long silence"
            }
            Life::AutoReset { reason: ResetReason::Daily, .. } => ", begun anew with the day",
            Life::AutoReset { reason: ResetReason::Suspended, .. } => ", begun anew",
            Life::Suspended => ", over: your next message begins a new one",
            Life::ResumePending { reason: ResumeReason::ShutdownTimeout, .. } => {
                ", cut off by a shutdown: write, and I go on"
            }
            Life::ResumePending { reason: ResumeReason::RestartTimeout, .. } => {
                ", cut off by a restart: write, and I go on"
            }
            Life::ResumePending { reason: ResumeReason::RestartInterrupted, .. } => {
                ", cut off by a crash: write, and I go on"
            }
        };
        let title = match session.title.as_str() {
            "" => String::new(),
            title => format!(" “{title}”"),
        };
        let begun = session.rules.local(session.begun);
        let mut lines = vec![
            format!("Conversation{title} (`{}`): {doing}{life}.", session.id),
            format!("- begun {begun}, {}, {} waiting", turns(session.turns), session.waiting.len()),
            format!("- last prompt {} tokens; {}", count(session.prompt), self.totals()),
        ];
        if let Some(model) = session.preferences.model.as_ref().or(session.rules.model.as_ref()) {
            lines.push(format!("- model `{model}`"));
        }
        if let Some(effort) = session.preferences.effort {
            lines.push(format!("- effort `{effort}`"));
        }
        if let Some(aloud) = self.aloud() {
            lines.push(format!("- {}", aloud.told()));
        }
        match session.background.len() {
            0 => {}
            1 => lines.push("- one task in the background".to_owned()),
            n => lines.push(format!("- {n} tasks in the background")),
        }
        lines.join("\n")
    }

    fn usage(&self) -> String {
        let usage = self.session.usage;
        let broke_off = match usage.estimated {
            0 => String::new(),
            tokens => format!("\n- about {} for answers that broke off", count(tokens)),
        };
        format!(
            "{}.\n- {} read, {} of them from the cache, {} written to it\n- {} written, {} of them \
             reasoning{broke_off}\n- last prompt {} tokens",
            self.totals(),
            count(usage.prompt()),
            count(usage.cache_read),
            count(usage.cache_write),
            count(usage.output),
            count(usage.reasoning),
            count(self.session.prompt),
        )
    }

    fn totals(&self) -> String {
        let session = &*self.session;
        format!("{} tokens in all, cost {}", count(session.usage.total()), session.cost)
    }

    fn whoami(&self, said: &Waiting) -> String {
        let name = said.from.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        let footing = self.by.footing.title();
        let tier = match self.by.is_admin() {
            true => String::new(),
            false => " and not an administrator".to_owned(),
        };
        let why = self.by.rule.reason();
        let at_most = match said.from.kind {
            SenderKind::Person => "",
            SenderKind::Bot => ", and a program is a guest at most",
            SenderKind::Chat => ", and whoever speaks in the name of a chat is a guest at most",
        };
        let (account, kind) = (&said.to.account, called(said.to.chat.kind));
        let person = self.by.person.as_ref();
        let person = person.map(|person| format!(" I know you as {person}.")).unwrap_or_default();
        format!(
            "You are `{}`{name} on `{account}`, in {kind}.{person} You are {footing}{tier} here: \
             {why}{at_most}. `/help` lists what you may do.",
            said.from.id
        )
    }
}

/// What people call a kind of chat.
const fn called(kind: ChatKind) -> &'static str {
    match kind {
        ChatKind::Dm => "a direct chat",
        ChatKind::Group => "a group",
        ChatKind::Channel => "a channel",
        ChatKind::Thread => "a thread",
        ChatKind::Forum => "a forum",
    }
}

fn turns(number: u32) -> String {
    match number {
        1 => "one turn".to_owned(),
        n => format!("{n} turns"),
    }
}

/// What somebody means who says `/pair` and these words. Where every account is the operator's, they say
/// which one they mean.
fn pairing_wish(arguments: &str, surface: Surface) -> Option<(Option<String>, PairWish)> {
    let mut words: Vec<&str> = arguments.split_whitespace().collect();
    let reach = match words.pop_if(|word| word.eq_ignore_ascii_case("everywhere")) {
        Some(_) => Reach::Everywhere,
        None => Reach::Direct,
    };
    let verb = match words.first() {
        Some(&verb) if VERBS.contains(&verb) => {
            words.remove(0);
            verb
        }
        _ => "issue",
    };
    let account = match surface {
        Surface::Own if words.is_empty() => return None,
        Surface::Own => Some(words.remove(0).to_owned()),
        Surface::Platform => None,
    };
    // A code may be typed in parts.
    let rest = match verb {
        "approve" => words.concat(),
        _ => words.join(" "),
    };
    let wish = match (verb, rest.is_empty()) {
        ("issue", true) => PairWish::Issue(reach),
        ("approve", false) => PairWish::Approve(TypedCode::new(rest), reach),
        ("list", true) => PairWish::List,
        ("revoke", false) => PairWish::Revoke(rest),
        ("clear", true) => PairWish::Clear,
        _ => return None,
    };
    Some((account, wish))
}

/// What somebody said who said `/pair` and these words, without what may be a code; none where nothing
/// may be. A code that was mistyped, or typed in the wrong place, is still somebody's.
fn without_code(arguments: &str, surface: Surface) -> Option<String> {
    let may_be_code = |word: &str| Code::read(word).is_some();
    let mut words = arguments.split_whitespace();
    match (words.next()?, surface) {
        ("approve", Surface::Own) => match words.next().filter(|word| !may_be_code(word)) {
            Some(account) => Some(format!("/pair approve {account} {WITHHELD}")),
            None => Some(format!("/pair approve {WITHHELD}")),
        },
        ("approve", Surface::Platform) => Some(format!("/pair approve {WITHHELD}")),
        (word, Surface::Platform) if may_be_code(word) => Some(format!("/pair {WITHHELD}")),
        (_, Surface::Own | Surface::Platform) => None,
    }
}

/// What can be said after `/pair`.
const VERBS: [&str; 5] = ["issue", "approve", "list", "revoke", "clear"];

fn pairing_usage(surface: Surface) -> &'static str {
    match surface {
        Surface::Own => {
            "Say on which account: `/pair ACCOUNT` for a code to hand on, `/pair approve ACCOUNT CODE`, \
             `/pair list ACCOUNT`, `/pair revoke ACCOUNT ID` or `/pair clear ACCOUNT`. Say `everywhere` at \
             the end for somebody to be heard in groups, too."
        }
        Surface::Platform => {
            "Say `/pair` for a code to hand on, `/pair approve CODE`, `/pair list`, `/pair revoke ID` or \
             `/pair clear`. Say `everywhere` at the end for somebody to be heard in groups, too."
        }
    }
}

fn words_dropped(many: usize) -> String {
    match many {
        0 => String::new(),
        1 => " One message that was waiting is dropped.".to_owned(),
        n => format!(" {n} messages that were waiting are dropped."),
    }
}
