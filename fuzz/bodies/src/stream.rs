//! Event streams, cut anywhere.

use talaria_providers::sse::{Event, LARGEST_EVENT, LONGEST_LINE, Parser, SseError};

use crate::bytes::Bytes;

type Read = (Vec<Event>, Option<SseError>);

pub(crate) fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let is_long = bytes.byte() == 0xff;
    let cuts: Vec<u8> = bytes.some().to_vec();
    let stream = if is_long {
        let piece = bytes.rest();
        piece
            .iter()
            .copied()
            .cycle()
            .take(piece.len().min(1) * (LONGEST_LINE + 64 * 1024))
            .collect()
    } else {
        bytes.rest().to_vec()
    };
    let whole = read(&[&stream]);
    assert!(
        whole.0.iter().all(|event| event.data.len() <= 3 * LARGEST_EVENT),
        "an event has no bound"
    );
    assert_eq!(whole, reference(&stream), "not what the standard says");
    let mut pieces = Vec::new();
    let mut rest = stream.as_slice();
    for cut in cuts {
        let (piece, after) = rest.split_at(usize::from(cut).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    assert_eq!(read(&pieces), whole, "cut into {} pieces it reads differently", pieces.len());
    if stream.len() < 64 * 1024 {
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&single), whole, "byte by byte it reads differently");
    }
}

fn read(pieces: &[&[u8]]) -> Read {
    let mut parser = Parser::default();
    let mut events = Vec::new();
    let mut failed = None;
    for piece in pieces {
        failed = failed.or(parser.feed(piece, &mut events).err());
    }
    (events, failed)
}

/// The grammar of the standard on the whole stream at once, without regard for memory.
fn reference(stream: &[u8]) -> Read {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut events = Vec::new();
    let (mut name, mut data) = (String::new(), None::<String>);
    let mut rest = stream;
    let is_first_cut = |line: &[u8]| line.len() > LONGEST_LINE;
    loop {
        let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
            // What is not ended never happened, and must not be kept without bound either.
            return (events, is_first_cut(rest).then_some(SseError::LineTooLong));
        };
        let line = &rest[..end];
        rest = match &rest[end..] {
            [b'\r', b'\n', after @ ..] | [_, after @ ..] => after,
            [] => &[],
        };
        if is_first_cut(line) {
            return (events, Some(SseError::LineTooLong));
        }
        if line.is_empty() {
            let name = std::mem::take(&mut name);
            events.extend(data.take().map(|data| Event { name, data }));
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" if data.as_ref().map_or(0, String::len) + value.len() >= LARGEST_EVENT => {
                return (events, Some(SseError::EventTooLarge));
            }
            b"data" => {
                let value = String::from_utf8_lossy(value);
                match &mut data {
                    Some(data) => data.extend(["\n", &value]),
                    None => data = Some(value.into_owned()),
                }
            }
            b"event" => name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
    }
}
