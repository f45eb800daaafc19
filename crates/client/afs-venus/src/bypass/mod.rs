//! Files that bypass the disk cache (CITI TR 01-3, section 5): which ones, and the memory through which their bytes pass.
//!
//! Nothing here makes calls or moves bytes. The rules say of a file whether it bypasses the cache, a [`Run`] recognises a sequential
//! reader, and the [`Windows`] hold what open files have fetched, within one bound for all of them. Who reads claims a range of its
//! window, fetches it and fills it in. No lock is held meanwhile: a reader never waits for a range that it does not need.

mod rules;
mod run;
mod slots;
mod windows;

pub(crate) use rules::{File, Verdict, judge};
pub(crate) use run::Run;
pub(crate) use windows::{Claim, Found, Window, Windows};

#[cfg(test)]
mod tests;
