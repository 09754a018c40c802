//! An audio server as OpenAI documents it: writes down recordings, speaks words, and refuses what does
//! not look as it should.

use serde_json::json;

use crate::scripted::{Fault, Reply, Request, Scripted};

/// The key that it wants to see.
pub const KEY: &str = "sk-audio-test";

/// What it answers in place of sound: how Ogg begins, then the words.
pub const SOUND: &[u8] = b"OggS\0";

/// An audio server on this machine. What is said in a recording are its bytes after [`SOUND`].
pub struct AudioServer(Scripted);

impl AudioServer {
    /// Opens it on a free port.
    pub async fn open() -> Self {
        Self(Scripted::listen(answer).await)
    }

    /// What to configure as `base_url`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.0.url())
    }

    /// The next request meets this.
    pub fn fault(&self, fault: Fault) {
        self.0.fault("/audio/", fault);
    }

    /// The fields of each request to write something down, in order: name, file name, media type,
    /// value.
    pub fn transcribed(&self) -> Vec<Vec<Field>> {
        self.0.requests_to("/audio/transcriptions").iter().filter_map(form).collect()
    }

    /// The body of each request to speak, in order.
    pub fn spoken(&self) -> Vec<serde_json::Value> {
        self.0.requests_to("/audio/speech").iter().map(Request::json).collect()
    }
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The name of the file, if it is one.
    pub file: Option<String>,
    /// Its media type, where it says one.
    pub mime: Option<String>,
    /// What it holds.
    pub value: Vec<u8>,
}

fn answer(request: &Request) -> Reply {
    if request.header("authorization") != Some(&format!("Bearer {KEY}")) {
        return problem(401, "Incorrect API key provided");
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/audio/transcriptions") => transcribe(request),
        ("POST", "/v1/audio/speech") => speak(request),
        _ => problem(404, "Invalid URL"),
    }
}

fn transcribe(request: &Request) -> Reply {
    let Some(fields) = form(request) else { return problem(400, "Could not parse multipart form") };
    let named = |name: &str| fields.iter().find(|field| field.name == name);
    let (Some(file), Some(model)) = (named("file"), named("model")) else {
        return problem(400, "you must provide a file and a model");
    };
    let known = ["flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm"];
    let ending = file.file.as_deref().and_then(|name| name.rsplit_once('.'));
    if model.value.is_empty() || !ending.is_some_and(|(_, ending)| known.contains(&ending)) {
        return problem(400, "Unrecognized file format");
    }
    let words = file.value.strip_prefix(SOUND).unwrap_or(&file.value);
    Reply::json(&json!({ "text": String::from_utf8_lossy(words) }))
}

fn speak(request: &Request) -> Reply {
    let asked = request.json();
    let text = |name: &str| asked[name].as_str().filter(|value| !value.is_empty());
    let (Some(_), Some(_), Some(input)) = (text("model"), text("voice"), text("input")) else {
        return problem(400, "Missing required parameter");
    };
    if input.chars().count() > 4096 {
        return problem(400, "string too long: at most 4096 characters");
    }
    Reply::status(200, [SOUND, input.as_bytes()].concat()).with("content-type", "audio/ogg")
}

fn problem(status: u16, message: &str) -> Reply {
    let body = json!({ "error": { "message": message, "type": "invalid_request_error" } });
    Reply::status(status, body.to_string()).with("content-type", "application/json")
}

/// The fields of `multipart/form-data`, by RFC 7578.
fn form(request: &Request) -> Option<Vec<Field>> {
    let kind = request.header("content-type")?;
    let boundary = kind.strip_prefix("multipart/form-data; boundary=")?;
    let mark = format!("\r\n--{boundary}");
    let body = [b"\r\n", request.body.as_slice()].concat();
    let mut places = find(&body, mark.as_bytes());
    places.pop().filter(|last| body[last + mark.len()..].starts_with(b"--"))?;
    let ends = find(&body, mark.as_bytes());
    places
        .iter()
        .zip(&ends[1..])
        .map(|(begin, end)| {
            let part = body[begin + mark.len()..*end].strip_prefix(b"\r\n")?;
            let head = *find(part, b"\r\n\r\n").first()?;
            let (head, value) = (std::str::from_utf8(&part[..head]).ok()?, &part[head + 4..]);
            let header = |name: &str| {
                head.lines().find_map(|line| {
                    let (found, value) = line.split_once(':')?;
                    found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
                })
            };
            let disposition = header("content-disposition")?;
            let quoted = |name: &str| {
                let (_, rest) = disposition.split_once(&format!("; {name}=\""))?;
                Some(rest.split_once('"')?.0.to_owned())
            };
            Some(Field {
                name: quoted("name")?,
                file: quoted("filename"),
                mime: header("content-type"),
                value: value.to_vec(),
            })
        })
        .collect()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let found = bytes.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted);
    found.map(|(place, _)| place).collect()
}
