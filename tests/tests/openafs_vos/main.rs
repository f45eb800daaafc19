//! Every word of OpenAFS's `vos` on a cell of ours with two hosts. What a word says is read, and what it moves is read back
//! through a mount of ours: contents, modes, owners, times, links, access lists, quotas and file numbers.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod clones;
mod moving;
mod streams;
mod tables;

use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::pair::Pair;

/// The ground of one test, where there is what it needs.
fn pair(name: &'static str) -> Option<Pair> {
    all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]).then(|| Pair::new(name, NUMBER))
}

const NUMBER: u8 = 20;
