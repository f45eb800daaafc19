//! Residency: what stays in the cache of a file or directory, in order; a greater one stays longer.

/// What stays in the cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Residency {
    /// Nothing, except while the file is open for writing here.
    Past,
    /// What was used last, without the bytes that a long sequential reader reads.
    #[default]
    Cached,
    /// What was used last, with the bytes that a long sequential reader reads.
    Always,
    /// All of it.
    Kept,
    /// All of it, and what is needed to read it while no server replies.
    Offline,
}

impl Residency {
    /// Whether nothing evicts it.
    pub fn is_kept(self) -> bool {
        self >= Residency::Kept
    }
}
