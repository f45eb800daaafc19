//! The past of a directory as a property: which snapshots show it, and the word that closes or opens them.

use std::fmt::Write;
use std::sync::Arc;

use afs_wire::acl::NamedAcl;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, AclText};
use afs_wire::ids::{Fid, Rights, UnixSeconds, VolumeId, VolumeKind};

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::{CellIndex, Key};
use crate::location::Volume;
use crate::venus::Venus;

/// The error for a directory that no earlier state has.
const ESRCH: i32 = 3;

/// An earlier state of a volume.
struct PastState {
    volume: Arc<Volume>,
    name: String,
    created: UnixSeconds,
}

impl Venus {
    /// The snapshots of the volume of a directory, newest first, and the user's rights in it there, as JSON: an array of objects with
    /// `name`, `created` (seconds), and `rights`, which is null where the directory is not in the snapshot.
    pub(super) async fn pasts_told(&self, dir: Key, volume: &Arc<Volume>) -> Result<String> {
        let mut text = String::from("[");
        for state in self.snapshots_before(volume).await? {
            let rights = match self.rights_then(dir, &state.volume).await? {
                Some(rights) => format!("\"{rights}\""),
                None => "null".to_owned(),
            };
            let comma = if text.len() > 1 { "," } else { "" };
            // Names of snapshots are letters, digits, '-' and '_' where our servers made them; others are not shown.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            let name: String = state.name.chars().filter(|c| is_plain(*c)).collect();
            let created = state.created.0;
            _ = write!(text, "{comma}{{\"name\":\"{name}\",\"created\":{created},\"rights\":{rights}}}");
        }
        text.push(']');
        Ok(text)
    }

    /// Closes the past of a directory in all states of its volume until now (`close`), or opens it again (`open`). Of a directory in a
    /// snapshot: in that one and older ones.
    ///
    /// # Errors
    /// The user may not; there is no state with this directory (ESRCH); opening: it is not closed (ENOENT).
    pub(super) async fn set_past(&self, dir: Key, value: &[u8]) -> Result<()> {
        let is_open = match value {
            b"close" => false,
            b"open" => true,
            _ => return Err(VenusError::new(ErrorKind::Invalid, "the past of a directory")),
        };
        let volume = self.volume_of(dir).await?;
        let mut done = self.set_newest(dir, self.snapshots_before(&volume).await?, is_open).await?;
        if volume.kind != VolumeKind::Backup
            && let Some(backup) = volume.group().volume(VolumeKind::Backup)
        {
            let backup = self.past_state(&volume, backup).await?;
            done |= self.set_newest(dir, vec![backup], is_open).await?;
        }
        let none = VenusError::new(ErrorKind::Refused(ESRCH), "the past of a directory");
        if done { Ok(()) } else { Err(none.of(dir.fid)) }
    }

    /// In the newest state that has the directory: what closes it there closes older ones.
    async fn set_newest(&self, dir: Key, states: Vec<PastState>, is_open: bool) -> Result<bool> {
        // The server's break comes later than this reply.
        for state in &states {
            self.distrust_volume(dir.cell, state.volume.id);
        }
        for state in states {
            match self.store_past(Fid { volume: state.volume.id, ..dir.fid }, &state.volume, is_open).await {
                Ok(()) => return Ok(true),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error.of(dir.fid)),
            }
        }
        Ok(false)
    }

    fn distrust_volume(&self, cell: CellIndex, volume: VolumeId) {
        for vnode in self.vnodes.of_volume(cell, volume) {
            self.distrust(&vnode);
            self.invalidate(vnode.key);
        }
    }

    async fn store_past(&self, fid: Fid, volume: &Arc<Volume>, is_open: bool) -> Result<()> {
        let acl = match is_open {
            true => self.call(volume, fs::FetchAcl { fid }).await?.value.acl,
            false => empty_list(),
        };
        self.call(volume, fs::StoreAcl { fid, acl }).await.map(drop)
    }

    async fn rights_then(&self, dir: Key, volume: &Arc<Volume>) -> Result<Option<Rights>> {
        let fid = Fid { volume: volume.id, ..dir.fid };
        match self.call(volume, fs::FetchStatus { fid }).await {
            Ok(answered) => Ok(Some(answered.value.status.caller_access)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error.of(fid)),
        }
    }

    /// The snapshots of a volume, newest first; of a snapshot itself alone.
    async fn snapshots_before(&self, volume: &Arc<Volume>) -> Result<Vec<PastState>> {
        if volume.kind == VolumeKind::Backup {
            let name = volume.group().name.to_string();
            let name = name.rsplit('.').next().unwrap_or_default().to_owned();
            let created = volume.made_at().unwrap_or_default();
            return Ok(vec![PastState { volume: volume.clone(), name, created }]);
        }
        let mut states = Vec::new();
        for snapshot in self.visible_snapshots(volume.cell, volume.id).await?.iter() {
            let name = snapshot.name.to_text();
            let volume = self.snapshot_volume(volume.cell, volume.id, snapshot).await?;
            states.push(PastState { volume, name, created: snapshot.created });
        }
        states.sort_by_key(|state| std::cmp::Reverse((state.created, state.volume.id)));
        Ok(states)
    }

    async fn past_state(&self, of: &Arc<Volume>, id: VolumeId) -> Result<PastState> {
        let volume = self.learn_volume(of.cell, &of.group(), id, VolumeKind::Backup).await?;
        Ok(PastState { volume, name: String::new(), created: UnixSeconds(0) })
    }
}

/// Whether a state lacks the directory, or is not there itself.
fn is_absent(error: &VenusError) -> bool {
    matches!(error.code, Some(AbortCode::VNOVNODE | AbortCode::VNOVOL))
}

fn empty_list() -> AclText {
    NamedAcl::default().to_opaque().unwrap_or_default()
}
