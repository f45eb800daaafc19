//! Retry ladder: the next step after each outcome of a call to the sites of a volume.
//!
//! A pure function of state and outcome: it neither calls nor waits, so that it can be tested as a table.
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
