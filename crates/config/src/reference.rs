//! The reference of all settings, in Markdown.

use std::fmt::Write;

use serde_json::Value;
use talaria_platform::Registration;

use crate::known::{self, ANY_NAME, Known, below};
use crate::schema::{Applies, Document};
use crate::shape::Kind;
use crate::show::Shown;

const INTRODUCTION: &str = "\
# Configuration reference

Every setting has a built-in default. `config.yaml` in the home folder (`~/.talaria`, or what
`TALARIA_HOME` says) overrides the defaults, `.env` beside it overrides `config.yaml`, and the
environment of the process overrides both. `talaria config show` prints every setting with its value
and its origin, `talaria config explain <setting>` tells about one of them, and `talaria config check`
looks for mistakes.

- A variable is named `TALARIA_` and the path of the setting in capitals, joined by two underscores;
  a dash becomes an underscore: `agent.turn_limit` is `TALARIA_AGENT__TURN_LIMIT`.
- A variable that holds a list separates its items by commas, or is written like `[one, two]`. One
  that holds several settings is written like `{name: value}`.
- An account that is named like its platform also takes the variables by which the platform is known
  everywhere, which are told below, and `<PLATFORM>_ALLOWED_USERS`,
  `<PLATFORM>_GROUP_ALLOWED_USERS` and `<PLATFORM>_ALLOW_ALL_USERS` for `allow`, `group_allow_from` and
  `allow_everyone`. It appears without `config.yaml` when all are set that it needs.
- An empty variable counts as not set, and so does a key of `config.yaml` with nothing behind it.
- Values in `.env` are taken as written and never expanded.
- Top-level keys of `config.yaml` that begin with `x-` are left alone, so that anchors have a home.
- A change takes effect when the gateway is started again, unless the setting says that it applies at
  once.
- Secrets belong into `.env`; both files should be readable by you alone (`chmod 600`).

This page is generated from the settings themselves.
";

/// The reference of all settings, for `docs/reference/config.md`. The same registrations give the
/// same text.
pub fn reference(registrations: &[Registration]) -> String {
    let document = Document::new(registrations);
    let mut page = Page { document: &document, text: INTRODUCTION.to_owned() };
    let known = known::list(&document);
    page.text.push_str("\n## General\n");
    for setting in known.iter().filter(|setting| is_general(setting)) {
        page.setting(&setting.path, setting.schema, setting.applies, &[]);
    }
    let mut required = Vec::new();
    for setting in known.iter().filter(|setting| !is_general(setting)) {
        let shape = document.shape(setting.schema, None);
        if is_told_elsewhere(setting, &document) {
            continue;
        }
        if setting.kind == Kind::Section && !shape.is_plain_map(&document) {
            required = shape.required();
            page.section(setting);
        } else {
            page.setting(&setting.path, setting.schema, setting.applies, &required);
        }
    }
    page.text
}

/// What a platform's accounts take besides what every account takes: a table in Markdown.
pub fn settings_table(registrations: &[Registration], platform: &str) -> String {
    let document = Document::new(registrations);
    let account = below("accounts", platform);
    let inside = below(&account, "");
    let mut table =
        String::from("| setting | takes | default | variable | |\n|---|---|---|---|---|\n");
    let required = document.account(platform).map(|schema| document.shape(schema, None).required());
    let required = required.unwrap_or_default();
    for setting in known::list(&document) {
        let Some(name) = setting.path.strip_prefix(&inside) else { continue };
        let shape = document.shape(setting.schema, None);
        let is_heading = setting.kind == Kind::Section && !shape.is_plain_map(&document);
        if is_heading || is_told_elsewhere(&setting, &document) {
            continue;
        }
        let default = match shape.default().filter(|default| !is_empty(default)) {
            Some(default) => format!("`{}`", Shown::Value(default.clone())),
            None if required.contains(&name) => "required".to_owned(),
            None => String::new(),
        };
        let conventional = document.convention(&setting.path).map(str::to_owned);
        let variable = conventional.unwrap_or_else(|| known::variable(&setting.path));
        let cells = [shape.describe(&document), default, format!("`{variable}`")];
        let help = shape.help().split_whitespace().collect::<Vec<_>>().join(" ");
        let cells = cells.join(" | ");
        let _ = writeln!(table, "| `{name}` | {cells} | {} |", help.replace('|', "\\|"));
    }
    table
}

fn is_general(setting: &Known<'_>) -> bool {
    setting.kind != Kind::Section && !setting.path.contains('.')
}

/// The values of a map are told with the map, and what every account has is told once.
fn is_told_elsewhere(setting: &Known<'_>, document: &Document) -> bool {
    let mut parts = setting.path.split('.');
    let is_of_account = (parts.next(), parts.next(), parts.next());
    let is_of_account = matches!(is_of_account, (Some("accounts"), Some(_), Some(key))
        if !document.account_keys["properties"][key].is_null());
    (setting.key() == ANY_NAME && setting.kind != Kind::Section) || is_of_account
}

struct Page<'a> {
    document: &'a Document,
    text: String,
}

impl Page<'_> {
    fn section(&mut self, setting: &Known<'_>) {
        let shape = self.document.shape(setting.schema, None);
        let is_account = setting.path.starts_with("accounts.");
        let title = shape.title().filter(|_| is_account).map(|title| format!("{title}: "));
        let title = format!("{}`{}`", title.unwrap_or_default(), setting.path);
        self.heading(setting.path.matches('.').count(), &title);
        self.paragraph(shape.help());
        if setting.path == "accounts" {
            let path = below(&setting.path, ANY_NAME);
            self.heading(1, &format!("Every account: `{path}`"));
            self.keys(&path, &self.document.account_keys, setting.applies);
        }
    }

    fn keys(&mut self, path: &str, schema: &Value, applies: Applies) {
        for (name, schema) in self.document.shape(schema, None).properties() {
            let path = below(path, name);
            self.setting(&path, schema, applies, &[]);
            if self.document.shape(schema, None).kind() == Kind::Section {
                self.keys(&path, schema, applies);
            }
        }
    }

    fn setting(&mut self, path: &str, schema: &Value, applies: Applies, required: &[&str]) {
        let shape = self.document.shape(schema, None);
        let key = path.rsplit_once('.').map_or(path, |(_, key)| key);
        let mut facts = vec![shape.describe(self.document)];
        match shape.default().filter(|default| !is_empty(default)) {
            Some(default) => facts.push(format!("default `{}`", Shown::Value(default.clone()))),
            None if required.contains(&key) => facts.push("required".to_owned()),
            None => {}
        }
        let also = self.document.convention(path).map_or(String::new(), |it| format!(" or `{it}`"));
        facts.push(format!("`{}`{also}", known::variable(path)));
        if applies == Applies::Live {
            facts.push("applies at once".to_owned());
        }
        self.heading(path.matches('.').count().max(1), &format!("`{path}`"));
        self.paragraph(&facts.join(" · "));
        self.paragraph(shape.help());
        let choices: Vec<String> = shape
            .explained_choices()
            .into_iter()
            .map(|(choice, help)| format!("- `{choice}`: {help}"))
            .collect();
        self.paragraph(&choices.join("\n"));
    }

    fn heading(&mut self, depth: usize, title: &str) {
        let _ = write!(self.text, "\n{} {title}\n", "#".repeat(2 + depth.min(3)));
    }

    fn paragraph(&mut self, text: &str) {
        if !text.is_empty() {
            let _ = write!(self.text, "\n{text}\n");
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}
