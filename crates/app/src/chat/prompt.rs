//! Where a person types: a line editor with history, completion and hints, on a thread of its own
//! because it waits for keys.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc as std_mpsc;
use std::thread;

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event,
    EventContext, EventHandler, ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers, Movement,
    RepeatCount,
};
use talaria_machine::create_for_us;
use talaria_render::Colour;
use tokio::sync::mpsc;

use super::command::every_command;
use super::paper::MARK;
use super::tty;

/// Lines that are remembered.
const HISTORY: usize = 1_000;

/// What can be printed above the prompt before anybody has to wait.
const PRINTED_AHEAD: usize = 64;

/// What became of a prompt.
#[derive(Debug)]
pub(super) enum Typed {
    /// Enter.
    Line(String),
    /// Ctrl-C, with nothing typed.
    Interrupted,
    /// Ctrl-D, with nothing typed.
    Ended,
    /// The terminal cannot be read.
    Broken(String),
}

/// Where a person types.
pub(super) struct Prompt {
    ask: std_mpsc::SyncSender<()>,
    typed: mpsc::Receiver<Typed>,
    above: Option<std_mpsc::SyncSender<String>>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Closed,
}

impl Prompt {
    /// Prepares the editor. Nothing is shown yet.
    pub(super) fn new(history: &Path, colour: Colour) -> anyhow::Result<Self> {
        let mut editor = editor(history, colour)?;
        let above = match editor.create_external_printer() {
            Ok(printer) => Some(print_above(printer)?),
            // A terminal that can do little is written to directly.
            Err(_) => None,
        };
        let (ask, asked) = std_mpsc::sync_channel(1);
        let (tell, typed) = mpsc::channel(1);
        let history = history.to_owned();
        thread::Builder::new().name("prompt".into()).spawn(move || {
            while asked.recv().is_ok() {
                if tell.blocking_send(read(&mut editor, &history)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { ask, typed, above, state: State::Closed })
    }

    /// Shows the prompt, unless it is there already.
    pub(super) fn open(&mut self) {
        if self.state == State::Closed && self.ask.try_send(()).is_ok() {
            self.state = State::Open;
        }
    }

    /// Whether the prompt is shown.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// What is typed at the open prompt, which closes.
    pub(super) async fn typed(&mut self) -> Typed {
        let typed = self.typed.recv().await;
        self.state = State::Closed;
        if self.above.is_some() {
            tty::mark_pastes();
        }
        typed.unwrap_or_else(|| Typed::Broken("the line editor has gone".into()))
    }

    /// Writes whole lines: above the prompt while it is open.
    pub(super) fn write(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        match &self.above {
            Some(above) if self.is_open() => {
                // Whatever holds the editor up, nothing is lost.
                if let Err(unprinted) = above.try_send(text.to_owned()) {
                    let (std_mpsc::TrySendError::Full(text)
                    | std_mpsc::TrySendError::Disconnected(text)) = unprinted;
                    tty::write(&text);
                }
            }
            _ => tty::write(text),
        }
    }
}

/// Hands text to the editor, which prints it above the line that is being edited. On a thread,
/// because the editor takes one text at a time and only while it waits for keys.
fn print_above(
    mut printer: impl ExternalPrinter + Send + 'static,
) -> anyhow::Result<std_mpsc::SyncSender<String>> {
    let (above, texts) = std_mpsc::sync_channel::<String>(PRINTED_AHEAD);
    thread::Builder::new().name("print".into()).spawn(move || {
        for text in texts {
            if printer.print(text).is_err() {
                return;
            }
        }
    })?;
    Ok(above)
}

type ChatEditor = Editor<Assistance, DefaultHistory>;

fn editor(history: &Path, colour: Colour) -> anyhow::Result<ChatEditor> {
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .color_mode(match colour {
            Colour::On => ColorMode::Enabled,
            Colour::Off => ColorMode::Disabled,
        })
        .build();
    let mut editor = ChatEditor::with_config(config)?;
    editor.set_helper(Some(Assistance { files: FilenameCompleter::new() }));
    let key = |code, modifiers| KeyEvent(code, modifiers);
    let newline = || EventHandler::Simple(Cmd::Newline);
    editor.bind_sequence(KeyEvent::ctrl('J'), newline());
    editor.bind_sequence(key(KeyCode::Enter, Modifiers::ALT), newline());
    let bind = |handler| EventHandler::Conditional(handler);
    editor.bind_sequence(key(KeyCode::Enter, Modifiers::NONE), bind(Box::new(Continue)));
    editor.bind_sequence(KeyEvent::ctrl('C'), bind(Box::new(ClearFirst)));
    if prepare(history).is_ok() {
        // A history that cannot be read is an empty one.
        let _ = editor.load_history(history);
    }
    Ok(editor)
}

/// Makes the history file, for nobody but this user. Left to the editor, it would be made under a
/// changed umask, which the whole process has in common.
fn prepare(history: &Path) -> std::io::Result<()> {
    match create_for_us(history) {
        Ok(mut file) => file.write_all(b"#V2\n"),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a line can be called back later. The history is a file, and a pairing code belongs in none.
fn is_remembered(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_approval = words.next() == Some("/pair") && words.next() == Some("approve");
    !is_approval && !line.trim().is_empty()
}

fn read(editor: &mut ChatEditor, history: &Path) -> Typed {
    match editor.readline(MARK) {
        Ok(line) => {
            let line = joined(&line);
            if is_remembered(&line) && editor.add_history_entry(line.as_str()).is_ok() {
                // Not being remembered is no reason not to be heard.
                let _ = editor.append_history(history);
            }
            Typed::Line(line)
        }
        Err(ReadlineError::Interrupted) => Typed::Interrupted,
        Err(ReadlineError::Eof) => Typed::Ended,
        Err(error) => Typed::Broken(error.to_string()),
    }
}

/// What Enter puts behind a backslash. The invisible mark tells it from the backslashes at the ends of
/// lines that were pasted, which stay.
const CONTINUED: &str = "\u{2060}\n";

/// What was typed, without the backslashes that only said that it goes on.
fn joined(line: &str) -> String {
    line.replace(&format!("\\{CONTINUED}"), "\n")
}

/// A backslash at the end of the last line goes on in a line below.
struct Continue;

impl ConditionalEventHandler for Continue {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext) -> Option<Cmd> {
        let ends = at.pos() == at.line().len() && at.line().ends_with('\\');
        ends.then(|| Cmd::Insert(1, CONTINUED.into()))
    }
}

/// Ctrl-C clears what is typed; only with nothing typed does it interrupt.
struct ClearFirst;

impl ConditionalEventHandler for ClearFirst {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext) -> Option<Cmd> {
        Some(match at.line() {
            "" => Cmd::Interrupt,
            _ => Cmd::Kill(Movement::WholeBuffer),
        })
    }
}

/// Completes and explains commands.
struct Assistance {
    files: FilenameCompleter,
}

impl Helper for Assistance {}
impl Validator for Assistance {}

impl Completer for Assistance {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if takes_path(&line[..at]) {
            return self.files.complete(line, at, context);
        }
        let Some(begun) = begun_command(&line[..at]) else { return Ok((at, Vec::new())) };
        let names = every_command().filter(|(name, _)| name.starts_with(begun));
        let candidates = names.map(|(name, help)| Pair {
            display: format!("/{name} — {help}"),
            replacement: format!("/{name} "),
        });
        Ok((0, candidates.collect()))
    }
}

impl Hinter for Assistance {
    type Hint = CommandHint;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<CommandHint> {
        if at < line.len() {
            return None;
        }
        let begun = begun_command(line).filter(|begun| !begun.is_empty())?;
        let (name, help) = every_command().find(|(name, _)| name.starts_with(begun))?;
        let rest = &name[begun.len()..];
        Some(CommandHint { shown: format!("{rest}  {help}"), completion: rest })
    }
}

/// The rest of a command's name, and what it does.
struct CommandHint {
    shown: String,
    completion: &'static str,
}

impl Hint for CommandHint {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        (!self.completion.is_empty()).then_some(self.completion)
    }
}

impl Highlighter for Assistance {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(format!("\x1b[36m{prompt}\x1b[0m"))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }
}

/// The name of a command as far as it is typed, without the slash.
fn begun_command(line: &str) -> Option<&str> {
    line.strip_prefix('/').filter(|name| !name.contains(|c: char| c.is_whitespace() || c == '/'))
}

/// Whether a path comes next.
fn takes_path(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("/attach") => line.contains(' '),
        Some("/save") => {
            words.next().is_some_and(|_| words.next().is_some() || line.ends_with(' '))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustyline::history::MemHistory;

    fn completed(line: &str) -> Vec<String> {
        let history = MemHistory::new();
        let assistance = Assistance { files: FilenameCompleter::new() };
        let (_, found) = assistance.complete(line, line.len(), &Context::new(&history)).unwrap();
        found.into_iter().map(|pair| pair.replacement).collect()
    }

    fn hinted(line: &str) -> Option<(String, Option<String>)> {
        let history = MemHistory::new();
        let assistance = Assistance { files: FilenameCompleter::new() };
        let hint = assistance.hint(line, line.len(), &Context::new(&history))?;
        Some((hint.display().to_owned(), hint.completion().map(str::to_owned)))
    }

    #[test]
    fn commands_complete_whoever_carries_them_out() {
        assert_eq!(completed("/sa"), ["/save "]);
        assert_eq!(completed("/sto"), ["/stop "]);
        assert_eq!(
            completed("/s"),
            ["/search ", "/sessions ", "/sethome ", "/status ", "/steer ", "/stop ", "/save "]
        );
        assert!(completed("/").len() >= 30);
        for line in ["", "hello", "/etc/h", "say /st", "/stop it"] {
            assert_eq!(completed(line), Vec::<String>::new(), "{line:?}");
        }
    }

    #[test]
    fn paths_complete_where_a_path_comes_next() {
        for (line, expected) in [
            ("/attach ", true),
            ("/attach no", true),
            ("/attach", false),
            ("/save 1 ", true),
            ("/save 1 x", true),
            ("/save 1", false),
            ("attach no", false),
        ] {
            assert_eq!(takes_path(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_backslash_before_enter_goes_and_a_pasted_one_stays() {
        let typed = format!("one\\{CONTINUED}two \\\nthree\\{CONTINUED}");
        assert_eq!(joined(&typed), "one\ntwo \\\nthree\n");
    }

    #[test]
    fn a_hint_finishes_the_name_and_explains_it() {
        let (shown, completion) = hinted("/stat").unwrap();
        assert!(shown.starts_with("us  show"), "{shown}");
        assert_eq!(completion.as_deref(), Some("us"));
        assert_eq!(hinted("/status").unwrap().1, None);
        for line in ["", "/", "hello", "/nonsense", "/stop now"] {
            assert_eq!(hinted(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_line_with_a_code_is_not_remembered() {
        for (line, expected) in [
            ("/pair approve bench ABCD2345", false),
            ("  /pair  approve ABCD 2345", false),
            ("", false),
            (" ", false),
            ("/pair bench", true),
            ("approve it", true),
        ] {
            assert_eq!(is_remembered(line), expected, "{line:?}");
        }
    }

    #[test]
    fn the_history_is_for_this_user_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat_history");
        prepare(&path).unwrap();
        prepare(&path).unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
