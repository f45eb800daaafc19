//! Cells of a mount: found by name, entered from the directory of all cells, listed and configured for users.

use std::net::IpAddr;
use std::sync::Arc;

use afs_wire::fs::Status;
use afs_wire::ids::{Fid, Mode};

use crate::api::{Attr, KnownCell, NodeId};
use crate::config::CellConfig;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::{CellIndex, CellTree, Key, NodeTarget};
use crate::location::{Cell, Entered, Volume};
use crate::names::{CellsEntry, cell_entry};
use crate::venus::Venus;
use crate::venus::lookup::LOOK_AGAIN;

/// ENOSPC.
const TOO_MANY: i32 = 28;

impl Venus {
    /// The cells that this mount knows, the home cell first.
    pub fn cells(&self) -> Vec<KnownCell> {
        self.location.cells().iter().map(known).collect()
    }

    /// Adds a cell, or replaces the location servers of one. Volumes that are in use continue at their file servers.
    ///
    /// # Errors
    /// EINVAL without a location server; ENOSPC if the mount knows 1024 cells.
    pub fn configure_cell(&self, config: &CellConfig) -> Result<()> {
        if config.location_servers.is_empty() {
            return Err(VenusError::new(ErrorKind::Invalid, "cell"));
        }
        let added = self.cells.configure(config);
        added.map(drop).ok_or(VenusError::new(ErrorKind::Refused(TOO_MANY), "cell"))
    }

    /// Gives ranks to addresses of file servers: of the sites of a volume those with the lowest rank are called first, and among these the
    /// nearest. `None` takes a rank away; an address without one counts as 20 000. A rank counts until the mount ends.
    ///
    /// # Errors
    /// EINVAL for the rank 0; ENOSPC if 1024 addresses have ranks.
    pub fn set_ranks(&self, ranks: &[(IpAddr, Option<u16>)]) -> Result<()> {
        if ranks.iter().any(|(_, rank)| *rank == Some(0)) {
            return Err(VenusError::new(ErrorKind::Invalid, "rank"));
        }
        let servers = self.location.servers();
        match ranks.iter().all(|(address, rank)| servers.set_rank(*address, *rank)) {
            true => Ok(()),
            false => Err(VenusError::new(ErrorKind::Refused(TOO_MANY), "rank")),
        }
    }

    /// The cell of a name, looked up if it is not known; ENODEV without one.
    pub(super) async fn cell_named(&self, name: &str) -> Result<CellIndex> {
        self.cells.find(name).await.ok_or(VenusError::new(ErrorKind::NoVolume, "cell"))
    }

    /// In the directory of all cells: a cell's name, or with a dot in front its read-write tree.
    pub(super) async fn step_into_cell(&self, name: &[u8]) -> Result<(NodeTarget, Status)> {
        let Some((entry, index)) = self.find_entry(name).await else {
            // No server tells when a cell comes into being: the kernel must ask again.
            self.kernel.note_unpromised();
            return Err(VenusError::new(ErrorKind::NotFound, "lookup"));
        };
        match self.glancing().root_of_cell(index, entry.tree).await {
            Ok((volume, found)) => {
                self.location.cell(index).iter().for_each(|cell| cell.list());
                volume.enter(Entered { parent: NodeId::ROOT, text: entry.text });
                Ok(found)
            }
            // As a mount point whose servers are away ([`Venus::cross_or_stay`]).
            Err(error) if error.kind == ErrorKind::ServerUnreachable => {
                tracing::debug!(cell = entry.cell, %error, "a cell is not entered");
                Ok((NodeTarget::Unreached(index, entry.tree), Status::default()))
            }
            Err(error) => Err(error),
        }
    }

    async fn root_of_cell(
        &self,
        cell: CellIndex,
        tree: CellTree,
    ) -> Result<(Arc<Volume>, (NodeTarget, Status))> {
        let volume = self.chosen_volume(cell, "root.cell", tree.choice(), None).await?;
        let found = self.status_at(NodeTarget::Object(Key::new(cell, Fid::root(volume.id)))).await?;
        Ok((volume, found))
    }

    /// The error of an operation in a cell that was not entered, which waits for its servers; as [`Venus::not_crossed`].
    pub(super) async fn not_entered(&self, cell: CellIndex, tree: CellTree) -> VenusError {
        match self.root_of_cell(cell, tree).await {
            Ok(_) => VenusError::new(ErrorKind::Refused(LOOK_AGAIN), "cell"),
            Err(error) => error,
        }
    }

    /// Attributes of a cell that was not entered: a directory of which nothing else is known.
    pub(super) fn unreached_attr(&self, node: NodeId) -> Attr {
        Attr { node, mode: Mode(0o555), is_public: false, ..self.cells_attr() }
    }

    async fn find_entry<'a>(&self, name: &'a [u8]) -> Option<(CellsEntry<'a>, CellIndex)> {
        let entry = cell_entry(name)?;
        let index = self.cells.find(entry.cell).await?;
        Some((entry, index))
    }
}

fn known(cell: &Arc<Cell>) -> KnownCell {
    KnownCell {
        name: cell.name.clone(),
        location_servers: cell.peers(),
        file_port: cell.file_port(),
        is_found: cell.is_found(),
    }
}
