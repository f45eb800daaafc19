//! OpenAFS's `pts`, `vos` and `bos` with the same command lines on a cell of OpenAFS's servers and on an Andrew cell:
//! their outputs are compared word for word, except for numbers and dates. `docs/differences.md` explains the
//! differences.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod two_cells;

use andrew_tests::live::needs::{Need, all_there};
use two_cells::TwoCells;

#[test]
fn openafs_tools_hear_the_same_from_our_servers_as_from_theirs() {
    if !all_there(&[Need::Root, Need::OpenAfs]) {
        return;
    }
    let both = TwoCells::new("openafs-words");
    let lines = include_str!("lines.txt").lines().map(str::trim);
    let mut wrong = Vec::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (differs, line) = line.strip_prefix("~ ").map_or((false, line), |line| (true, line));
        let [theirs, ours] = both.answers(line);
        if (theirs != ours) != differs {
            wrong.push(format!("== {line}\n-- theirs\n{theirs}\n-- ours\n{ours}"));
        }
    }
    assert!(wrong.is_empty(), "{} lines are not answered as expected:\n{}", wrong.len(), wrong.join("\n"));
}
