//! How much trouble a call is worth.

/// What a call does about servers that are away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// It waits for a server that was there until just now.
    Patient,
    /// It waits for no server that is away: nobody waits for it, or much else does.
    Hasty,
    /// Likewise, and it is not made again after an attempt that may have been carried out.
    Once,
}
