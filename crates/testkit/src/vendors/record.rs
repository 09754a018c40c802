//! What vendors were asked for, written down for those who compare it with what the vendors publish.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

/// The variable that names the folder. Without it nothing is written.
const FOLDER: &str = "TALARIA_RECORD";

/// Writes down a request as a line of `<vendor>.jsonl`.
pub(super) fn record(vendor: &str, method: &str, path: &str, query: Value, body: &Value) {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let asked = json!({ "method": method, "path": path, "query": query, "body": body });
    let file = PathBuf::from(folder).join(format!("{vendor}.jsonl"));
    let file = OpenOptions::new().create(true).append(true).open(file);
    // In one piece: other tests write to the same file.
    file.and_then(|mut file| file.write_all(format!("{asked}\n").as_bytes()))
        .expect("the folder that was named takes files");
}
