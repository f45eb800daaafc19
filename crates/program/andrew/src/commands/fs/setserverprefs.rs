//! `andrew fs setserverprefs`: gives ranks to the addresses of file servers.

use super::newcell::addresses_of;
use super::taken::of_mounts_that_took;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::tokens::Mounts;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Longest list that is read, in bytes.
const LEN_MAX: u64 = 1 << 20;
/// Most ranks that are set at once.
const RANKS_MAX: usize = 1024;

/// Options of `andrew fs setserverprefs`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Of the servers that have a read-only volume, those with the lowest rank are called first, and among these the
nearest by the measured round trip; a server that does not reply is passed over. An address to which no rank was
given counts as 20000, and the rank 0 takes a given one away. Ranks count in the mounts that this user started,
until they end; which mounts these are says `andrew fs newcell --help`.

Examples:
  andrew fs setserverprefs 192.0.2.1 5000
  andrew fs setserverprefs -servers fs1.example.org 5000 fs2.example.org 40000
  andrew fs setserverprefs -file /etc/andrew/ranks")]
pub struct Args {
    /// Names or addresses of file servers, each with its rank, 1 to 65534
    #[arg(value_name = "SERVER RANK")]
    pairs: Vec<String>,
    /// The same, as OpenAFS's fs takes them
    #[arg(long, value_name = "SERVER RANK", num_args = 2.., hide_short_help = true)]
    servers: Vec<String>,
    /// A file with a server and its rank in each line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Read such lines from standard input
    #[arg(long)]
    stdin: bool,
    /// Location servers: the one that replied last is called first, and no rank changes that
    #[arg(long, value_name = "SERVER RANK", num_args = 2.., hide = true)]
    vlservers: Vec<String>,
}

/// What was set, and where.
#[derive(Serialize)]
struct RanksSet {
    ranks: Vec<Rank>,
    #[serde(serialize_with = "crate::output::paths")]
    mounts: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Rank {
    address: Ipv4Addr,
    /// 0: taken away.
    rank: u16,
}

impl Args {
    /// Sets the ranks in the running mounts.
    ///
    /// # Errors
    /// A server or a rank is none; a file cannot be read; no mount runs that this user may change.
    pub fn run(self, json: bool) -> CommandResult {
        let ranks = self.wanted()?;
        let (taken, refused) = Mounts::running().set_ranks(&ranks);
        let mounts = of_mounts_that_took(taken, refused)?;
        let ranks = ranks.into_iter().map(|(address, rank)| Rank { address, rank }).collect();
        output::show(json, &RanksSet { ranks, mounts });
        Ok(())
    }

    fn wanted(&self) -> CommandResult<Vec<(Ipv4Addr, u16)>> {
        if !self.vlservers.is_empty() {
            return Err(CommandError::usage(
                "fs: location servers have no ranks: the one that replied last is called first",
            ));
        }
        let mut words: Vec<String> = self.pairs.iter().chain(&self.servers).cloned().collect();
        if let Some(path) = &self.file {
            let file = fs::File::open(path).map_err(|e| unreadable(&path.display(), &e))?;
            words.extend(words_of(file).map_err(|e| unreadable(&path.display(), &e))?);
        }
        if self.stdin {
            words.extend(words_of(std::io::stdin()).map_err(|e| unreadable(&"standard input", &e))?);
        }
        let ranks = ranks_of(&words)?;
        match ranks.len() {
            0 => Err(CommandError::usage("fs: give a server and its rank, such as 192.0.2.1 5000")),
            1..=RANKS_MAX => Ok(ranks),
            _ => Err(CommandError::usage(format!("fs: at most {RANKS_MAX} addresses can have ranks"))),
        }
    }
}

fn unreadable(what: &dyn fmt::Display, error: &std::io::Error) -> CommandError {
    CommandError::usage(format!("fs: cannot read the ranks from {what}: {error}"))
}

fn words_of(from: impl Read) -> std::io::Result<Vec<String>> {
    let mut text = String::new();
    from.take(LEN_MAX).read_to_string(&mut text)?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    Ok(lines.flat_map(str::split_whitespace).map(str::to_owned).collect())
}

fn ranks_of(words: &[String]) -> CommandResult<Vec<(Ipv4Addr, u16)>> {
    let mut ranks = Vec::new();
    for pair in words.chunks(2) {
        let [host, rank] = pair else {
            let host = pair.first().map_or("", String::as_str);
            return Err(CommandError::usage(format!("fs: the rank of '{host}' is missing")));
        };
        let wrong =
            || CommandError::usage(format!("fs: '{rank}' is not a rank of '{host}': give 1 to 65534, or 0"));
        let rank = rank.parse::<u16>().ok().filter(|rank| *rank < u16::MAX).ok_or_else(wrong)?;
        ranks.extend(addresses_of(host)?.into_iter().map(|address| (address, rank)));
    }
    Ok(ranks)
}

impl fmt::Display for RanksSet {
    /// As OpenAFS's, nothing.
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_ranks_come_in_pairs() {
        let of = |text: &str| {
            let words = words_of(text.as_bytes()).unwrap();
            ranks_of(&words).map_err(|error| error.message)
        };
        let expected = vec![([192, 0, 2, 1].into(), 5000), ([192, 0, 2, 2].into(), 0)];
        assert_eq!(of("192.0.2.1 5000 # near\n\n192.0.2.2\t0\n"), Ok(expected));
        assert_eq!(of("192.0.2.1"), Err("fs: the rank of '192.0.2.1' is missing".into()));
        for bad in ["192.0.2.1 65535", "192.0.2.1 -1", "192.0.2.1 near"] {
            assert!(of(bad).unwrap_err().contains("not a rank"), "{bad}");
        }
    }
}
