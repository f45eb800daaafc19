//! `andrew bench load`: calls at a file server, without a cache manager in between.

use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_lab::load::{self, LoadError, Rate, Target, Throughput};
use afs_net::{System, Udp};
use afs_rpc::Security;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::rpc::ServiceId;
use serde::Serialize;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

/// Options of `andrew bench load`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The calls are made as nobody in particular: system:anyuser needs the rights rliwd in the directory.
Statuses are FetchStatus calls; creations are CreateFile calls, each durable when it returns; a file of
--bytes is stored by one call and fetched and compared by another. Works on any AFS-3 file server.

Examples:
  andrew bench load --server 192.0.2.1 --directory 536870915.1.1
  andrew bench load --server 127.0.0.1:7000 --directory 536870915.1.1 --in-flight 64 --json")]
pub struct Args {
    /// File server, with its port when that is not 7000
    #[arg(long, value_name = "IP[:PORT]", value_parser = server)]
    server: SocketAddr,
    /// Directory to work in, as `andrew fs getfid` shows it
    #[arg(long, value_name = "VOLUME.VNODE.UNIQUIFIER", value_parser = fid)]
    directory: Fid,
    /// Status calls
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..))]
    statuses: u32,
    /// Creations
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    creations: u32,
    /// Calls under way at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
    /// Length of the file that is stored and fetched
    #[arg(long, value_name = "BYTES", default_value_t = 100_000_000)]
    bytes: u64,
    /// Repetitions of the file
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    files: u32,
}

#[derive(Serialize)]
struct Answer {
    statuses: Rate,
    creations: Rate,
    stores: Vec<Throughput>,
    fetches: Vec<Throughput>,
}

impl Args {
    /// Measures and prints.
    ///
    /// # Errors
    /// The first call that fails.
    pub fn run(self, json: bool) -> CommandResult {
        let failed = |e: std::io::Error| CommandError::failed(format!("bench: cannot open a socket: {e}"));
        let system = System::new().map_err(failed)?;
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let udp = Udp::bind(&system, any, afs_rx::Config::default()).map_err(failed)?;
        let env = system.env();
        let listening = udp.rx().listen(load::callbacks(&*env));
        listening.map_err(|e| CommandError::failed(format!("bench: {e}")))?;
        let files = udp.rx().connection(self.server, ServiceId::FILE, Security::null());
        let target = Target { env, files, directory: self.directory };
        let answer = system.block_on(self.measure(&target));
        let answer = answer.map_err(|e| CommandError::failed(format!("bench: {}: {e}", self.server)))?;
        output::show(json, &answer);
        Ok(())
    }

    async fn measure(&self, target: &Target) -> Result<Answer, LoadError> {
        let statuses = load::statuses(target, self.statuses, self.in_flight).await?;
        let creations = load::creations(target, self.creations, self.in_flight).await?;
        let (mut stores, mut fetches) = (Vec::new(), Vec::new());
        for _ in 0..self.files {
            let (fid, stored) = load::store(target, self.bytes).await?;
            stores.push(stored);
            fetches.push(load::fetch(target, fid, self.bytes).await?);
        }
        Ok(Answer { statuses, creations, stores, fetches })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, rate) in [("statuses", &self.statuses), ("durable creations", &self.creations)] {
            writeln!(
                f,
                "{name:<18} {:>9.0}/s, {} in flight, {} calls",
                rate.per_second, rate.in_flight, rate.calls
            )?;
        }
        for (name, all) in [("store", &self.stores), ("fetch", &self.fetches)] {
            let mut rates: Vec<f64> = all.iter().map(|one| one.per_second / 1e6).collect();
            rates.sort_by(f64::total_cmp);
            let (Some(low), Some(high)) = (rates.first(), rates.last()) else { continue };
            let median = rates.get(rates.len() / 2).unwrap_or(high);
            let bytes = all.first().map_or(0, |one| one.bytes);
            writeln!(
                f,
                "{name:<18} {median:>9.0} MB/s ({low:.0}-{high:.0}), {bytes} bytes, {} times",
                rates.len()
            )?;
        }
        Ok(())
    }
}

fn server(text: &str) -> Result<SocketAddr, String> {
    let alone = text.parse::<Ipv4Addr>().map(|ip| SocketAddr::from((ip, afs_wire::fs::PORT)));
    alone.or_else(|_| text.parse()).map_err(|_| "give an address like 192.0.2.1 or 192.0.2.1:7000".to_owned())
}

fn fid(text: &str) -> Result<Fid, String> {
    let parts: Vec<u32> = text.split('.').filter_map(|part| part.parse().ok()).collect();
    match (parts.as_slice(), text.split('.').count()) {
        ([volume, vnode, unique], 3) => {
            Ok(Fid { volume: VolumeId(*volume), vnode: VnodeId(*vnode), unique: Uniquifier(*unique) })
        }
        _ => Err("give three numbers with dots between, as `andrew fs getfid` shows".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_fids_are_read_as_people_write_them() {
        assert_eq!(server("192.0.2.1").unwrap().port(), 7000);
        assert_eq!(server("192.0.2.1:7100").unwrap().port(), 7100);
        assert!(server("nowhere").is_err());
        assert_eq!(fid("5.1.1").unwrap(), Fid::root(VolumeId(5)));
        for bad in ["5.1", "5.1.1.1", "5.x.1", ""] {
            assert!(fid(bad).is_err(), "{bad}");
        }
    }
}
