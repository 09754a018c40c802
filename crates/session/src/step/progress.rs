//! What people are told of the tools that a turn calls.

use talaria_model::ToolCall;

use super::Step;
use super::say::shortened;
use crate::session::Verbosity;

/// The most of a call's arguments that is told.
const LONGEST_ARGUMENTS: usize = 200;

impl Step<'_> {
    pub(super) fn tell_of_calls(&mut self, calls: &[ToolCall]) {
        let chosen = self.session.preferences.verbosity;
        let verbosity = chosen.unwrap_or(self.session.rules.verbosity);
        let Some(hand) = self.hand_mut() else { return };
        let mut told = hand.told_of.take();
        let mut is_new = |call: &&ToolCall| {
            let before = told.replace(call.tool.clone());
            before.as_ref() != Some(&call.tool)
        };
        let changes: Vec<_> = calls.iter().filter(&mut is_new).collect();
        hand.told_of = told;
        let name = |call: &ToolCall| format!("⚙ `{}`", call.tool);
        let lines: Vec<String> = match verbosity {
            Verbosity::Off => return,
            Verbosity::New => changes.into_iter().map(name).collect(),
            Verbosity::All => calls.iter().map(name).collect(),
            Verbosity::Verbose => calls
                .iter()
                .map(|call| {
                    let arguments = shortened(&call.arguments, LONGEST_ARGUMENTS).replace('`', "'");
                    format!("⚙ `{} {arguments}`", call.tool)
                })
                .collect(),
        };
        if !lines.is_empty() {
            self.murmur(counted(lines));
        }
    }
}

/// The lines, with a number behind one that stands there several times in a row.
fn counted(lines: Vec<String>) -> String {
    let runs = lines.chunk_by(|one, next| one == next);
    let shown = runs.map(|run| match run.len() {
        1 => run[0].clone(),
        times => format!("{} (×{times})", run[0]),
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_repeats_is_counted() {
        let lines = ["a", "a", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(counted(lines), "a (×2)\nb\na");
    }
}
