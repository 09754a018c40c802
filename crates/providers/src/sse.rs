//! Server-sent events from bytes that arrive in any pieces.
//!
//! Follows the event stream grammar of the HTML standard: lines end in CR, LF or CRLF, a leading
//! byte order mark is skipped, lines that begin with a colon are comments, several `data` lines make
//! one event, and an event that is not closed by an empty line never happened. Knows nothing of what
//! the events mean.

/// The longest line that is read; a longer one is an error.
pub const LONGEST_LINE: usize = 1024 * 1024;

/// The most data one event may carry; more is an error.
pub const LARGEST_EVENT: usize = 4 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What the stream calls it; empty when it has no name.
    pub name: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
}

/// Why a stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line does not end.
    #[error("a line of the event stream is longer than {LONGEST_LINE} bytes")]
    LineTooLong,
    /// An event does not end.
    #[error("an event of the stream is larger than {LARGEST_EVENT} bytes")]
    EventTooLarge,
}

/// Reads events out of a stream, however it was cut into pieces. What it yields, and where it fails,
/// depends only on the bytes.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    name: String,
    data: Option<String>,
    ended_in_cr: bool,
    past_first_line: bool,
    failed: Option<SseError>,
}

impl Parser {
    /// Takes the next bytes and appends the events that they complete to `events`. After an error the
    /// stream stays failed.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), SseError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        while !bytes.is_empty() {
            if std::mem::take(&mut self.ended_in_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() > LONGEST_LINE {
                return self.fail(SseError::LineTooLong);
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.ended_in_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(events)?;
        }
        Ok(())
    }

    fn fail(&mut self, error: SseError) -> Result<(), SseError> {
        self.failed = Some(error);
        Err(error)
    }

    fn end_line(&mut self, events: &mut Vec<Event>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if !std::mem::replace(&mut self.past_first_line, true) {
            text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        }
        let outcome = self.take_line(text, events);
        // The buffer goes back so that a long stream does not allocate for every line.
        self.line = line;
        self.line.clear();
        outcome
    }

    fn take_line(&mut self, line: &[u8], events: &mut Vec<Event>) -> Result<(), SseError> {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if let Some(data) = self.data.take() {
                events.push(Event { name, data });
            }
            return Ok(());
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(0) => return Ok(()),
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                let held = self.data.as_ref().map_or(0, String::len);
                if held + value.len() >= LARGEST_EVENT {
                    return self.fail(SseError::EventTooLarge);
                }
                let value = String::from_utf8_lossy(value);
                match &mut self.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(&value);
                    }
                    None => self.data = Some(value.into_owned()),
                }
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> (Vec<(String, String)>, Option<SseError>) {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        let mut failed = None;
        for piece in pieces {
            if let Err(error) = parser.feed(piece, &mut events) {
                failed = Some(error);
            }
        }
        (events.into_iter().map(|event| (event.name, event.data)).collect(), failed)
    }

    fn check(stream: &str, expect: &[(&str, &str)]) {
        let expect: Vec<_> =
            expect.iter().map(|(name, data)| (name.to_string(), data.to_string())).collect();
        assert_eq!(read(&[stream.as_bytes()]), (expect, None), "{stream:?}");
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        check("data: a\n\n", &[("", "a")]);
        check("data:a\r\n\r\n", &[("", "a")]);
        check("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check("event: ping\ndata: {}\n\n", &[("ping", "{}")]);
        check("data: a\ndata:  b\n\n", &[("", "a\n b")]);
        check("data\n\n", &[("", "")]);
        check("data\ndata\n\n", &[("", "\n")]);
        check(": comment\n\n:\ndata: a\n\n", &[("", "a")]);
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("id: 7\nretry: 10\nunknown: x\ndata: a\n\n", &[("", "a")]);
        check("\n\n\ndata: a\n\n\n", &[("", "a")]);
    }

    #[test]
    fn a_name_without_data_is_forgotten() {
        check("event: lost\n\ndata: a\n\n", &[("", "a")]);
    }

    #[test]
    fn an_event_that_is_not_closed_never_happened() {
        check("data: a\n\ndata: b\n", &[("", "a")]);
        check("data: [DONE]", &[]);
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        let (events, failed) = read(&[b"data: a\xFFb\n\n"]);
        assert_eq!((events, failed), (vec![(String::new(), "a\u{fffd}b".to_owned())], None));
    }

    #[test]
    fn a_line_without_end_is_refused_and_the_stream_stays_refused() {
        let chunk = vec![b'x'; 64 * 1024];
        let mut parser = Parser::default();
        let mut events = Vec::new();
        let fed = (0..17).map(|_| parser.feed(&chunk, &mut events)).collect::<Vec<_>>();
        assert_eq!(fed[..16].iter().filter(|fed| fed.is_err()).count(), 0);
        assert_eq!(fed[16], Err(SseError::LineTooLong));
        assert_eq!(parser.feed(b"\n\ndata: a\n\n", &mut events), Err(SseError::LineTooLong));
        assert!(events.is_empty());
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let line = [b"data: ".as_slice(), &vec![b'x'; 1_000_000], b"\n"].concat();
        let (_, failed) = read(&[&line, &line, &line, &line, &line]);
        assert_eq!(failed, Some(SseError::EventTooLarge));
    }

    /// Streams that look like streams, with every kind of line end and some garbage.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"data".to_vec()),
            Just(b"event: delta".to_vec()),
            Just(b": keep-alive".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n\n".to_vec()),
            Just("{\"text\":\"héllo 😀\"}".as_bytes().to_vec()),
            Just(b"\xEF\xBB\xBF".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn where_the_stream_is_cut_makes_no_difference(
            bytes in stream(),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[&bytes]));
            let single: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(read(&single), read(&[&bytes]));
        }
    }
}
