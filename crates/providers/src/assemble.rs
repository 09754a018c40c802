//! Tool calls from the pieces in which they arrive.
//!
//! Servers number the calls, or name them, or both; some repeat the id with every piece, some give
//! every call the number zero, some send a whole call at once and its arguments as an object. A call
//! comes out only when its arguments are one complete JSON object.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use talaria_agent::ProviderError;
use talaria_model::{CallId, ToolCall};

/// The most calls one answer may make.
pub const MOST_CALLS: usize = 128;

/// The most bytes of arguments in one answer, all calls together.
pub const LARGEST_ARGUMENTS: usize = 1024 * 1024;

/// A piece of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// Which call it belongs to, counted by the server.
    pub index: Option<u64>,
    /// The server's name for the call. An empty one counts as none.
    pub id: Option<String>,
    /// The tool. An empty one counts as none.
    pub tool: Option<String>,
    /// What it adds to the arguments.
    pub arguments: Arguments,
    /// JSON that the server wants to see again with this call.
    pub note: Option<String>,
}

/// What a piece adds to a call's arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Arguments {
    /// Nothing.
    #[default]
    Nothing,
    /// More of the text.
    Text(String),
    /// All of it, as JSON.
    Whole(String),
}

/// How the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model was done.
    Done,
    /// It ran into a limit, so that a call without arguments may be one whose arguments are missing.
    CutShort,
}

/// A call that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complete {
    /// The call.
    pub call: ToolCall,
    /// JSON that the server wants to see again with it.
    pub note: Option<String>,
}

/// The calls of one answer while it arrives.
#[derive(Debug, Default)]
pub struct Assembly {
    calls: Vec<Partial>,
    size: usize,
}

#[derive(Debug, Default)]
struct Partial {
    index: Option<u64>,
    id: Option<String>,
    tool: String,
    arguments: String,
    note: Option<String>,
}

impl Assembly {
    /// Takes the next piece.
    pub fn add(&mut self, piece: Piece) -> Result<(), ProviderError> {
        let id = piece.id.filter(|id| !id.is_empty());
        let tool = piece.tool.filter(|tool| !tool.is_empty());
        let belongs = self.find(piece.index, id.as_deref(), tool.as_deref(), &piece.arguments);
        let at = match belongs {
            Some(at) => at,
            None if self.calls.len() == MOST_CALLS => {
                return Err(garbled(format!("more than {MOST_CALLS} tool calls at once")));
            }
            None => {
                self.calls.push(Partial::default());
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        call.index = call.index.or(piece.index);
        if call.id.is_none() {
            call.id = id;
        }
        if let (true, Some(tool)) = (call.tool.is_empty(), tool) {
            call.tool = tool;
        }
        call.note = piece.note.or(call.note.take());
        let before = call.arguments.len();
        match piece.arguments {
            Arguments::Nothing => {}
            Arguments::Text(text) => call.arguments.push_str(&text),
            Arguments::Whole(json) => call.arguments = json,
        }
        self.size = self.size + call.arguments.len() - before;
        if self.size > LARGEST_ARGUMENTS {
            return Err(garbled(format!("more than {LARGEST_ARGUMENTS} bytes of tool arguments")));
        }
        Ok(())
    }

    /// Whether nothing was called.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The call that a piece continues; none when it begins one.
    fn find(
        &self,
        index: Option<u64>,
        id: Option<&str>,
        tool: Option<&str>,
        arguments: &Arguments,
    ) -> Option<usize> {
        let found = match (index, id) {
            (Some(_), _) => self.calls.iter().rposition(|call| call.index == index)?,
            (None, Some(id)) => self.calls.iter().rposition(|call| call.is_named(id))?,
            (None, None) => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[found];
        // Some servers give every call the same number: what differs then is the id, or failing that
        // a name and fresh arguments although the last ones were complete.
        let other_id = matches!((id, &call.id), (Some(new), Some(old)) if new != old);
        let other_tool = tool.is_some_and(|tool| !call.tool.is_empty() && tool != call.tool);
        let fresh = tool.is_some()
            && !id.is_some_and(|id| call.is_named(id))
            && arguments.begin_an_object()
            && is_object(&call.arguments);
        (!other_id && !other_tool && !fresh).then_some(found)
    }

    /// The complete calls, in the order in which they began. An id that is missing, unusable, in
    /// `taken` or used twice is replaced: by itself with a number behind it, or by what `mint` makes.
    pub fn finish(
        self,
        ending: Ending,
        mut taken: BTreeSet<String>,
        mut mint: impl FnMut() -> String,
    ) -> Result<Vec<Complete>, ProviderError> {
        let mut complete = Vec::with_capacity(self.calls.len());
        for call in self.calls {
            if call.tool.is_empty() {
                return Err(garbled("a tool call that names no tool".to_owned()));
            }
            let arguments = match call.arguments.trim() {
                // Servers write a call without arguments as nothing or as `null`.
                "" | "null" if ending == Ending::Done => "{}",
                text if is_object(text) => text,
                _ => return Err(ProviderError::TruncatedCall { tool: call.tool }),
            };
            let id = distinct(call.id, &mut taken, &mut mint);
            let arguments = arguments.to_owned();
            complete.push(Complete {
                call: ToolCall { id, tool: call.tool, arguments },
                note: call.note,
            });
        }
        Ok(complete)
    }
}

impl Partial {
    fn is_named(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
    }
}

impl Arguments {
    fn begin_an_object(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Text(text) | Self::Whole(text) => text.trim_start().starts_with('{'),
        }
    }
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn distinct(
    id: Option<String>,
    taken: &mut BTreeSet<String>,
    mint: &mut impl FnMut() -> String,
) -> CallId {
    let given = id.filter(|id| CallId::new(id.as_str()).is_ok());
    let tries = given.iter().cloned().chain(
        given.iter().flat_map(|id| (2..MOST_CALLS * 2).map(move |number| format!("{id}-{number}"))),
    );
    for candidate in tries.chain(std::iter::repeat_with(mint)) {
        if taken.contains(&candidate) {
            continue;
        }
        if let Ok(id) = CallId::new(candidate.as_str()) {
            taken.insert(candidate);
            return id;
        }
    }
    unreachable!("minting never ends")
}

fn garbled(detail: String) -> ProviderError {
    ProviderError::Garbled { detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(
        index: impl Into<Option<u64>>,
        id: &str,
        tool: &str,
        arguments: impl Into<Option<&'static str>>,
    ) -> Piece {
        Piece {
            index: index.into(),
            id: Some(id.to_owned()),
            tool: Some(tool.to_owned()),
            arguments: arguments
                .into()
                .map_or(Arguments::Nothing, |text| Arguments::Text(text.to_owned())),
            note: None,
        }
    }

    fn assemble(pieces: Vec<Piece>) -> Result<Vec<ToolCall>, ProviderError> {
        let mut assembly = Assembly::default();
        for piece in pieces {
            assembly.add(piece)?;
        }
        let mut minted = 0;
        let complete = assembly.finish(Ending::Done, BTreeSet::new(), || {
            minted += 1;
            format!("minted{minted}")
        })?;
        Ok(complete.into_iter().map(|complete| complete.call).collect())
    }

    #[track_caller]
    fn check(pieces: Vec<Piece>, expect: &[&str]) {
        let calls = assemble(pieces).unwrap();
        let calls: Vec<_> = calls
            .iter()
            .map(|call| format!("{} {} {}", call.id, call.tool, call.arguments))
            .collect();
        assert_eq!(calls, expect);
    }

    #[test]
    fn pieces_are_joined_by_their_number() {
        check(
            vec![
                piece(0, "a", "look", ""),
                piece(1, "b", "find", "{\"x\""),
                piece(0, "", "", "{}"),
                piece(1, "", "", ":1}"),
            ],
            &["a look {}", "b find {\"x\":1}"],
        );
    }

    #[test]
    fn pieces_are_joined_by_their_id_when_they_have_no_number() {
        check(
            vec![
                piece(None, "a", "look", "{\"x\""),
                piece(None, "b", "find", "{}"),
                piece(None, "a", "look", ":1}"),
            ],
            &["a look {\"x\":1}", "b find {}"],
        );
    }

    #[test]
    fn pieces_without_number_and_id_go_to_the_last_call() {
        check(
            vec![piece(None, "a", "look", "{\"x\""), piece(None, "", "", ":1}")],
            &["a look {\"x\":1}"],
        );
    }

    #[test]
    fn whole_calls_that_all_have_the_number_zero_are_kept_apart() {
        check(
            vec![piece(0, "a", "look", "{}"), piece(0, "b", "look", "{}")],
            &["a look {}", "b look {}"],
        );
        check(
            vec![piece(0, "", "look", "{}"), piece(0, "", "look", "{\"x\":1}")],
            &["minted1 look {}", "minted2 look {\"x\":1}"],
        );
        check(
            vec![piece(0, "", "look", ""), piece(0, "", "find", "")],
            &["minted1 look {}", "minted2 find {}"],
        );
    }

    #[test]
    fn a_name_and_an_id_that_are_repeated_change_nothing() {
        check(
            vec![
                piece(0, "a", "look", "{\"x\""),
                piece(0, "a", "look", ":1"),
                piece(0, "a", "look", "}"),
                piece(0, "a", "look", ""),
            ],
            &["a look {\"x\":1}"],
        );
    }

    #[test]
    fn arguments_may_come_as_an_object() {
        let whole = Arguments::Whole("{\"x\":1}".to_owned());
        check(
            vec![Piece { arguments: whole, ..piece(0, "a", "look", None) }],
            &["a look {\"x\":1}"],
        );
    }

    #[test]
    fn a_call_without_arguments_has_empty_ones() {
        check(vec![piece(0, "a", "look", None)], &["a look {}"]);
        check(vec![piece(0, "a", "look", " \n")], &["a look {}"]);
        check(vec![piece(0, "a", "look", "null")], &["a look {}"]);
    }

    #[test]
    fn a_call_without_arguments_is_not_trusted_when_the_answer_was_cut_short() {
        let mut assembly = Assembly::default();
        assembly.add(piece(0, "a", "look", "")).unwrap();
        assert_eq!(
            assembly.finish(Ending::CutShort, BTreeSet::new(), String::new),
            Err(ProviderError::TruncatedCall { tool: "look".to_owned() })
        );
    }

    #[test]
    fn ids_are_made_distinct_and_missing_ones_are_minted() {
        check(
            vec![
                piece(0, "a", "look", "{}"),
                piece(1, "a", "look", "{}"),
                piece(2, "", "look", "{}"),
                piece(3, "bad\nid", "look", "{}"),
            ],
            &["a look {}", "a-2 look {}", "minted1 look {}", "minted2 look {}"],
        );
    }

    #[test]
    fn an_id_that_the_conversation_already_used_is_replaced() {
        let mut assembly = Assembly::default();
        assembly.add(piece(0, "call_0", "look", "{}")).unwrap();
        let taken = BTreeSet::from(["call_0".to_owned(), "call_0-2".to_owned()]);
        let calls = assembly.finish(Ending::Done, taken, String::new).unwrap();
        assert_eq!(calls[0].call.id.as_str(), "call_0-3");
    }

    #[test]
    fn arguments_that_are_not_one_complete_object_make_no_call() {
        for arguments in ["{", "{\"x\":", "{\"x\":1", "[]", "\"x\"", "1", "{} {}", "{}}", "{x:1}"] {
            assert_eq!(
                assemble(vec![piece(0, "a", "look", arguments)]),
                Err(ProviderError::TruncatedCall { tool: "look".to_owned() }),
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_call_that_names_no_tool_is_garbage() {
        let outcome = assemble(vec![piece(0, "a", "", "{}")]);
        assert!(matches!(outcome, Err(ProviderError::Garbled { .. })), "{outcome:?}");
    }

    #[test]
    fn calls_and_arguments_have_a_limit() {
        let calls = |count| (0..count).map(|n| piece(n, "", "look", "{}")).collect();
        assert_eq!(assemble(calls(128)).unwrap().len(), 128);
        assert!(matches!(assemble(calls(129)), Err(ProviderError::Garbled { .. })));
        let large = Arguments::Text("x".repeat(LARGEST_ARGUMENTS / 2 + 1));
        let piece = Piece { arguments: large, ..piece(0, "a", "look", None) };
        assert!(matches!(assemble(vec![piece.clone(), piece]), Err(ProviderError::Garbled { .. })));
    }

    #[derive(Debug, Clone, Copy)]
    enum Habit {
        Number,
        NumberAndIdEveryTime,
        IdOnly,
        OneAfterTheOther,
    }

    fn habit() -> impl Strategy<Value = Habit> {
        prop_oneof![
            Just(Habit::Number),
            Just(Habit::NumberAndIdEveryTime),
            Just(Habit::IdOnly),
            Just(Habit::OneAfterTheOther),
        ]
    }

    fn arguments() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<i32>().prop_map(serde_json::Value::from),
            "[a-z{}\"\\\\é😀]{0,8}".prop_map(serde_json::Value::from),
        ];
        let value = leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(serde_json::Value::from),
                proptest::collection::btree_map("[a-z]{1,4}", inner, 0..3)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        });
        proptest::collection::btree_map("[a-z]{1,4}", value, 0..3)
            .prop_map(|map| serde_json::Value::Object(map.into_iter().collect()).to_string())
    }

    /// The pieces of each call, then all of them in an order that keeps each call's own.
    fn pieces(
        calls: &[String],
        habit: Habit,
        cuts: &[proptest::sample::Index],
        order: &[proptest::sample::Index],
    ) -> Vec<Piece> {
        let mut queues: Vec<std::collections::VecDeque<Piece>> = Vec::new();
        for (number, arguments) in calls.iter().enumerate() {
            let mut at: Vec<_> = cuts
                .iter()
                .map(|cut| arguments.floor_char_boundary(cut.index(arguments.len() + 1)))
                .chain([0, arguments.len()])
                .collect();
            at.sort_unstable();
            let queue = at.windows(2).enumerate().map(|(part, cut)| {
                let first = part == 0;
                let id = format!("id{number}");
                let names_itself =
                    first || matches!(habit, Habit::NumberAndIdEveryTime | Habit::IdOnly);
                let counts = matches!(habit, Habit::Number | Habit::NumberAndIdEveryTime);
                Piece {
                    index: counts.then_some(number as u64),
                    id: names_itself.then_some(id),
                    tool: first.then(|| format!("tool{number}")),
                    arguments: Arguments::Text(arguments[cut[0]..cut[1]].to_owned()),
                    note: None,
                }
            });
            queues.push(queue.collect());
        }
        let mut mixed = Vec::new();
        let mut order = order.iter().cycle();
        // Calls begin in their own order; after that their pieces mix.
        if !matches!(habit, Habit::OneAfterTheOther) {
            mixed.extend(queues.iter_mut().filter_map(std::collections::VecDeque::pop_front));
            while queues.iter().any(|queue| !queue.is_empty()) {
                let open: Vec<_> = (0..queues.len()).filter(|at| !queues[*at].is_empty()).collect();
                let at = order.next().map_or(0, |index| index.index(open.len()));
                mixed.extend(queues[open[at]].pop_front());
            }
        }
        mixed.extend(queues.into_iter().flatten());
        mixed
    }

    proptest! {
        #[test]
        fn how_the_calls_are_cut_and_mixed_makes_no_difference(
            calls in proptest::collection::vec(arguments(), 1..5),
            habit in habit(),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
            order in proptest::collection::vec(any::<proptest::sample::Index>(), 1..8),
        ) {
            let expect: Vec<_> = calls.iter().enumerate().map(|(number, arguments)| ToolCall {
                id: CallId::new(format!("id{number}")).unwrap(),
                tool: format!("tool{number}"),
                arguments: arguments.clone(),
            }).collect();
            prop_assert_eq!(assemble(pieces(&calls, habit, &cuts, &order)), Ok(expect));
        }

        #[test]
        fn truncated_arguments_never_become_a_call(
            arguments in arguments(),
            habit in habit(),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
            end in any::<proptest::sample::Index>(),
        ) {
            let kept = arguments.floor_char_boundary(1 + end.index(arguments.len() - 1));
            let truncated = vec![arguments[..kept.max(1)].to_owned()];
            prop_assert_eq!(
                assemble(pieces(&truncated, habit, &cuts, &[])),
                Err(ProviderError::TruncatedCall { tool: "tool0".to_owned() })
            );
        }
    }
}
