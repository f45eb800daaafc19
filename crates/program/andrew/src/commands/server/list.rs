//! `andrew server list`: servers of the cell with their services and free space.

use super::probe::versions;
use crate::commands::clock_text;
use crate::commands::vos::ops::Ops;
use crate::error::CommandResult;
use crate::output;
use crate::units;
use afs_admin::{Admin, AdminResult, EntryFilter, KnownServer, ServerPartition};
use afs_wire::vl::{Entry, SiteFlags};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Options of `andrew server list`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Shows the file servers of the location database, and the database servers. A server that does not reply within three seconds
is shown as away. A clock that differs from this machine's by more than two seconds is shown. Volumes are counted in the location database; sizes are in units of 1024 bytes.

Examples:
  andrew server list
  andrew server list --servers 192.0.2.1 --json")]
pub struct Args {}

/// Services of a host, with the offset of their port from the file service's.
const SERVICES: [(&str, u16); 4] = [("files", 0), ("users", 2), ("locations", 3), ("volumes", 5)];

#[derive(Serialize)]
struct Partition {
    name: String,
    /// `online`, `failing` or `offline`.
    state: &'static str,
    /// Null where it is not on line.
    #[serde(rename = "free_bytes", serialize_with = "units::some_bytes")]
    free_kib: Option<i64>,
    #[serde(rename = "total_bytes", serialize_with = "units::some_bytes")]
    total_kib: Option<i64>,
}

#[derive(Serialize)]
struct Server {
    address: Ipv4Addr,
    addresses: Vec<Ipv4Addr>,
    /// `None` for a server without volumes, or that never registered.
    uuid: Option<String>,
    /// Whether any of its services replies.
    up: bool,
    /// Services that reply.
    services: Vec<&'static str>,
    version: Option<String>,
    /// How far its clock is ahead of this machine's; negative if it is behind.
    clock_ahead_seconds: Option<i64>,
    partitions: Vec<Partition>,
    /// Why its partitions are unknown although it replies.
    trouble: Option<String>,
    read_write: usize,
    read_only: usize,
}

#[derive(Serialize)]
#[serde(transparent)]
struct ServerList(Vec<Server>);

impl Args {
    /// Prints the servers.
    ///
    /// # Errors
    /// No location server replies.
    pub(super) fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let (known, entries) = ops.run(|admin| async move {
            let entries = admin.entries(&EntryFilter::default()).await?;
            Ok((admin.servers().await?, entries))
        })?;
        let mut servers = known;
        for address in ops.location_servers() {
            if !servers.iter().any(|server| server.addresses.contains(&address)) {
                servers.push(KnownServer { uuid: None, addresses: vec![address] });
            }
        }
        let base = ops.base_port();
        let at = |address, offset| SocketAddrV4::new(address, base.saturating_add(offset));
        let asked: Vec<SocketAddrV4> = servers
            .iter()
            .flat_map(|server| SERVICES.map(|(_, offset)| at(server.address(), offset)))
            .collect();
        let heard = versions(&asked)?;
        let mut shown: Vec<Server> =
            servers.iter().map(|server| shown(server, &entries, &heard, base)).collect();
        for server in shown.iter_mut().filter(|server| server.services.contains(&"volumes")) {
            let address = server.address;
            match ops.run(|admin| async move { partitions(&admin, address).await }) {
                Ok(partitions) => server.partitions = partitions,
                Err(error) => server.trouble = Some(error.message),
            }
        }
        for server in shown.iter_mut().filter(|server| server.services.contains(&"files")) {
            let address = server.address;
            server.clock_ahead_seconds =
                ops.run(|admin| async move { admin.clock_ahead(address).await }).ok();
        }
        shown.sort_by_key(|server| server.address);
        output::show(json, &ServerList(shown));
        Ok(())
    }
}

fn shown(
    server: &KnownServer,
    entries: &[Entry],
    heard: &BTreeMap<SocketAddrV4, String>,
    base: u16,
) -> Server {
    let at = |offset| SocketAddrV4::new(server.address(), base.saturating_add(offset));
    let answering = SERVICES.iter().filter(|(_, offset)| heard.contains_key(&at(*offset)));
    let services: Vec<&'static str> = answering.map(|(name, _)| *name).collect();
    let version = SERVICES.iter().find_map(|(_, offset)| heard.get(&at(*offset)).cloned());
    let with = |flag| {
        let here = |entry: &&Entry| {
            let mut sites = entry.sites.iter();
            sites.any(|site| site.flags.contains(flag) && server.addresses.contains(&site.server))
        };
        entries.iter().filter(here).count()
    };
    Server {
        address: server.address(),
        addresses: server.addresses.clone(),
        uuid: server.uuid.map(|uuid| uuid.to_string()),
        up: !services.is_empty(),
        services,
        version,
        clock_ahead_seconds: None,
        partitions: Vec::new(),
        trouble: None,
        read_write: with(SiteFlags::RW_VOLUME),
        read_only: with(SiteFlags::RO_VOLUME),
    }
}

async fn partitions(admin: &Admin, server: Ipv4Addr) -> AdminResult<Vec<Partition>> {
    let mut found = Vec::new();
    for id in admin.partitions(server).await?.into_iter().collect::<BTreeSet<_>>() {
        let state = admin.partition_state(ServerPartition::new(server, id)).await?;
        let room = state.room();
        found.push(Partition {
            name: id.to_string(),
            state: state.word(),
            free_kib: room.map(|room| room.free_kib),
            total_kib: room.map(|room| room.total_kib),
        });
    }
    Ok(found)
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        for other in self.addresses.iter().skip(1) {
            write!(f, " {other}")?;
        }
        match (self.up, &self.version) {
            (true, Some(version)) => writeln!(f, ": up, {version}")?,
            (true, None) => writeln!(f, ": up")?,
            (false, _) => writeln!(f, ": away")?,
        }
        if let Some(uuid) = &self.uuid {
            writeln!(f, "    uuid {uuid}")?;
        }
        if self.up {
            writeln!(f, "    services: {}", self.services.join(", "))?;
        }
        if let Some(told) = self.clock_ahead_seconds.and_then(clock_text::told) {
            writeln!(f, "    its clock is {told}")?;
        }
        for Partition { name, state, free_kib, total_kib } in &self.partitions {
            match free_kib.zip(*total_kib) {
                Some((free, total)) => writeln!(f, "    {name}: {free} K free of {total} K")?,
                None => writeln!(f, "    {name}: {state}; `andrew status` there says why")?,
            }
        }
        if let Some(trouble) = &self.trouble {
            writeln!(f, "    {trouble}")?;
        }
        let (read_write, read_only) = (self.read_write, self.read_only);
        writeln!(f, "    volumes: {read_write} read-write, {read_only} read-only copies")
    }
}

impl fmt::Display for ServerList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|server| write!(f, "{server}"))
    }
}
