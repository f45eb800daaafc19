//! `andrew fs getserverprefs`: ranks of the addresses of file servers.

use crate::commands::fs::of_mounts::{OfMounts, of_mounts};
use crate::error::CommandResult;
use crate::output;
use afs_venus::{Activity, ServerActivity};
use serde::Serialize;
use std::fmt;

/// Rank of an address to which none was given.
const RANK_USUAL: u16 = 20_000;

/// Options of `andrew fs getserverprefs`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Of the servers that have a read-only volume, those with the lowest rank are called first, and among these the
nearest by the measured round trip. An address to which no rank was given counts as 20000. A mount knows the
servers that it has called.

Examples:
  andrew fs getserverprefs
  andrew fs --json getserverprefs")]
pub struct Args {
    /// Accepted for scripts made for OpenAFS: addresses are always shown
    #[arg(long, hide_short_help = true)]
    numeric: bool,
}

#[derive(Serialize)]
struct Preference {
    address: String,
    cell: String,
    rank: u16,
    /// Whether the rank was given; otherwise it is the usual one.
    is_given: bool,
    round_trip_micros: Option<u64>,
}

#[derive(Serialize)]
struct Preferences {
    servers: Vec<Preference>,
}

impl Args {
    /// Prints the ranks that each mount uses.
    ///
    /// # Errors
    /// No mount of this user's or of root's runs.
    pub fn run(self, json: bool) -> CommandResult {
        let all: OfMounts<Preferences> = of_mounts(preferences)?;
        output::show(json, &all);
        Ok(())
    }
}

fn preferences(told: &Activity) -> Preferences {
    let mut servers: Vec<Preference> = told.servers.iter().flat_map(of_server).collect();
    servers.sort_by(|a, b| (a.rank, &a.address).cmp(&(b.rank, &b.address)));
    Preferences { servers }
}

fn of_server(server: &ServerActivity) -> impl Iterator<Item = Preference> {
    let ranks = server.ranks.iter().copied().chain(std::iter::repeat(None));
    server.addresses.iter().zip(ranks).map(|(address, rank)| Preference {
        address: address.rsplit_once(':').map_or(address.as_str(), |(ip, _)| ip).to_owned(),
        cell: server.cell.clone(),
        rank: rank.unwrap_or(RANK_USUAL),
        is_given: rank.is_some(),
        round_trip_micros: server.round_trip_micros,
    })
}

impl fmt::Display for Preferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.servers.iter().try_for_each(|it| writeln!(f, "{:<50} {:5}", it.address, it.rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_by_rank() {
        let server = |address: &str, rank| ServerActivity {
            addresses: vec![address.into()],
            ranks: vec![rank],
            ..ServerActivity::default()
        };
        let servers = vec![server("192.0.2.2:7000", None), server("192.0.2.9:7000", Some(5000))];
        let text = preferences(&Activity { servers, ..Activity::default() }).to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words, ["192.0.2.9", "5000", "192.0.2.2", "20000"]);
        // A mount of an older version tells no ranks.
        let older = ServerActivity { ranks: Vec::new(), ..server("192.0.2.2:7000", None) };
        assert_eq!(of_server(&older).count(), 1);
    }
}
