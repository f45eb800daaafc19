//! FetchStatus calls of another client, at the server of a mount, beside a transfer.

use super::mount_attributes as attributes;
use crate::commands::bench_load::{CallSecurity, Client, fid};
use afs_cell::mounts;
use afs_cell::tokens::known_cells;
use afs_lab::LabError;
use afs_lab::bulk::SmallOperation;
use afs_lab::load::{Repeated, Target, statuses_until};
use andrew::error::{CommandError, CommandResult};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// A client with a socket of its own, and the directory whose status it fetches. The target is dropped first.
pub(super) struct Statuses {
    target: Target,
    client: Client,
}

impl Statuses {
    /// A client of the server that has a directory; `None` if the directory is in no mount of Andrew's.
    ///
    /// # Errors
    /// The mount does not say where the directory is, or there is no key to call with.
    pub(super) fn of(directory: &Path, security: &CallSecurity) -> CommandResult<Option<Self>> {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let Some(mount) = mounts::containing(&real)? else { return Ok(None) };
        let known = known_cells()
            .into_iter()
            .find(|cell| cell.mount.as_ref().is_some_and(|location| location.device == mount.device));
        let port = known.map_or(afs_wire::fs::PORT, |cell| cell.base_port);
        let (Some(server), Ok(directory)) = (server(&real)?, fid(&attribute(&real, "afs.fid")?)) else {
            let shown = directory.display();
            return Err(CommandError::failed(format!(
                "bench: the mount does not say which server has {shown}"
            )));
        };
        let client = Client::open(SocketAddr::from((server, port)), security)?;
        Ok(Some(Self { target: client.target(directory), client }))
    }
}

impl SmallOperation for Statuses {
    fn repeat(&self, enough: &(dyn Fn(u32) -> bool + Sync)) -> Result<Repeated, LabError> {
        Ok(self.client.system.block_on(statuses_until(&self.target, enough))?)
    }
}

/// The first server of the volume that holds a directory.
fn server(directory: &Path) -> CommandResult<Option<Ipv4Addr>> {
    Ok(attribute(directory, "afs.whereis")?.lines().find_map(|line| line.parse().ok()))
}

fn attribute(directory: &Path, name: &str) -> CommandResult<String> {
    attributes::text(directory, name).map_err(super::failed)
}
