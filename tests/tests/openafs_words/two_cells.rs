//! Two cells with two hosts each, one of OpenAFS's servers and one of Andrew's, that have the same volumes at first.

use std::path::Path;

use andrew_tests::live::cell::CELL;
use andrew_tests::live::exclusive::Exclusive;
use andrew_tests::live::host_server::{HostOptions, HostServer};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::scratch::Scratch;

const THEIRS: u8 = 44;
const OURS: u8 = 45;

/// The two cells.
pub struct TwoCells {
    _two: HostServer,
    _one: HostServer,
    theirs: Hosts,
    ours: Hosts,
    _scratch: Scratch,
    _turn: Exclusive,
}

impl TwoCells {
    pub fn new(name: &'static str) -> Self {
        let turn = Exclusive::take();
        let scratch = Scratch::new(name);
        let theirs = Hosts::with_servers(&scratch.folder("theirs"), THEIRS, CELL);
        empty(&theirs);
        let ours = Hosts::around_our_cell(&scratch.folder("ours"), OURS, CELL);
        ours.host("vice2", 7);
        let (one, two) = (ours.address(5), ours.address(7));
        let alone =
            HostOptions { cell: CELL, listen: &one, databases: &[], key_file: None, partitions: &["a", "b"] };
        let start = |host: &str, options: &HostOptions<'_>| {
            HostServer::start(ours.netns(host), &scratch.path().join(host), options)
        };
        let first = start("vice", &alone);
        let keys = first.keys();
        let second = start(
            "vice2",
            &HostOptions { listen: &two, databases: &[&one], key_file: Some(Path::new(&keys)), ..alone },
        );
        ours.give_keys("cl1", CELL, &one, &keys);
        for user in ["alice", "bob"] {
            let _ = ours.tool("cl1", &["pts", "createuser", user, "-localauth"]);
        }
        Self { _two: second, _one: first, theirs, ours, _scratch: scratch, _turn: turn }
    }

    /// The output of a command line on each of them, and its exit status, normalized to be independent of the cell.
    pub fn answers(&self, line: &str) -> [String; 2] {
        let theirs = answer(&self.theirs, "srv1", [11, 12], line);
        [theirs, answer(&self.ours, "cl1", [5, 7], line)]
    }
}

/// Removes the volumes that the peer's own set-up created and Andrew's has not.
fn empty(theirs: &Hosts) {
    let vos = |line: &str| {
        let words = ["vos"].into_iter().chain(line.split(' ')).chain(["-localauth"]);
        theirs.tool("srv1", &words.collect::<Vec<_>>())
    };
    for volume in ["root.afs.readonly", "root.cell.readonly"] {
        for server in ["srv1", "srv2"] {
            vos(&format!("remove {server} a {volume}"));
        }
    }
    for volume in ["home.alice", "scratch"] {
        vos(&format!("remove -id {volume}"));
    }
}

fn answer(hosts: &Hosts, host: &str, servers: [u8; 2], line: &str) -> String {
    let [one, two] = servers.map(|number| hosts.address(number));
    let words = line.split(' ').map(|word| match word {
        "ONE" => one.as_str(),
        "TWO" => two.as_str(),
        other => other,
    });
    let words: Vec<&str> = ["env", "TZ=UTC"].into_iter().chain(words).chain(["-localauth"]).collect();
    let output = hosts.try_tool(host, &words);
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let mut lines: Vec<String> = said.iter().flat_map(|text| text.lines()).map(general).collect();
    lines.retain(|line| !line.is_empty() && !line.contains("Last Access"));
    // OpenAFS lists in the order of its hash tables, and servers in the order in which they have registered.
    let unordered = ["pts listentries", "vos sync", "vos listaddrs"];
    if unordered.iter().any(|command| line.starts_with(command)) {
        lines.sort();
    }
    let named = [(&one, "ONE"), (&two, "TWO")]
        .into_iter()
        .fold(lines.join("\n"), |text, (address, name)| text.replace(address.as_str(), name));
    let named = named.replace(&format!("srv1.{CELL}"), "ONE").replace(&format!("srv2.{CELL}"), "TWO");
    let named = named.replace("srv1", "ONE").replace("srv2", "TWO");
    format!("{named}\nstatus {:?}", output.status.code())
}

/// A line without volume numbers, dates and trailing blanks.
fn general(line: &str) -> String {
    let words = line.trim_end().split_inclusive(' ').map(|word| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_digit());
        if bare.len() == 9 && bare.starts_with("5368") {
            word.replace(bare, "VOLUME")
        } else {
            word.to_owned()
        }
    });
    without_date(&words.collect::<String>())
}

/// A date is five words that begin with a day of the week.
fn without_date(line: &str) -> String {
    const DAYS: [&str; 7] = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
    match DAYS.iter().find_map(|day| line.find(day)) {
        Some(at) if line.len() >= at + DATE => format!("{}DATE{}", &line[..at], &line[at + DATE..]),
        _ => line.to_owned(),
    }
}

/// Length of a date in the format of ctime(3).
const DATE: usize = "Sun Nov 22 16:32:54 2026".len();
