//! Text for a terminal, without what would command it: control characters, which servers, volumes and other users may have put into names
//! and messages, are shown as escapes.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal, or the order in which it shows text, is changed by a character. Lines and tabs are left.
fn commands(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        // Marks, overrides and isolates of the direction of text.
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text whose control characters are escapes, such as `\u{1b}`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match commands(c) {
            // Writing to a string does not fail.
            true => drop(write!(shown, "{}", c.escape_unicode())),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_shown_and_all_else_is_as_it_is() {
        for text in ["", "a\tb\nc", "Ünïcode – 名前"] {
            assert!(matches!(plain(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(plain("\x1b]0;title\x07 \x1b[2J"), "\\u{1b}]0;title\\u{7} \\u{1b}[2J");
        assert_eq!(plain("a\rb\u{9b}31m\u{202e}c\x7f"), "a\\u{d}b\\u{9b}31m\\u{202e}c\\u{7f}");
    }
}
