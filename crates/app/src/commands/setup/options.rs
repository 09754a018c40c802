//! `talaria setup` as people type it. What a platform asks can be answered by a flag of the same name.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

/// What `talaria setup` is asked for.
#[derive(Debug, Args)]
pub(crate) struct SetupOptions {
    /// The platform; without it, you are asked
    pub(super) platform: Option<String>,
    /// The name of the account, if it is not the platform's
    #[arg(long, value_name = "NAME")]
    pub(super) account: Option<String>,
    /// Who is heard: the id of a sender, as the platform writes it; can be given again
    #[arg(long, value_name = "ID")]
    pub(super) allow: Vec<String>,
    /// Hear everybody who finds it
    #[arg(long, conflicts_with = "allow")]
    pub(super) allow_everyone: bool,
    /// Ask nothing: what is not given is left as it is
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Do not ask the platform whether the answers are right
    #[arg(long)]
    pub(super) no_check: bool,
    /// Only print how an account is made there
    #[arg(long)]
    pub(super) guide: bool,
    /// Only print what is pasted into the platform's own settings, where it has such a thing
    #[arg(long, conflicts_with = "guide")]
    pub(super) manifest: bool,
    #[command(flatten)]
    pub(super) answers: Answers,
}

/// Answers that were given as flags, by setting.
#[derive(Debug, Default)]
pub(super) struct Answers(BTreeMap<&'static str, String>);

impl Answers {
    pub(super) fn get(&self, setting: &str) -> Option<&str> {
        self.0.get(setting).map(String::as_str)
    }

    /// Those that this platform does not ask.
    pub(super) fn besides(&self, asked: &[talaria_platform::Ask]) -> Option<&'static str> {
        let is_asked = |setting: &&str| asked.iter().any(|ask| ask.setting == *setting);
        self.0.keys().copied().find(|setting| !is_asked(setting))
    }
}

/// The flag that answers a question.
pub(super) fn flag(setting: &str) -> String {
    setting.replace('_', "-")
}

/// Every setting that any platform asks, with what each of them asks.
fn asked() -> BTreeMap<&'static str, Vec<String>> {
    let mut asked: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for spec in talaria_platforms::ALL.iter().map(|known| known.spec) {
        for ask in spec.asks {
            let question = format!("{}: {}", spec.label, ask.question);
            asked.entry(ask.setting).or_default().push(question);
        }
    }
    asked
}

fn id(setting: &str) -> String {
    format!("answer {setting}")
}

impl Args for Answers {
    fn augment_args(command: Command) -> Command {
        let command = command.after_help(
            "Other users of this machine can see flags, secrets among them; variables they cannot.",
        );
        asked().into_iter().fold(command, |command, (setting, questions)| {
            let help = questions.join("; ");
            let flag = Arg::new(id(setting)).long(flag(setting)).value_name("VALUE").help(help);
            command.arg(flag)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Answers {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |setting: &'static str| {
            let answer = matches.get_one::<String>(&id(setting))?;
            Some((setting, answer.trim().to_owned()))
        };
        Ok(Self(asked().into_keys().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
