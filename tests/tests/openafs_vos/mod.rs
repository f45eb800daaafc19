//! Every subcommand of OpenAFS's `vos` on an Andrew cell with two hosts. Its output is parsed, and the volumes it moves
//! are read back through an Andrew mount: contents, modes, owners, times, links, access lists, quotas and file numbers.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod clones;
mod moving;
mod streams;
mod tables;

use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::pair::Pair;

/// The pair of hosts of one test, if the machine has what it needs.
fn pair(name: &'static str) -> Option<Pair> {
    all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]).then(|| Pair::new(name, NUMBER))
}

const NUMBER: u8 = 20;
