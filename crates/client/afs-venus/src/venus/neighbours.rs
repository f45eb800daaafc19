//! Statuses of neighbours: many objects of a directory are asked for in one call when a program looks at them one after the other.

use std::sync::Arc;

use afs_wire::dir::Blob;
use afs_wire::fs;

use crate::error::{ErrorKind, Result};
use crate::key::Key;
use crate::location::Volume;
use crate::names::is_dot;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Number of objects of a directory without a cached status after which the statuses of their neighbours are fetched
/// too.
const MISSES_BEFORE_BULK: u32 = 2;
/// Entries that are looked at together.
const PAGE: usize = 256;

impl Venus {
    /// Bulk fetch for programs that access the objects of a directory one after the other: from the third miss on, up
    /// to 50 missing statuses are fetched in one call.
    pub(super) async fn fetch_neighbours(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
    ) -> Result<()> {
        let misses = {
            let mut state = dir.state();
            state.misses = state.misses.saturating_add(1);
            state.misses
        };
        if misses <= MISSES_BEFORE_BULK {
            return Ok(());
        }
        let wanted = self.neighbours_without_status(dir, volume, name).await?;
        match self.bulk_status_in(volume, &wanted, Some(dir.key)).await {
            // An error of a neighbour does not concern the requested object.
            Err(error) if error.kind != ErrorKind::ServerUnreachable => Ok(()),
            other => other,
        }
    }

    /// The objects from a name on whose statuses are missing, as many as one call fetches. They are looked at while the directory is
    /// not locked: one from a server that lies may name itself, or another that names it.
    async fn neighbours_without_status(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
    ) -> Result<Vec<Key>> {
        let (mut wanted, mut offset, mut first) = (Vec::new(), 0, Some(name));
        while wanted.len() < fs::FIDS_MAX {
            let page = |blob: &Blob| neighbours(blob, dir.key, offset, first);
            let page: Vec<(u32, Option<Key>)> = self.with_directory(dir, page).await?;
            let Some((next, _)) = page.last() else { break };
            (offset, first) = (*next, None);
            let missing = page.iter().filter_map(|(_, key)| *key).filter(|key| !self.is_fresh(*key, volume));
            wanted.extend(missing.take(fs::FIDS_MAX - wanted.len()));
        }
        Ok(wanted)
    }
}

/// Objects of the entries from an offset on, and from a name on if one is given, each with the offset after its entry.
fn neighbours(blob: &Blob, dir: Key, offset: u32, first: Option<&[u8]>) -> Vec<(u32, Option<Key>)> {
    let entries = blob.entries(offset).skip_while(|entry| first.is_some_and(|first| entry.name != first));
    let key = |entry: &afs_wire::dir::Entry<'_>| {
        (!is_dot(entry.name)).then(|| dir.sibling(entry.vnode, entry.unique))
    };
    entries.take(PAGE).map(|entry| (entry.next, key(&entry))).collect()
}
