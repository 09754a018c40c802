//! Both wire formats against a server that nobody here wrote, through the whole gateway: a person
//! types into `talaria chat`, and the answer has to come from that server.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::installed;
use crate::stage::{Stage, free_port, wait_for};

/// What the server answers to what. The first that fits is taken.
const FIXTURES: &str = r#"{"fixtures": [
  {"match": {"userMessage": "rate"},
   "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429}},
  {"match": {"userMessage": "remember", "hasToolResult": true},
   "response": {"content": "You never told me your colour."}},
  {"match": {"userMessage": "remember"},
   "response": {"toolCalls": [{"name": "session_search", "arguments": "{\"query\":\"colour\"}"}]}},
  {"match": {"userMessage": "hello"},
   "response": {"content": "Hello from a server that is not ours: **it works**."}}
]}"#;

/// What is typed and what has to come back.
const CONVERSATIONS: &[(&str, &str)] = &[
    ("hello there", "a server that is not ours"),
    ("do you remember my favourite colour?", "never told me your colour"),
    ("please hit the rate limit", "limiting requests"),
];

pub(super) fn run(root: &Path, binary: &Path) -> Result<()> {
    let script = installed::aimock(root)?;
    let port = free_port()?;
    for (wire, base) in [
        ("openai", format!("http://127.0.0.1:{port}/v1")),
        ("anthropic", format!("http://127.0.0.1:{port}")),
    ] {
        let config = format!(
            "model: elsewhere/test-model\n\
             providers:\n  elsewhere:\n    wire: {wire}\n    base_url: {base}\n    api_key: test\n"
        );
        let mut stage = Stage::new(binary, &config)?;
        let fixtures = stage.path().join("fixtures.json");
        fs::write(&fixtures, FIXTURES)?;
        let log = fs::File::create(stage.path().join("aimock.log"))?;
        stage.keep(
            Command::new("node")
                .arg(&script)
                .args(["-p", &port.to_string(), "-f"])
                .arg(&fixtures)
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log),
        )?;
        wait_for("the LLM mock", || TcpStream::connect(("127.0.0.1", port)).ok())?;
        for (typed, expected) in CONVERSATIONS {
            let answer = ask(&stage, typed).with_context(|| format!("{wire}: {typed:?}"))?;
            ensure!(
                answer.contains(expected),
                "{wire}: asked {typed:?}, expected {expected:?}, got {answer:?}"
            );
        }
        eprintln!(
            "real servers: {wire} answered {} times through the gateway",
            CONVERSATIONS.len()
        );
        drop(stage);
        wait_for("the port to be free", || TcpStream::connect(("127.0.0.1", port)).err())?;
    }
    Ok(())
}

fn ask(stage: &Stage, typed: &str) -> Result<String> {
    let output = stage.talaria(&["chat", "--new", typed]).output()?;
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    if answer.trim().is_empty() {
        bail!("no answer; {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(answer)
}
