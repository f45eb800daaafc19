//! The task that keeps pins: looks at what has changed, one object after the other, and fetches what is missing of it.
//!
//! It acts for the user who has made the pin, so that nothing comes into the cache that the user may not read.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;
use afs_wire::fs::{self, FileKind, Status};

use crate::api::{Access, OpenFlags};
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::key::Key;
use crate::location::Volume;
use crate::pins::{Due, Held};
use crate::venus::{Shared, Venus};
use crate::vnode::{Vnode, is_mount_point, may};

/// Pause before what has changed is looked at: of a file that changes all the time it bounds the fetches.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval of the look-ups of cells that have pins and are not known.
const FIND_AGAIN: Duration = Duration::from_secs(60);

impl Venus {
    /// Runs until Venus shuts down. Holds no reference while it sleeps.
    pub(super) async fn keep_pins(shared: Weak<Shared>) {
        loop {
            let Some(venus) = shared.upgrade().map(Venus::anonymous) else { return };
            let (wake, end) = (venus.pins.wake.clone().notified_owned(), venus.wake.clone().notified_owned());
            venus.find_cells_of_pins().await;
            venus.look_at_all_due().await;
            if venus.is_closing() {
                return;
            }
            let env = venus.env.clone();
            let waits_for_cells = venus.pins.any_foreign();
            drop(venus);
            match waits_for_cells {
                true => drop(select(select(wake, end), env.sleep(FIND_AGAIN)).await),
                false => drop(select(wake, end).await),
            }
            env.sleep(PAUSE).await;
        }
    }

    async fn look_at_all_due(&self) {
        while let Some((number, pin)) = self.pins.without_way().filter(|_| !self.is_closing()) {
            match self.as_user(pin.owner).way_to(&pin.path).await {
                Ok((_, way)) => self.set_way(number, way),
                Err(error) if is_passing(error.kind) || error.kind == ErrorKind::AccessDenied => {
                    self.pins.wait_for_way(number, error.to_string());
                }
                // The path leads nowhere any more; what was pinned may be elsewhere.
                Err(_) => self.set_way(number, Vec::new()),
            }
        }
        self.pins.begin_pass();
        while let Some(due) = self.pins.next().filter(|_| !self.is_closing()) {
            let me = self.as_user(due.owner);
            let held = match me.look_at(&due).await {
                Ok(held) => held,
                Err(error) if is_passing(error.kind) => {
                    self.pins.wait(&due, error.to_string());
                    continue;
                }
                Err(error) => Held::Missing(error.to_string()),
            };
            let held = match due.is_offline {
                true => me.held_offline(&due, held).await,
                false => held,
            };
            self.pins.looked_at(&due, held);
        }
        self.sweep_settled_pins().await;
    }

    /// The same of a pin for reading without a server, after that was provided for.
    async fn held_offline(&self, due: &Due, held: Held) -> Held {
        match self.keep_for_offline(due, &held).await {
            Err(error) if held == Held::Whole => {
                Held::Missing(format!("it cannot be read without its server: {error}"))
            }
            _ => held,
        }
    }

    /// Fetches what is missing of an object, and its promise.
    async fn look_at(&self, due: &Due) -> Result<Held> {
        self.mark_if_pinned(due.key);
        let vnode = self.vnode(due.key);
        let status = self.status(&vnode).await?;
        let volume = self.volume_of(due.key).await?;
        let held = match status.kind {
            FileKind::Directory => self.directory_pinned(due, &vnode, &volume).await?,
            FileKind::Symlink if is_mount_point(&status) => Held::Whole,
            FileKind::Symlink => self.link_text(&vnode).await.map(|_| Held::Whole)?,
            FileKind::File => self.file_pinned(due, &vnode, &status).await?,
            FileKind::Invalid => Held::Missing("it is of no known type".into()),
        };
        // A break since then has it looked at again.
        let is_promised = vnode.fresh_status(&volume, self.now()).is_some();
        Ok(match held {
            Held::Whole if !is_promised => Held::Missing("its server promises to tell of no change".into()),
            held => held,
        })
    }

    /// It may have left the pins since it was taken to be looked at.
    fn mark_if_pinned(&self, key: Key) {
        self.mark_pinned(key, true);
        if !self.pins.has(key) {
            self.mark_pinned(key, false);
        }
    }

    async fn directory_pinned(&self, due: &Due, vnode: &Arc<Vnode>, volume: &Arc<Volume>) -> Result<Held> {
        let key = due.key;
        let children = self.with_directory(vnode, |blob| {
            let entries = blob.entries(0).filter(|entry| !matches!(entry.name, b"." | b".."));
            entries.map(|entry| key.sibling(entry.vnode, entry.unique)).collect::<BTreeSet<Key>>()
        });
        let children = children.await?;
        for child in children.iter().filter_map(|child| self.vnodes.peek(*child)) {
            self.found_in(&child, key);
        }
        let length =
            vnode.state().directory.as_ref().map_or(0, |directory| directory.blob().as_bytes().len());
        if !self.pins.reserve_memory(due, length as u64) {
            // Its names may leave memory.
            vnode.state().is_pinned = false;
            return Ok(Held::Missing("the names of all pinned directories are too much for memory".into()));
        }
        if !due.is_recursive {
            return Ok(Held::Whole);
        }
        let listed = self.pins.list(due, &children);
        listed.added.iter().for_each(|key| self.mark_if_pinned(*key));
        listed.dropped.iter().for_each(|key| self.mark_pinned(*key, false));
        self.forget_for_offline(due, &listed.dropped).await;
        for keys in listed.added.chunks(fs::FIDS_MAX) {
            // What does not come is fetched by itself.
            if self.bulk_status_in(volume, keys, Some(key)).await.is_err() {
                break;
            }
        }
        Ok(match listed.left_out {
            0 => Held::Whole,
            count => Held::Missing(format!(
                "{count} names of a directory are left out: there are too many pinned objects"
            )),
        })
    }

    async fn file_pinned(&self, due: &Due, vnode: &Arc<Vnode>, status: &Status) -> Result<Held> {
        let wanted = Access { read: true, ..Access::default() };
        self.require(vnode, status, "pin", |rights| may(status, rights, wanted)).await?;
        if !self.pins.reserve(due, status.length) {
            let most = self.pins.bytes_max();
            return Ok(Held::Missing(format!("pins may take {most} bytes, half of the cache")));
        }
        if self.is_kept_whole(due.key, status.data_version, status.length) {
            return Ok(Held::Whole);
        }
        let handle = self.files.open_handle(vnode, status, OpenFlags::READ, self.context.user).await?;
        let fetched = self.fetch_whole(&handle).await;
        let is_complete = handle.data().content().is_complete();
        self.release(handle.id).await?;
        fetched?;
        Ok(match is_complete {
            true => Held::Whole,
            false => Held::Missing("it changed while it was fetched".into()),
        })
    }

    /// Fetches what is missing of an open file, as long as it is pinned.
    async fn fetch_whole(&self, handle: &Arc<Handle>) -> Result<()> {
        let chunk = self.chunk_bytes();
        let mut at = 0;
        while at < handle.data().content().length && self.pins.has(handle.vnode.key) {
            if self.is_closing() {
                return Err(VenusError::new(ErrorKind::ServerUnreachable, "pin").of(handle.vnode.key.fid));
            }
            self.fetch_range(handle, at..at + chunk).await?;
            at += chunk;
        }
        Ok(())
    }
}

/// True if the same may succeed soon.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ServerUnreachable | ErrorKind::VolumeBusy | ErrorKind::VolumeOffline)
}
