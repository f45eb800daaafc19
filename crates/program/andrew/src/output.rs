//! Output of commands on standard output: text, or JSON.

use crate::plain::plain;
use serde::{Serialize, Serializer};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prints `answer` as one JSON value if `json` is set, otherwise as its text.
///
/// A closed pipe (`andrew ... | head`) is not an error of the command.
pub fn show<A: Serialize + Display>(json: bool, answer: &A) {
    let text = if json {
        serde_json::to_string_pretty(answer).unwrap_or_else(|e| format!("{{\"error\":\"{e}\"}}"))
    } else {
        plain(&answer.to_string()).into_owned()
    };
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.is_empty() && !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Serializes a path. JSON has no bytes: parts that are not UTF-8 are shown as in the text.
pub fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// The same for a list of paths.
pub fn paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_path_that_is_not_utf_8_is_shown_all_the_same() {
        let odd = std::path::Path::new(std::ffi::OsStr::from_bytes(b"a\xffb"));
        let told = super::path(odd, serde_json::value::Serializer);
        assert_eq!(told.unwrap(), serde_json::Value::from("a\u{fffd}b"));
    }
}
