//! `andrew vos remove`.

use super::entries;
use super::reach::{Failure, Target};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::error::AbortCode;
use afs_wire::ids::{KindNumber, PartitionNumber, VolumeId, VolumeKind};
use afs_wire::vl::{DeleteEntry, Entry, LockOperation, ReleaseLock, ReleaseType, SetLock, Site, SiteFlags};
use afs_wire::vol::{AttachFlags, DeleteVolume, EndTrans, TransCreate};
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;

/// Options of `andrew vos remove`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew vos remove [OPTIONS] SERVER PARTITION NAME\n       andrew vos remove [OPTIONS] NAME",
    after_help = "\
What the volume holds is gone. Mount points that name it stay; remove them with `andrew fs rmmount`.

Examples:
  andrew vos remove projects
  andrew vos remove -server localhost -partition a -id 536870918"
)]
pub struct Args {
    /// Server, partition and the volume's name or number
    #[arg(value_name = "SERVER PARTITION NAME", num_args = 0..=3)]
    bare: Vec<String>,
    /// Server, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Partition, as OpenAFS's vos takes it
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Name or number, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    id: u32,
    server: Ipv4Addr,
    partition: String,
}

impl Args {
    /// Removes the read-write volume and its entry.
    ///
    /// # Errors
    /// No such volume, another place than the one named, copies that are still there, or the servers'
    /// refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let mut bare = self.bare.iter().map(String::as_str).collect::<Vec<_>>();
        let volume = self.id.as_deref().or_else(|| bare.pop()).ok_or_else(|| {
            CommandError::usage(
                "vos: remove needs the name or number of a volume; see `andrew vos remove --help`",
            )
        })?;
        let mut bare = bare.into_iter();
        let server = self.server.as_deref().or_else(|| bare.next());
        let partition = self.partition.as_deref().or_else(|| bare.next());
        let entry = entries::find(target, volume)?;
        let site = site(target, &entry, volume, server, partition)?;
        let id = entry.id(VolumeKind::ReadWrite);
        lock(target, id, volume)?;
        let removed = remove(target, id, site);
        if removed.is_err() {
            let kind = KindNumber::from(VolumeKind::ReadWrite);
            let _ = target.locate(&ReleaseLock { volume: id, kind, release: ReleaseType::ALL });
        }
        removed?;
        let partition = entries::partition(site.partition.check());
        output::show(json, &Answer { id: id.0, server: site.server, partition });
        Ok(())
    }
}

/// The one place of the volume, if it is the one that was named and nothing else depends on it.
fn site(
    target: &Target,
    entry: &Entry,
    volume: &str,
    server: Option<&str>,
    partition: Option<&str>,
) -> CommandResult<Site> {
    let wrong = |why: String| {
        CommandError::usage(format!("vos: {why}; `andrew vos examine {volume}` shows where it is"))
    };
    let id = entry.id(VolumeKind::ReadWrite).0;
    if volume.parse::<u32>().is_ok_and(|given| given != id) {
        return Err(wrong(format!(
            "{volume} is a copy of volume {id}; only read-write volumes can be removed"
        )));
    }
    let site = entry.sites.iter().find(|s| s.flags.contains(SiteFlags::RW_VOLUME));
    let site = *site.ok_or_else(|| wrong(format!("volume {volume} has no read-write site")))?;
    if entry.sites.len() > 1 {
        return Err(wrong(format!("volume {volume} has read-only copies, which have to be removed first")));
    }
    if let Some(server) = server
        && target.server(server)? != site.server
    {
        return Err(wrong(format!("volume {volume} is not on {server}")));
    }
    let named = partition.map(str::parse).transpose();
    let named = named
        .map_err(|_| wrong(format!("could not interpret partition name '{}'", partition.unwrap_or(""))))?;
    if named.is_some_and(|named| Some(named) != site.partition.check()) {
        return Err(wrong(format!("volume {volume} is not on partition {}", partition.unwrap_or(""))));
    }
    Ok(site)
}

fn lock(target: &mut Target, volume: VolumeId, name: &str) -> CommandResult {
    let kind = KindNumber::from(VolumeKind::ReadWrite);
    let locked = target.locate(&SetLock { volume, kind, operation: LockOperation::DELETE });
    locked.map(drop).map_err(|f| f.during(&format!("Could not lock the VLDB entry of {name}")))
}

fn remove(target: &mut Target, volume: VolumeId, site: Site) -> CommandResult {
    let request =
        TransCreate { volume, partition: PartitionNumber(site.partition.0), flags: AttachFlags::OFFLINE };
    match target.volume(site.server, &request) {
        Ok(reply) => {
            let transaction = reply.transaction;
            let deleted = target.volume(site.server, &DeleteVolume { transaction });
            let ended = target.volume(site.server, &EndTrans { transaction });
            let failed = |f: Failure| f.during(&format!("Could not delete the volume {}", volume.0));
            deleted.map_err(failed)?;
            ended.map_err(failed)?;
        }
        // Gone from the server already: what remains is the entry.
        Err(failure) if failure.is(AbortCode::VNOVOL) => {}
        Err(failure) => return Err(failure.during(&format!("Transaction on volume {} failed", volume.0))),
    }
    let kind = KindNumber::from(VolumeKind::ReadWrite);
    let gone = target.locate(&DeleteEntry { volume, kind });
    gone.map(drop).map_err(|f| f.during("Could not delete the VLDB entry"))
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume {} on partition {} server {} deleted", self.id, self.partition, self.server)
    }
}
