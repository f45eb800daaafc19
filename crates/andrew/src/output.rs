//! Answers on standard output: text for people, JSON for programs.

use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};

/// Prints `answer` as one JSON value when `json` is set, else as its text.
///
/// A reader that went away (`andrew ... | head`) is not an error of the command.
pub fn show<A: Serialize + Display>(json: bool, answer: &A) {
    let text = if json {
        serde_json::to_string_pretty(answer).unwrap_or_else(|e| format!("{{\"error\":\"{e}\"}}"))
    } else {
        answer.to_string()
    };
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.is_empty() && !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}
