//! `andrew-lab bench load`: load of calls on a file server, without a cache manager.

mod call_security;
mod client;
mod processor;
mod report;

use afs_lab::load::{self, Connect, LoadError, Rate, Target};
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use andrew::error::{CommandError, CommandResult};
use andrew::output;
pub(super) use call_security::CallSecurity;
pub(super) use client::Client;
use processor::Meter;
use report::{Bulk, Connections, Listing, Report};
use std::net::{Ipv4Addr, SocketAddr};

/// Options of `andrew-lab bench load`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Without --security the calls are anonymous: system:anyuser needs the rights rliwd in the
directory. With it they authenticate with the cell's key.
Statuses are FetchStatus calls; creations are CreateFile calls, each durable when it returns; a file of
--bytes is stored by one call and fetched and compared by another; a connection is measured by a
FetchStatus that is its first call. For listing, one client asks for the status of --directory, call after
call, first alone and then while another client lists the directories of --list: reads each and fetches the
status of all entries, --in-flight calls at a time. Works with any AFS-3 file server.

Examples:
  andrew-lab bench load --server 192.0.2.1 --directory 536870915.1.1
  andrew-lab bench load --server 127.0.0.1:7000 --directory 536870915.1.1 --in-flight 64 --json
  andrew-lab bench load --server 127.0.0.1 --directory 536870915.1.1 --only connections,fetch \\
      --security rxgk --level crypt --key-file keys/KeyFileExt --server-pid 4711")]
pub struct Args {
    /// File server, with its port if that is not 7000
    #[arg(long, value_name = "IP[:PORT]", value_parser = server)]
    server: SocketAddr,
    /// Directory to work in, as `andrew fs getfid` shows it
    #[arg(long, value_name = "VOLUME.VNODE.UNIQUIFIER", value_parser = fid)]
    directory: Fid,
    /// What to measure
    #[arg(
        long,
        value_name = "PART",
        value_delimiter = ',',
        default_value = "statuses,creations,store,fetch"
    )]
    only: Vec<Part>,
    /// Status calls
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..))]
    statuses: u32,
    /// Creations
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    creations: u32,
    /// Keep the created files: empty, named load-N
    #[arg(long)]
    keep: bool,
    /// Directories to list, one after the other
    #[arg(long, value_name = "VOLUME.VNODE.UNIQUIFIER", value_delimiter = ',', value_parser = fid,
          required_if_eq("only", "listing"))]
    list: Vec<Fid>,
    /// Connections: once one after the other and once --in-flight at a time
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    connections: u32,
    /// Calls in progress at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
    /// Length of the file to store and fetch
    #[arg(long, value_name = "BYTES", default_value_t = 100_000_000)]
    bytes: u64,
    /// Repetitions of the file
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    files: u32,
    /// Process id of the server, if it runs on this machine: shows its processor time
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    #[command(flatten)]
    security: CallSecurity,
}

/// The parts of the benchmark.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// Status calls
    Statuses,
    /// Durable creations
    Creations,
    /// Storing a file
    Store,
    /// Fetching a file
    Fetch,
    /// First calls of new connections
    Connections,
    /// Status calls of one client while another lists directories
    Listing,
}

impl Args {
    /// Runs the benchmark and prints its report.
    ///
    /// # Errors
    /// No key to call with; the first call that fails.
    pub fn run(self, json: bool) -> CommandResult {
        let client = Client::open(self.server, &self.security)?;
        let other =
            self.wants(Part::Listing).then(|| Client::open(self.server, &self.security)).transpose()?;
        let answer = client.system.block_on(self.measure(&client, other.as_ref()));
        let answer = answer.map_err(|e| CommandError::failed(format!("bench: {}: {e}", self.server)))?;
        output::show(json, &answer);
        Ok(())
    }

    fn wants(&self, part: Part) -> bool {
        self.only.contains(&part)
    }

    async fn measure(&self, client: &Client, other: Option<&Client>) -> Result<Report, LoadError> {
        let (target, mut report) = (&client.target(self.directory), Report::default());
        if self.wants(Part::Statuses) {
            report.statuses = Some(load::statuses(target, self.statuses, self.in_flight).await?);
        }
        if self.wants(Part::Creations) {
            report.creations = Some(self.create(target).await?);
        }
        if self.wants(Part::Connections) {
            report.connections = Some(self.connect(target, &client.connect()).await?);
        }
        if self.wants(Part::Store) || self.wants(Part::Fetch) {
            self.bulk(target, &mut report).await?;
        }
        if let Some(other) = other {
            report.listing = Some(self.list(target, &other.target(self.directory)).await?);
        }
        Ok(report)
    }

    async fn create(&self, target: &Target) -> Result<Rate, LoadError> {
        if self.keep {
            load::names(target, self.creations, self.in_flight).await
        } else {
            load::creations(target, self.creations, self.in_flight).await
        }
    }

    async fn list(&self, target: &Target, other: &Target) -> Result<Listing, LoadError> {
        let idle = load::statuses(target, self.statuses, 1).await?;
        let beside = load::beside(target, other, self.list.clone(), self.in_flight).await?;
        Ok(Listing { idle, beside })
    }

    async fn connect(&self, target: &Target, connect: &Connect) -> Result<Connections, LoadError> {
        let meter = Meter::start(self.server_pid);
        let first_calls = load::first_calls(target, connect, self.connections).await?;
        let at_once = load::connections(target, connect, self.connections, self.in_flight).await?;
        Ok(Connections { first_calls, at_once, processor: meter.read() })
    }

    async fn bulk(&self, target: &Target, report: &mut Report) -> Result<(), LoadError> {
        let (mut stores, mut fetches) = (Bulk::default(), Bulk::default());
        for _ in 0..self.files {
            let meter = Meter::start(self.server_pid);
            let (fid, stored) = load::store(target, self.bytes).await?;
            stores.add(stored, meter.read());
            if self.wants(Part::Fetch) {
                let meter = Meter::start(self.server_pid);
                fetches.add(load::fetch(target, fid, self.bytes).await?, meter.read());
            }
            load::remove(target).await?;
        }
        report.stores = Some(stores).filter(|_| self.wants(Part::Store));
        report.fetches = Some(fetches).filter(|_| self.wants(Part::Fetch));
        Ok(())
    }
}

/// Parses the address of a file server.
pub(super) fn server(text: &str) -> Result<SocketAddr, String> {
    let alone = text.parse::<Ipv4Addr>().map(|ip| SocketAddr::from((ip, afs_wire::fs::PORT)));
    alone.or_else(|_| text.parse()).map_err(|_| "give an address like 192.0.2.1 or 192.0.2.1:7000".to_owned())
}

/// Parses a fid as `andrew fs getfid` shows it.
pub(super) fn fid(text: &str) -> Result<Fid, String> {
    let parts: Vec<u32> = text.split('.').filter_map(|part| part.parse().ok()).collect();
    match (parts.as_slice(), text.split('.').count()) {
        ([volume, vnode, unique], 3) => {
            Ok(Fid { volume: VolumeId(*volume), vnode: VnodeId(*vnode), unique: Uniquifier(*unique) })
        }
        _ => Err("give three numbers separated by dots, as `andrew fs getfid` shows them".to_owned()),
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
