//! `talaria setup`: makes an account from what its platform asks, checks it with the platform, and writes
//! it down. Everything about a platform comes from its declaration.

mod draft;
mod options;
mod person;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_config::{Loaded, Origin, Problems, Put, Sources};
use talaria_model::AccountId;
use talaria_platform::{
    Account, Ask, Checked, ConnectError, Identity, Need, Registration, Secrecy, Spec, Startup,
};
use talaria_render::{Colour, Style, ansi, parse};
use talaria_session::Surface;

use crate::client::Client;
use crate::discretion::Discretion;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::{logging, rules, start};
use draft::Draft;
use options::flag;
use person::{Echo, Person};

pub(crate) use options::SetupOptions;

/// How long a platform gets to say who we are.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a person may correct an answer.
const TRIES: usize = 5;

pub(crate) async fn setup(home: &Home, options: SetupOptions) -> Result<Exit, Halt> {
    logging::quiet(&Discretion::new());
    let mut person = if options.yes { None } else { Person::at_terminal()? };
    let registration = match (&options.platform, &mut person) {
        (Some(name), _) => named(name)?,
        (None, Some(person)) => chosen(person).await?,
        (None, None) => {
            return Err(Halt::new(Exit::Misused, "which platform is to be set up?")
                .hint(format_args!("name it, such as `talaria setup {}`", names().join("|"))));
        }
    };
    let spec = registration.spec;
    if options.guide {
        super::write(format_args!("{}\n", shown(spec.guide)))?;
        return Ok(Exit::Done);
    }
    if options.manifest {
        return manifest(home, registration, options.account.as_deref());
    }
    if let Some(setting) = options.answers.besides(spec.asks) {
        return Err(Halt::new(
            Exit::Misused,
            format_args!("{} does not ask --{}", spec.label, flag(setting)),
        ));
    }
    let account = options.account.as_deref().unwrap_or(spec.name);
    let id = AccountId::new(account).map_err(|error| Halt::new(Exit::Misused, error))?;
    let before = present(home, account)?;
    if let Some(person) = &mut person {
        super::write(format_args!("{}\n\n", shown(introduction(spec.guide))))?;
        person.welcome(spec)?;
    }
    let setup = Setup { home, spec, account, id, options: &options, before };
    setup.carry_out(person).await
}

impl Person {
    fn welcome(&self, spec: Spec) -> Result<(), Halt> {
        say!("`talaria setup {} --guide` prints all of it.", spec.name);
        say!("Enter takes what stands in brackets; Ctrl-C changes nothing.");
        for ask in spec.asks.iter().filter(|ask| ask.need == Need::OnRequest) {
            say!("Not asked, but --{} gives it: {}.", flag(ask.setting), ask.question);
        }
        say!("");
        Ok(())
    }
}

/// One account that is being set up.
struct Setup<'a> {
    home: &'a Home,
    spec: Spec,
    account: &'a str,
    id: AccountId,
    options: &'a SetupOptions,
    before: Before,
}

/// The configuration as it is. What is wrong with the account may be what it is set up for.
enum Before {
    Good(Box<Loaded>),
    Wrong(Problems),
}

impl Before {
    fn origin(&self, path: &str) -> Option<&Origin> {
        match self {
            Self::Good(loaded) => loaded.origin(path),
            Self::Wrong(problems) => problems.origin(path),
        }
    }
}

/// An answer to one question.
#[derive(Clone)]
struct Answer {
    ask: &'static Ask,
    value: String,
    by: By,
}

/// Where an answer comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// A flag, or the environment.
    Others,
    /// Somebody who can type another one.
    Typing,
}

impl Setup<'_> {
    async fn carry_out(&self, mut person: Option<Person>) -> Result<Exit, Halt> {
        let mut tries = 1;
        let mut answers = self.answers(&mut person).await?;
        let (mut draft, loaded) = loop {
            let mut draft = self.draft(&answers)?;
            let is_typed = answers.iter().any(|it| it.by == By::Typing);
            let loaded = match (self.load(&mut draft), &mut person) {
                (Ok(loaded), _) => loaded,
                (Err(problem), Some(person)) if tries < TRIES && is_typed => {
                    tries += 1;
                    say!("\nThat cannot be right: {}\n", problem.explained());
                    correct(person, &mut answers).await?;
                    continue;
                }
                (Err(problem), _) => return Err(problem),
            };
            let checked = match self.options.no_check {
                true => Ok(None),
                false => self.check(&loaded).await.map(Some),
            };
            match (checked, &mut person) {
                (Ok(checked), _) => {
                    checked.iter().try_for_each(|checked| self.tell(&loaded, checked))?;
                    break (draft, loaded);
                }
                (Err(error), Some(person)) if tries < TRIES && is_typed => {
                    tries += 1;
                    let problem = explain(&loaded, &error).explained();
                    say!("\n{} says no: {problem}\n", self.spec.label);
                    let is_away = matches!(error, ConnectError::Unreachable { .. });
                    if is_away && person.agrees("Write it down without having checked it?").await? {
                        break (draft, loaded);
                    }
                    correct(person, &mut answers).await?;
                }
                (Err(error), _) => return Err(explain(&loaded, &error)),
            }
        };
        self.let_in(&mut draft, &loaded, person).await?;
        let loaded = draft.load()?;
        self.write(&draft, &loaded).await?;
        Ok(Exit::Done)
    }

    /// Answers to everything that is asked: from flags, the environment, and whoever is there.
    async fn answers(&self, person: &mut Option<Person>) -> Result<Vec<Answer>, Halt> {
        let mut answers: Vec<Answer> = Vec::new();
        let mut missing = Vec::new();
        for ask in self.spec.asks {
            let is_set = self.is_set(ask.setting);
            let has = |setting: &str| {
                self.is_set(setting) || answers.iter().any(|it| it.ask.setting == setting)
            };
            let wanted = match ask.need {
                Need::Required => Wanted::Needed,
                Need::Optional => Wanted::Welcome,
                Need::OnRequest if is_set => Wanted::Welcome,
                Need::OnRequest => Wanted::Unasked,
                Need::With(other) if has(other) => Wanted::Needed,
                Need::Without(other) if !has(other) => Wanted::Needed,
                Need::With(_) | Need::Without(_) => Wanted::Pointless,
            };
            if let Some(value) = self.given(ask, wanted)? {
                answers.push(Answer { ask, value, by: By::Others });
                continue;
            }
            let value = match (&mut *person, wanted) {
                (None, _) | (_, Wanted::Pointless | Wanted::Unasked) => String::new(),
                (Some(person), _) if is_set => {
                    let question = format!("{} [as it is set]", ask.question);
                    person.ask(&question, echo(ask)).await?
                }
                (Some(person), Wanted::Needed) => person.insist(ask.question, echo(ask)).await?,
                (Some(person), Wanted::Welcome) => {
                    person.ask(&format!("{} [none]", ask.question), echo(ask)).await?
                }
            };
            if !value.is_empty() {
                answers.push(Answer { ask, value, by: By::Typing });
            } else if wanted == Wanted::Needed && !is_set {
                missing.push(ask);
            }
        }
        if let Some(ask) = missing.first() {
            let answer = |ask: &&Ask| format!("--{} or {}", flag(ask.setting), ask.variable);
            let problem = format!("{} is not set up without: {}", self.spec.label, ask.question);
            let hint = missing.iter().map(answer).collect::<Vec<_>>().join(", and ");
            return Err(Halt::new(Exit::Misused, problem).hint(format_args!("give it as {hint}")));
        }
        Ok(answers)
    }

    /// An answer that needs nobody to be asked.
    fn given(&self, ask: &Ask, wanted: Wanted) -> Result<Option<String>, Halt> {
        if let Some(value) = self.options.answers.get(ask.setting) {
            if value.is_empty() {
                return Err(empty(&flag(ask.setting)));
            }
            return Ok(Some(value.to_owned()));
        }
        if wanted == Wanted::Pointless {
            return Ok(None);
        }
        let value = std::env::var(ask.variable).ok().map(|value| value.trim().to_owned());
        let value = value.filter(|value| !value.is_empty());
        if value.is_some() {
            say!("{}: taken from {}", ask.question, ask.variable);
        }
        Ok(value)
    }

    /// Whether an id can be one there. What cannot would let nobody in.
    fn fits(&self, id: &str) -> Result<(), Halt> {
        let Spec { label, senders, .. } = self.spec;
        if (senders.fit)(id) {
            return Ok(());
        }
        Err(Halt::new(Exit::Misused, format_args!("{id:?} is not how {label} names people"))
            .hint(format_args!("ids there look like {}", senders.like)))
    }

    fn path(&self, setting: &str) -> String {
        format!("accounts.{}.{setting}", self.account)
    }

    fn is_set(&self, setting: &str) -> bool {
        let origin = self.before.origin(&self.path(setting));
        origin.is_some_and(|origin| *origin != Origin::Default)
    }

    /// The variable that a setting is kept under.
    fn variable(&self, ask: &Ask) -> String {
        match self.account == self.spec.name {
            true => ask.variable.to_owned(),
            false => talaria_config::variable(&self.path(ask.setting)),
        }
    }

    /// The files with the answers in them.
    fn draft(&self, answers: &[Answer]) -> Result<Draft, Halt> {
        let mut draft = Draft::open(self.home)?;
        let mut settings = vec![("platform", Put::Value(self.spec.name.to_owned()))];
        for Answer { ask, value, .. } in answers {
            if value.contains(char::is_control) {
                let problem = format!("{} holds what cannot be typed", ask.setting);
                return Err(Halt::new(Exit::Misused, problem).hint("give it in one line"));
            }
            let origin = self.before.origin(&self.path(ask.setting));
            match (ask.secrecy, origin) {
                // A higher layer would win over what is written into a lower one.
                (Secrecy::Secret, _) | (_, Some(Origin::DotEnv { .. })) => {
                    let variable = match origin {
                        Some(Origin::DotEnv { name, .. }) => name.clone(),
                        _ => self.variable(ask),
                    };
                    draft.keep(&variable, value);
                }
                (Secrecy::Open, _) => settings.push((ask.setting, Put::Value(value.clone()))),
            }
        }
        for sender in self.options.allow.iter().map(|sender| sender.trim()) {
            if sender.is_empty() {
                return Err(empty("allow"));
            }
            self.fits(sender)?;
            settings.push(("allow", Put::Item(sender.to_owned())));
        }
        if self.options.allow_everyone {
            settings.push(("allow_everyone", Put::Yes));
        }
        draft.put(self.account, &settings)?;
        Ok(draft)
    }

    /// What the files lead to, with the account switched on.
    fn load(&self, draft: &mut Draft) -> Result<Loaded, Halt> {
        let loaded = draft.load()?;
        if self.of(&loaded).is_some() {
            return Ok(loaded);
        }
        draft.put(self.account, &[("enabled", Put::Yes)])?;
        draft.load()
    }

    fn of(&self, loaded: &Loaded) -> Option<Account> {
        loaded.config().accounts.get(&self.id)?.account.clone()
    }

    async fn check(&self, loaded: &Loaded) -> Result<Checked, ConnectError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let Some(account) = self.of(loaded) else { return Ok(Checked::default()) };
        tokio::select! {
            checked = account.check(clock.clone()) => checked,
            () = clock.sleep(PATIENCE) => Err(ConnectError::Unreachable {
                reason: format!("no answer for {} s", PATIENCE.as_secs()),
            }),
        }
    }

    /// Says who we are there.
    fn tell(&self, loaded: &Loaded, checked: &Checked) -> Result<(), Halt> {
        let label = self.spec.label;
        match &checked.name {
            Some(name) => say!("\n{label} knows this account as {}.", loaded.redact(name)),
            None => say!("\n{label} has nothing against it."),
        }
        for remark in &checked.remarks {
            say!("  • {}", loaded.redact(remark));
        }
        Ok(())
    }

    /// Somebody has to be heard, and nobody is unless they are named.
    async fn let_in(
        &self,
        draft: &mut Draft,
        loaded: &Loaded,
        person: Option<Person>,
    ) -> Result<(), Halt> {
        let Some(mut person) = person.filter(|_| hears_nobody(loaded, &self.id)) else {
            return Ok(());
        };
        let Spec { label, senders, .. } = self.spec;
        say!(
            "\nNobody is heard who is not named or let in by a code. {label} names people like {}.",
            senders.like
        );
        let question = "Your id there, or several separated by commas [get a code]";
        for _ in 0..TRIES {
            let ids = person.ask(question, Echo::Shown).await?;
            let ids: BTreeSet<&str> =
                ids.split(',').map(str::trim).filter(|id| !id.is_empty()).collect();
            match ids.iter().try_for_each(|id| self.fits(id)) {
                Ok(()) => {
                    let items = ids.iter().map(|id| ("allow", Put::Item((*id).to_owned())));
                    return draft.put(self.account, &items.collect::<Vec<_>>());
                }
                Err(problem) => say!("{}", problem.explained()),
            }
        }
        Ok(())
    }

    async fn write(&self, draft: &Draft, loaded: &Loaded) -> Result<(), Halt> {
        let changed = draft.changed();
        if changed.is_empty() {
            say!("\nNothing has changed: the account {} is set up like this.", self.account);
        } else {
            draft.write(self.home)?;
            let files: Vec<_> = changed.iter().map(|path| path.display().to_string()).collect();
            say!("\nThe account {} is written into {}.", self.account, files.join(" and "));
        }
        for answered in self.overridden() {
            say!("{answered} has another value in this environment, which wins over `.env`.");
        }
        if let Some(Origin::Environment { name, .. }) = loaded.origin(&self.path("allow")) {
            say!("Whom it hears is in {name} of this environment, and is not written down.");
        }
        if hears_nobody(loaded, &self.id) {
            say!(
                "Nobody is named, so nobody is heard yet. Write to it: you get a code, and let yourself in \
                 with\n  talaria pair approve {} CODE",
                self.account
            );
        }
        if changed.is_empty() {
            return Ok(());
        }
        match Client::find(self.home).await? {
            Some(_) => say!(
                "\nA gateway is running. `talaria reload` lets it hear whom you have named; /restart in a \
                 chat, or `talaria stop` and `talaria run`, takes up the rest."
            ),
            None => say!("\nNext: `talaria run`, then write to it."),
        }
        Ok(())
    }

    /// Variables of this process that will win over what was written.
    fn overridden(&self) -> Vec<&'static str> {
        let is_other = |ask: &&Ask| {
            let given = self.options.answers.get(ask.setting);
            let set = std::env::var(ask.variable).ok().filter(|value| !value.is_empty());
            let is_own = self.account == self.spec.name;
            is_own && given.is_some() && set.is_some() && given != set.as_deref()
        };
        self.spec.asks.iter().filter(is_other).map(|ask| ask.variable).collect()
    }
}

/// Whether an answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Needed,
    Welcome,
    /// It is taken where it is given.
    Unasked,
    /// Another answer leaves no room for it.
    Pointless,
}

fn echo(ask: &Ask) -> Echo {
    match ask.secrecy {
        Secrecy::Secret => Echo::Hidden,
        Secrecy::Open => Echo::Shown,
    }
}

fn empty(flag: &str) -> Halt {
    Halt::new(Exit::Misused, format_args!("--{flag} is empty"))
}

/// Asks once more for what somebody has typed, and for nothing else.
async fn correct(person: &mut Person, answers: &mut [Answer]) -> Result<(), Halt> {
    for answer in answers.iter_mut().filter(|answer| answer.by == By::Typing) {
        let question = format!("{} [as you typed it]", answer.ask.question);
        let value = person.ask(&question, echo(answer.ask)).await?;
        if !value.is_empty() {
            answer.value = value;
        }
    }
    Ok(())
}

fn hears_nobody(loaded: &Loaded, account: &AccountId) -> bool {
    loaded.config().accounts.get(account).is_some_and(|settings| {
        let access = &settings.access;
        let is_nobody = !access.names_somebody() && !access.is_open();
        is_nobody && settings.platform.identity == Identity::Anyone
    })
}

/// The configuration as it is. What is wrong with another part of it has to be corrected first.
fn present(home: &Home, account: &str) -> Result<Before, Halt> {
    let sources = Sources::read(home.path(), std::env::vars_os());
    match sources.and_then(|sources| talaria_config::load(sources, talaria_platforms::ALL)) {
        Ok(loaded) => Ok(Before::Good(Box::new(loaded))),
        Err(problems) => {
            let own = format!("accounts.{account}");
            let is_own = |path: &str| {
                path.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let others: Vec<_> = problems
                .iter()
                .filter(|finding| !finding.path.as_deref().is_some_and(is_own))
                .cloned()
                .collect();
            match others.is_empty() {
                true => Ok(Before::Wrong(problems)),
                false => Err(start::misconfigured(&others)),
            }
        }
    }
}

fn explain(loaded: &Loaded, error: &ConnectError) -> Halt {
    match error {
        ConnectError::Refused { problem, hint } | ConnectError::Fatal { problem, hint } => {
            Halt::new(Exit::Misused, loaded.redact(problem)).hint(loaded.redact(hint))
        }
        ConnectError::Unreachable { .. } => Halt::failed(loaded.redact(&error.to_string()))
            .hint("try again, or give --no-check to write it down without having checked it"),
    }
}

/// Every platform that can be set up.
fn offered() -> impl Iterator<Item = &'static Registration> {
    let is_offered = |spec: &Spec| spec.startup == Startup::Configured && !spec.asks.is_empty();
    talaria_platforms::ALL.iter().filter(move |known| is_offered(&known.spec))
}

fn names() -> Vec<&'static str> {
    offered().map(|known| known.spec.name).collect()
}

fn named(name: &str) -> Result<&'static Registration, Halt> {
    offered().find(|known| known.spec.name == name).ok_or_else(|| {
        let known = talaria_platforms::ALL.iter().find(|known| known.spec.name == name);
        let problem = match known {
            Some(known) => format!("{} needs no setting up", known.spec.label),
            None => format!("there is no platform {name:?}"),
        };
        Halt::new(Exit::Misused, problem).hint(format_args!("choose one of {}", names().join(", ")))
    })
}

async fn chosen(person: &mut Person) -> Result<&'static Registration, Halt> {
    for (number, known) in offered().enumerate() {
        say!("  {}  {:10} {}", number + 1, known.spec.name, known.spec.about);
    }
    for _ in 0..TRIES {
        let answer = person.ask("\nWhich one", Echo::Shown).await?.to_lowercase();
        let number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = match number {
            Some(number) => offered().nth(number),
            None => offered().find(|known| known.spec.name == answer),
        };
        if let Some(found) = found {
            return Ok(found);
        }
        say!("Give the number or the name of one of them.");
    }
    Err(Halt::new(Exit::Misused, "no platform was chosen; nothing was changed"))
}

fn manifest(home: &Home, registration: &Registration, account: Option<&str>) -> Result<Exit, Halt> {
    // Commands of one's own are in it, as far as they can be read.
    let loaded = start::configuration(home).or_else(|halt| {
        talaria_config::load(Sources::default(), talaria_platforms::ALL).map_err(|_| halt)
    })?;
    let menu = talaria_gateway::menu(&rules::usual(loaded.config()), Surface::Platform);
    // An account that is set up already is described as it is.
    let name = account.unwrap_or(registration.spec.name);
    let id = AccountId::new(name).map_err(|error| Halt::new(Exit::Misused, error))?;
    let set_up = loaded.config().accounts.get(&id).and_then(|it| it.account.clone());
    let set_up = set_up.filter(|account| account.spec.name == registration.spec.name);
    let manifest = match set_up {
        Some(account) => account.manifest(&menu),
        None => (registration.manifest)(&menu),
    };
    match manifest {
        Some(manifest) => {
            say!("{manifest}");
            Ok(Exit::Done)
        }
        None => {
            let label = registration.spec.label;
            Err(Halt::new(Exit::Misused, format_args!("nothing is pasted into {label}"))
                .hint("--guide tells what to do there"))
        }
    }
}

/// The beginning of a guide: what everybody needs.
fn introduction(guide: &str) -> &str {
    guide.split("\n## ").next().unwrap_or(guide).trim_end()
}

fn shown(markdown: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colour = match !plain && std::io::stdout().is_terminal() {
        true => Colour::On,
        false => Colour::Off,
    };
    ansi(&parse(&unwrapped(markdown)), Style { width: 80, colour })
}

/// The same text with each paragraph on one line: where it breaks is for the terminal to say.
fn unwrapped(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut is_code = false;
    let mut goes_on = false;
    for line in markdown.lines() {
        let bare = line.trim_start();
        let is_fence = bare.starts_with("```");
        let number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_item =
            bare.starts_with("- ") || (number.len() < bare.len() && number.starts_with(". "));
        let begins =
            is_code || is_fence || bare.is_empty() || is_item || bare.starts_with(['|', '#']);
        if !text.is_empty() {
            text.push(if goes_on && !begins { ' ' } else { '\n' });
        }
        text.push_str(if goes_on && !begins { bare } else { line });
        is_code ^= is_fence;
        goes_on = !is_code && !is_fence && !bare.is_empty() && !bare.starts_with(['|', '#']);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_breaks_where_the_terminal_ends() {
        let guide = "# A\none\ntwo\n\n1. first\n   goes on\n2. second\n\n   ```sh\n   a\n   b\n   ```\n\n| a |\n|---|\n- x\n  y";
        let expected = "# A\none two\n\n1. first goes on\n2. second\n\n   ```sh\n   a\n   b\n   ```\n\n| a |\n|---|\n- x y";
        assert_eq!(unwrapped(guide), expected);
    }
}
