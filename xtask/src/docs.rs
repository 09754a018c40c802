//! Documents that are made from the program itself, written and checked for freshness.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use talaria_session::{
    COMMANDS, Category, CommandSpec, Deed, Footing, Permission, Room, Surface, WhileRunning, Who,
    permitted,
};

use crate::{attack, platform_pages, shell};

type Make = Box<dyn Fn(&Path) -> Result<String>>;

/// A document and how it is made.
struct Document {
    path: String,
    make: Make,
}

fn documents() -> Vec<Document> {
    let document = |path: &str, make: fn(&Path) -> Result<String>| Document {
        path: path.to_owned(),
        make: Box::new(make),
    };
    let mut documents = vec![
        document("docs/config.schema.json", schema),
        document("docs/reference/config.md", reference),
        document("docs/reference/cli.md", cli),
        document("docs/reference/commands.md", commands),
        document("docs/access.md", access),
        document("docs/security.md", attack::page),
        document(&format!("{}/README.md", platform_pages::FOLDER), |_| {
            Ok(platform_pages::overview(talaria_platforms::ALL))
        }),
    ];
    for known in talaria_platforms::ALL {
        documents.push(Document {
            path: format!("{}/{}.md", platform_pages::FOLDER, known.spec.name),
            make: Box::new(|_| Ok(platform_pages::page(known, talaria_platforms::ALL))),
        });
    }
    documents
}

/// Writes every document again.
pub(crate) fn write(root: &Path) -> Result<()> {
    for document in documents() {
        let path = root.join(&document.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, (document.make)(root)?)?;
        eprintln!("wrote {}", document.path);
    }
    Ok(())
}

/// Insists that every document says what the program says.
pub(crate) fn check(root: &Path) -> Result<()> {
    let documents = documents();
    for document in &documents {
        let written = fs::read_to_string(root.join(&document.path))
            .with_context(|| format!("{} is missing; run `cargo xtask docs`", document.path))?;
        if written != (document.make)(root)? {
            bail!("{} is out of date; run `cargo xtask docs`", document.path);
        }
    }
    for page in fs::read_dir(root.join(platform_pages::FOLDER))? {
        let path = format!("{}/{}", platform_pages::FOLDER, page?.file_name().to_string_lossy());
        if !documents.iter().any(|document| document.path == path) {
            bail!("{path} is about no platform; remove it");
        }
    }
    eprintln!("docs: every generated document is fresh");
    Ok(())
}

fn schema(_: &Path) -> Result<String> {
    let schema = talaria_config::schema(talaria_platforms::ALL);
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

fn reference(_: &Path) -> Result<String> {
    Ok(talaria_config::reference(talaria_platforms::ALL))
}

fn cli(root: &Path) -> Result<String> {
    let help = |arguments: &[&str]| {
        let mut command = shell::cargo(root, &["run", "--quiet", "--package", "talaria", "--"]);
        shell::read(command.args(arguments).env("COLUMNS", "100"))
    };
    let mut text =
        String::from("# The command line\n\nMade by `cargo xtask docs` from `--help`.\n");
    let pages: &[&[&str]] = &[
        &[],
        &["chat"],
        &["setup"],
        &["model"],
        &["status"],
        &["doctor"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["sessions", "search"],
        &["sessions", "export"],
        &["sessions", "rename"],
        &["sessions", "prune"],
        &["pair", "list"],
        &["pair", "approve"],
        &["pair", "revoke"],
        &["pair", "issue"],
        &["pair", "clear"],
        &["audit"],
        &["why"],
        &["hooks", "list"],
        &["hooks", "test"],
        &["backup", "create"],
        &["backup", "verify"],
        &["backup", "restore"],
        &["metrics"],
        &["config", "show"],
        &["config", "explain"],
        &["config", "check"],
        &["config", "plan"],
        &["config", "apply"],
        &["platforms"],
        &["platforms", "pause"],
        &["platforms", "resume"],
    ];
    for page in pages {
        let name = std::iter::once(&"talaria").chain(*page).copied().collect::<Vec<_>>().join(" ");
        let arguments: Vec<&str> = page.iter().copied().chain(["--help"]).collect();
        text.push_str(&format!(
            "\n## `{name}`\n\n```text\n{}\n```\n",
            help(&arguments)?.trim_end()
        ));
    }
    Ok(text)
}

const COMMANDS_INTRODUCTION: &str = "\
# Commands

What you can say to the gateway in any chat, beginning with a slash. Made by `cargo xtask docs` from the
list that the gateway itself goes by; `/help` shows what you may use where you are.

- The beginning of a name is enough where it fits one command only (`/sto`), but for those of
  administrators. `_` and `-` are the same, and `/stop@yourbot` is `/stop`.
- A line that begins with a space, or with a path such as `/etc/hosts`, is no command.
- *Who*: administrators are named in `accounts.<name>.allow_admin_from`, and in groups in
  `group_allow_admin_from`. In the web chat and in the terminal it is you. As long as nobody is named,
  whoever is listed in `allow` is one, and with `admins_unless_named: everyone` whoever is heard; once somebody is, the others may use `/help`, `/whoami`, `/stop` for a turn of their own, and what
  `user_allowed_commands` lists. [Who may do what](../access.md) is the whole table.
- *During an answer*: **at once** goes ahead of everything that waits; **in turn** is obeyed when its
  place in the order of what was said comes; **refused** would change what the answer is made of.
- Commands of your own: `quick_commands` in the [configuration](config.md).
";

const ACCESS_INTRODUCTION: &str = "\
# Who may do what

Nobody is heard unless a rule lets them in. Made by `cargo xtask docs` from the table that the gateway
itself goes by.

**Who somebody is** is decided by the first of these rules that fits, by the id that the platform never
changes:

| rule | footing |
|---|---|
| the policy of such a chat (`dm_policy`, `group_policy`) is `disabled` | nobody |
| the platform has authenticated the operator: the web page, the terminal | the operator |
| on `accounts.<name>.allow`; in direct chats on `allow_from`, elsewhere on `group_allow_from` | on the list |
| has a role that the account names | on the list |
| on `access.allow` | on the list |
| was let in by pairing: in direct chats, or everywhere if whoever let them in said so | a paired guest |
| everybody is let in: `allow_everyone` of the account or of `access` | a guest |
| none of these | a stranger |

Whoever is let in and named in `allow_admin_from` (elsewhere `group_allow_admin_from`) is an administrator
there. As long as nobody is named, whoever is on the list is; who was paired or is a guest is not, unless
`admins_unless_named` says `everyone`. Whoever
speaks in the name of a group or a channel is a guest at most, because that can be several people. So is a program
(a bot or a webhook), whatever list it is on: it may speak where it is let in (`allow_bots`), and it is nobody who could answer for what is done.

An administrator is one of an account, with two commands that concern all of them: `/reload` and `/restart` do
nothing but what you have written into the configuration, so any administrator may give them. `/platforms pause` and
`resume` are for you, on the web page and in the terminal; elsewhere they reach only accounts on which the same person
(`people`) may give the command, too, by a list, and never the web page or the terminal.

A stranger who writes in a direct chat is ignored, or gets one answer with a pairing code, as `dm_policy` and
`unauthorized_dm_behavior` say. Where neither is set, they get a code as long as nobody is named, and are ignored as soon as somebody
is, on a list or by a role. In chats of several people, strangers are met with silence. Who asks is let in
with `talaria pair`, with `/pair`, or under *People* on the web page ([Web chat](platforms/web.md)). An
administrator lets people in only where they are an administrator themselves: `everywhere` is for whoever is one in chats of several people, too. Whoever was
given a code by an administrator says it and nothing else, in one piece (`ABCDEFGH`) or with a dash in its middle (`ABCD-EFGH`), in
letters of any size; everything else is a greeting and no guess.

A code is good for an hour and for one use. A stranger is answered once in ten minutes at most, also one who was let in and put out again since. Three can
ask at the same time; the next one is told to come again in an hour. Five wrong codes in a row from whoever lets people in lock the account for an hour: nobody is
given a code, and none is approved. `talaria pair clear ACCOUNT` and `/pair clear` end that and void what is open; a code that you make (`talaria pair issue ACCOUNT`) works meanwhile.
Of a stranger who said five wrong ones no code is looked at for an hour, and after a hundred wrong ones by all of them those that were handed on are void.

**A group in which everybody is heard**: Hermes lets in whoever writes in a chat of `group_allowed_chats` (`TELEGRAM_GROUP_ALLOWED_CHATS`). Here `allowed_chats` lets
nobody in; it only narrows where an account answers. This does the same:

```yaml
accounts:
  telegram:
    allow: [\"42\"]                       # you
    allow_everyone: true
    group_policy: open
    allowed_chats: [\"-1001234567890\"]   # without it, everybody in every group
    dm_policy: pairing                  # without it, everybody in direct chats; disabled is nobody there, you included
    group_allow_admin_from: [\"42\"]      # without it, guests give commands like /new and /model, too
```

Whoever writes in that group is a guest there, other groups are not answered (leave `guest_mode` off), and strangers in direct chats get a code and are not heard until somebody lets them in.

**What they may do**, looked up again whenever something of theirs is taken up: *named* is what
`user_allowed_commands` lists, *role* what the person's role in `people` grants
([People](people.md)). `/help` and `/whoami` are everybody's who is heard. Whose `/stop`, `/approve` and `/deny`
count is said by rows of their own; to stop another's turn takes the command, and so does a
`/new` that would. `/undo` takes the command, too: where an administrator is named, others take back their own turns only if it is
named for them or their role grants it.
";

fn access(_: &Path) -> Result<String> {
    let mut text = String::from(ACCESS_INTRODUCTION);
    for (surface, room, title) in [
        (Surface::Platform, Room::Direct, "In a direct chat of a platform"),
        (Surface::Platform, Room::Group, "In any other chat of a platform"),
        (Surface::Own, Room::Direct, "On the web page and in the terminal"),
    ] {
        text.push_str(&format!("\n## {title}\n\n|"));
        for footing in Footing::ALL {
            text.push_str(&format!(" | {}", footing.title()));
        }
        text.push_str(&format!(" |\n|---{}|\n", "|---".repeat(Footing::ALL.len())));
        for deed in Deed::ALL {
            text.push_str(&format!("| {}", deed.title()));
            for footing in Footing::ALL {
                text.push_str(match permitted(surface, deed, footing, room) {
                    Permission::Granted => " | yes",
                    Permission::IfNamed => " | named",
                    Permission::ByRole => " | role",
                    Permission::IfNamedOrByRole => " | named, role",
                    Permission::Refused => " | –",
                });
            }
            text.push_str(" |\n");
        }
    }
    Ok(text)
}

fn commands(_: &Path) -> Result<String> {
    let mut text = String::from(COMMANDS_INTRODUCTION);
    for category in Category::ALL {
        text.push_str(&format!("\n## {}\n\n", category.title()));
        text.push_str("| command | | who | during an answer |\n|---|---|---|---|\n");
        let listed = |spec: &&CommandSpec| spec.category == category && spec.is_listed();
        for spec in COMMANDS.iter().filter(listed) {
            text.push_str(&row(spec));
        }
    }
    Ok(text)
}

fn row(spec: &CommandSpec) -> String {
    let typed = format!("/{} {}", spec.name, spec.arguments).replace('|', "\\|");
    let aliases: Vec<String> = spec.aliases.iter().map(|alias| format!("`/{alias}`")).collect();
    let also = match aliases.is_empty() {
        true => String::new(),
        false => format!(" (also {})", aliases.join(", ")),
    };
    let who = match spec.who {
        Who::Anyone => "everybody",
        Who::Admin => "administrators",
    };
    let running = match spec.running {
        WhileRunning::Jumps => "at once",
        WhileRunning::Passes => "in turn",
        WhileRunning::Refused => "refused",
    };
    format!("| `{}` | {}{also} | {who} | {running} |\n", typed.trim_end(), spec.help)
}
