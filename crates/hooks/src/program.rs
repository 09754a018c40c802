//! A hook that is run once for every event.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use talaria_clock::Clock;
use talaria_machine::Started;
use tokio::io::AsyncWriteExt;

use crate::running::{begin, command, complaints, last_line};
use crate::{Call, Ears, Hook, HookError, LONGEST_ANSWER, manifest};

/// How many processes one hook has at once for what nobody waits for, and for what somebody does.
const TOLD_AT_ONCE: usize = 2;
const ASKED_AT_ONCE: usize = 8;

pub(crate) async fn serve(hook: &Arc<Hook>, ears: &mut Ears, clock: Arc<dyn Clock>) {
    let mut told = FuturesUnordered::new();
    let mut asked = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(call) = ears.asked.recv(), if asked.len() < ASKED_AT_ONCE => {
                match call.listener.is_gone() {
                    true => hook.pass_over(call),
                    false => asked.push(hear(hook, call, clock.as_ref())),
                }
            }
            Some(()) = asked.next(), if !asked.is_empty() => {}
            Some(call) = ears.told.recv(), if told.len() < TOLD_AT_ONCE => {
                told.push(hear(hook, call, clock.as_ref()));
            }
            Some(()) = told.next(), if !told.is_empty() => {}
            else => return,
        }
    }
}

async fn hear(hook: &Hook, call: Call, clock: &dyn Clock) {
    let answer = tokio::select! {
        biased;
        answer = run(hook, &call) => answer,
        () = clock.sleep(call.limit) => Err(HookError::Late),
    };
    hook.settle(call, answer, clock);
}

async fn run(hook: &Hook, call: &Call) -> Result<Value, HookError> {
    let failed = |error: std::io::Error| HookError::Failed(format!("it cannot be run: {error}"));
    let name = manifest::word(&call.event);
    let mut command = command(hook.handler.path(), &hook.folder, &hook.name);
    command.arg(name).env("TALARIA_EVENT", name);
    let mut running = Started::start(command).map_err(failed)?;
    let (stdin, stdout, stderr) = (running.stdin(), running.stdout(), running.stderr());
    let line = call.line.clone();
    let tell = async move {
        if let Some(mut stdin) = stdin {
            // One that does not want to hear it all has its reasons.
            let _ = stdin.write_all(line.as_bytes()).await;
        }
    };
    // What it leaves running keeps the pipes open, so its own end is the end of what it says.
    let said = async { tokio::join!(begin(stdout, LONGEST_ANSWER + 1), complaints(stderr), tell) };
    tokio::pin!(said);
    let (status, (answer, complaints, ())) = tokio::select! {
        said = &mut said => {
            let status = running.wait().await;
            running.end();
            (status, said)
        }
        status = running.wait() => {
            running.end();
            (status, said.await)
        }
    };
    let status = status.map_err(failed)?;
    if !status.success() {
        let line = last_line(&complaints);
        let why = if line.is_empty() { String::new() } else { format!(": {line}") };
        return Err(HookError::Failed(format!("it ended with {status}{why}")));
    }
    if answer.len() > LONGEST_ANSWER {
        return Err(HookError::Garbled(format!("it is longer than {LONGEST_ANSWER} bytes")));
    }
    if answer.trim_ascii().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&answer).map_err(|error| HookError::Garbled(error.to_string()))
}
