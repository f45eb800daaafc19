//! The retry ladder: what to do after each outcome of a call to the sites of a volume.
//!
//! A pure function from state and outcome to the next step: it neither calls nor waits, so a table can test it.
//! Source: docs/protocol/client.md "4. Choosing servers", docs/protocol/fileserver.md "14. Cache-manager side rules".

mod ladder;
mod outcome;
mod sites;
mod step;

pub use ladder::Ladder;
pub use outcome::{Outcome, marks_down};
pub use step::{RetryLimits, Step};

#[cfg(test)]
mod tests;
