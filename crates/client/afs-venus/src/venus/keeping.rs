//! The walk that brings what is kept and is missing: looks at what has changed, one object after the other, and fetches it, with what
//! is needed to read it while no server replies.
//!
//! It acts for the user who has made the pin, so that nothing comes into the cache that the user may not read.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;
use afs_wire::fs::{self, FileKind, Status};

use crate::api::OpenFlags;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::key::Key;
use crate::location::Volume;
use crate::residency::{Due, Held, Residency};
use crate::venus::{Shared, Venus};
use crate::vnode::{Vnode, is_mount_point};

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
            let waits_for_cells = !venus.pins.without_cell().is_empty();
            drop(venus);
            match waits_for_cells {
                true => drop(select(select(wake, end), env.sleep(FIND_AGAIN)).await),
                false => drop(select(wake, end).await),
            }
            env.sleep(PAUSE).await;
        }
    }

    async fn look_at_all_due(&self) {
        self.pins.begin_pass();
        while let Some(due) = self.pins.next().filter(|_| !self.is_closing()) {
            self.apply_pins(due.key);
            let look = Look { venus: self.as_user(due.pin.owner), vnode: self.vnode(due.key), due: &due };
            self.pins.looked_at(&due, look.held().await.map_err(|error| error.to_string()));
        }
        if self.pins.take_known()
            && let Err(error) = self.sweep_offline().await
        {
            tracing::warn!(%error, "records of pinned files that are not needed any more stay in the cache");
        }
    }
}

/// A look at an object of a pin, as the user who has made the pin.
pub(super) struct Look<'a> {
    pub(super) venus: Venus,
    pub(super) vnode: Arc<Vnode>,
    pub(super) due: &'a Due,
}

impl Look<'_> {
    /// Fetches what is missing of the object, its promise, and what is needed to read it while its server is away. The error: that is not
    /// possible at present.
    async fn held(&self) -> Result<Held> {
        self.find_way().await?;
        let held = match self.fetched().await {
            Err(error) if !is_passing(error.kind) => Held::Missing(error.to_string()),
            held => held?,
        };
        Ok(match self.keep_record(&held).await {
            Err(error) if held == Held::Whole => {
                Held::Missing(format!("it cannot be read without its server: {error}"))
            }
            _ => held,
        })
    }

    /// Finds what the path of the pin leads through, if that is not known yet. The error: it cannot be known at present.
    async fn find_way(&self) -> Result<()> {
        let Look { venus, due, .. } = self;
        if !due.needs_way {
            return Ok(());
        }
        let way = match venus.way_to(&due.pin.path).await {
            Ok((_, way)) => way,
            Err(error) if is_passing(error.kind) || error.kind == ErrorKind::AccessDenied => {
                return Err(error);
            }
            // The path leads nowhere any more; what was pinned may be elsewhere.
            Err(_) => Vec::new(),
        };
        venus.pins.set_way(due.number, &way);
        way.into_iter().for_each(|key| venus.apply_pins(key));
        Ok(())
    }

    async fn fetched(&self) -> Result<Held> {
        let Look { venus, vnode, .. } = self;
        let status = venus.status(vnode).await?;
        let volume = venus.volume_of(vnode.key).await?;
        let held = match status.kind {
            FileKind::Directory => self.directory(&volume).await?,
            FileKind::Symlink if is_mount_point(&status) => Held::Whole,
            FileKind::Symlink => venus.link_text(vnode).await.map(|_| Held::Whole)?,
            FileKind::File => self.file(&status).await?,
            FileKind::Invalid => Held::Missing("it is of no known type".into()),
        };
        // A break since then has it looked at again.
        let is_promised = vnode.fresh_status(&volume, venus.now()).is_some();
        Ok(match held {
            Held::Whole if !is_promised => Held::Missing("its server promises to tell of no change".into()),
            held => held,
        })
    }

    async fn directory(&self, volume: &Arc<Volume>) -> Result<Held> {
        let Look { venus, vnode, due } = self;
        let key = due.key;
        let children = venus.with_directory(vnode, |blob| {
            let entries = blob.entries(0).filter(|entry| !matches!(entry.name, b"." | b".."));
            entries.map(|entry| key.sibling(entry.vnode, entry.unique)).collect::<BTreeSet<Key>>()
        });
        let children = children.await?;
        for child in children.iter().filter_map(|child| venus.vnodes.peek(*child)) {
            venus.found_in(&child, key);
        }
        let length =
            vnode.state().directory.as_ref().map_or(0, |directory| directory.blob().as_bytes().len());
        if !venus.pins.reserve(due, length as u64) {
            // Its names may leave memory.
            vnode.state().residency = Residency::Cached;
            return Ok(Held::Missing("the names of all pinned directories are too much for memory".into()));
        }
        if !due.is_recursive {
            return Ok(Held::Whole);
        }
        let listed = venus.pins.list(due, &children);
        listed.added.iter().chain(&listed.dropped).for_each(|key| venus.apply_pins(*key));
        self.forget_records(&listed.dropped).await;
        for keys in listed.added.chunks(fs::FIDS_MAX) {
            // What does not come is fetched by itself.
            if venus.bulk_status_in(volume, keys, Some(key)).await.is_err() {
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

    async fn file(&self, status: &Status) -> Result<Held> {
        let Look { venus, vnode, due } = self;
        venus.require_to_read(vnode, status, "pin").await?;
        if !venus.pins.reserve(due, status.length) {
            let most = venus.pins.bytes_max;
            return Ok(Held::Missing(format!("pins may take {most} bytes, half of the cache")));
        }
        if venus.files.kept_bytes(due.key, status.data_version) == Some(status.length) {
            return Ok(Held::Whole);
        }
        let flags = OpenFlags::READ;
        let handle = venus.files.open_handle(vnode, status, flags, venus.context.user).await?;
        let fetched = self.fetch_whole(&handle).await;
        let is_complete = handle.data().content().is_complete();
        venus.release(handle.id).await?;
        fetched?;
        Ok(match is_complete {
            true => Held::Whole,
            false => Held::Missing("it changed while it was fetched".into()),
        })
    }

    /// Fetches what is missing of an open file, as long as it is pinned.
    async fn fetch_whole(&self, handle: &Arc<Handle>) -> Result<()> {
        let Look { venus, due, .. } = self;
        let chunk = venus.chunk_bytes();
        let mut at = 0;
        while at < handle.data().content().length && venus.pins.residency(due.key).is_some() {
            if venus.is_closing() {
                return Err(VenusError::new(ErrorKind::ServerUnreachable, "pin").of(due.key.fid));
            }
            venus.fetch_range(handle, at..at + chunk).await?;
            at += chunk;
        }
        Ok(())
    }
}

/// True if the same may succeed soon.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ServerUnreachable | ErrorKind::VolumeBusy | ErrorKind::VolumeOffline)
}
