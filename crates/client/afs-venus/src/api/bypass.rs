//! A user's request whether a file bypasses the disk cache.

use std::fmt;

/// A request for one file (`andrew fs bypass`). The words `auto`, `on` and `off` stand for it outside.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum BypassRequest {
    /// Names, length and the way in which the file is read decide.
    #[default]
    Auto,
    /// It bypasses the cache.
    On,
    /// It is cached.
    Off,
}

impl BypassRequest {
    const ALL: [BypassRequest; 3] = [BypassRequest::Auto, BypassRequest::On, BypassRequest::Off];

    /// The request that a word stands for.
    pub fn of_word(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|request| request.word().as_bytes() == word)
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            BypassRequest::Auto => "auto",
            BypassRequest::On => "on",
            BypassRequest::Off => "off",
        }
    }
}

impl fmt::Display for BypassRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
