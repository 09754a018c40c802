//! Tool calls out of pieces.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use talaria_providers::assemble::{
    Arguments, Assembly, Ending, LARGEST_ARGUMENTS, MOST_CALLS, Piece,
};

use crate::bytes::Bytes;

pub(crate) fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    if bytes.byte().is_multiple_of(2) {
        any_pieces(bytes);
    } else {
        one_call_cut_short(bytes);
    }
}

/// Whatever the pieces are: what comes out is whole.
fn any_pieces(mut bytes: Bytes<'_>) {
    let mut assembly = Assembly::default();
    let mut given = String::new();
    while !bytes.is_empty() {
        let has = bytes.byte();
        let piece = Piece {
            index: (has & 1 != 0).then(|| bytes.below(4) as u64),
            id: (has & 2 != 0).then(|| bytes.pick(&["a", "b", "", "bad\nid"]).to_owned()),
            tool: (has & 4 != 0).then(|| bytes.pick(&["look", "find", ""]).to_owned()),
            arguments: match has >> 3 & 3 {
                0 => Arguments::Nothing,
                1 => Arguments::Whole(bytes.words()),
                _ => Arguments::Text(bytes.words()),
            },
            note: None,
        };
        if let Arguments::Text(text) | Arguments::Whole(text) = &piece.arguments {
            given.push_str(text);
        }
        if assembly.add(piece).is_err() {
            return;
        }
    }
    let ending = if given.len().is_multiple_of(2) { Ending::Done } else { Ending::CutShort };
    let Ok(calls) = assembly.finish(ending, BTreeSet::from(["b".to_owned()]), mint()) else {
        return;
    };
    assert!(calls.len() <= MOST_CALLS);
    let size: usize = calls.iter().map(|complete| complete.call.arguments.len()).sum();
    assert!(size <= LARGEST_ARGUMENTS + 2 * calls.len());
    let ids: BTreeSet<&str> = calls.iter().map(|complete| complete.call.id.as_str()).collect();
    assert_eq!(ids.len(), calls.len(), "two calls have one id");
    assert!(!ids.contains("b"), "an id is taken twice");
    for complete in &calls {
        assert!(!complete.call.tool.is_empty());
        let arguments = &complete.call.arguments;
        let whole: Result<Map<String, Value>, _> = serde_json::from_str(arguments);
        assert!(whole.is_ok(), "{arguments:?} is not an object");
        let made_up = arguments == "{}" && ending == Ending::Done;
        // Pieces of several calls come in any order, each call's own in theirs.
        let mut sent = given.chars();
        let was_sent = arguments.chars().all(|c| sent.any(|other| other == c));
        assert!(made_up || was_sent, "{arguments:?} was never sent");
    }
}

/// An object that is cut anywhere but at its end makes no call.
fn one_call_cut_short(mut bytes: Bytes<'_>) {
    let (at, every) = (bytes.below(usize::MAX), 1 + usize::from(bytes.byte()));
    let mut object = Map::new();
    while !bytes.is_empty() && object.len() < 8 {
        let key = bytes.words();
        let value = match bytes.byte() % 4 {
            0 => Value::from(bytes.words()),
            1 => Value::from(i64::from(bytes.byte()) - 100),
            2 => serde_json::json!({ "in": [bytes.words(), null] }),
            _ => Value::Null,
        };
        object.insert(key, value);
    }
    let whole = Value::Object(object).to_string();
    let at = whole.floor_char_boundary(at % (whole.len() + 1));
    let text = &whole[..at];
    let mut assembly = Assembly::default();
    let first = Piece {
        index: Some(0),
        id: Some("a".into()),
        tool: Some("look".into()),
        ..Piece::default()
    };
    assembly.add(first).expect("a name is no burden");
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.ceil_char_boundary(every.min(rest.len()));
        let (piece, after) = rest.split_at(end);
        let arguments = Arguments::Text(piece.to_owned());
        assembly.add(Piece { index: Some(0), arguments, ..Piece::default() }).expect("it is short");
        rest = after;
    }
    let finished = assembly.finish(Ending::CutShort, BTreeSet::new(), mint());
    match finished {
        Ok(calls) => {
            assert_eq!(text, whole, "a call came out of {text:?}");
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].call.arguments, whole);
        }
        Err(error) => assert_ne!(text, whole, "{error}"),
    }
}

fn mint() -> impl FnMut() -> String {
    let mut minted = 0;
    move || {
        minted += 1;
        format!("minted{minted}")
    }
}
