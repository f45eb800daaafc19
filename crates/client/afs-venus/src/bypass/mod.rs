//! Memory through which the bytes of files pass that bypass the disk cache (CITI TR 01-3, section 5).
//!
//! Nothing here makes calls or moves bytes. A [`Run`] recognises a sequential reader, and the [`Windows`] hold what open files have fetched, within one bound for all of them. Who reads claims a range of its
//! window, fetches it and fills it in. No lock is held meanwhile: a reader never waits for a range that it does not need.

mod run;
mod slots;
mod windows;

pub(crate) use run::Run;
pub(crate) use windows::{Claim, Found, Window, Windows};

#[cfg(test)]
mod tests;
