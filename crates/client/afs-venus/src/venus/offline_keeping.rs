//! Keeping of what reading without a promise needs: a record of each object of a pin that is for that, of its volume, and the
//! contents of directories.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{Fid, Rights};
use bytes::Bytes;

use crate::cache::{OfflineObject, OfflineReader, OfflineRecord, OfflineSite, OfflineVolume};
use crate::calls::CallContext;
use crate::error::Result;
use crate::identity::TokenId;
use crate::key::Key;
use crate::location::{Group, GroupSite, ServerName, Volume};
use crate::pins::{Due, Held, Pin};
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// Keeps the record of an object that is complete and promised, for the user of the pin; of one that is not, what was kept for
    /// that pin is removed.
    pub(super) async fn keep_for_offline(&self, due: &Due, held: &Held) -> Result<()> {
        let Some(owner) = due.owner else { return Ok(()) };
        let is_of_pin = |reader: &OfflineReader| (reader.owner, reader.root) == (owner, due.root.fid);
        // Without a token a refusal says nothing of the user's rights.
        let has_token = self.token_for(due.key.cell) != TokenId::NONE;
        if *held != Held::Whole {
            let is_refused = |reader: &OfflineReader| is_of_pin(reader) && (has_token || !reader.had_token);
            return self.forget_readers(due.key, is_refused).await;
        }
        let (vnode, volume) = (self.vnode(due.key), self.volume_of(due.key).await?);
        let Some(status) = vnode.fresh_status(&volume, self.now()) else { return Ok(()) };
        // Of files and links the rights follow from the directory.
        let mut rights = self.rights_on(&vnode, &volume, &status, |_| false).await?;
        let contents = match status.kind {
            FileKind::Directory => contents_of(&vnode, &status),
            _ => {
                rights = rights & Rights::ADMINISTER;
                None
            }
        };
        if let Some(contents) = contents {
            self.files.keep_contents(due.key, status.data_version, contents).await?;
        }
        let mut readers = match self.files.offline(due.key).await? {
            Some(OfflineRecord::Object(record)) => record.readers,
            _ => Vec::new(),
        };
        let before =
            readers.iter().copied().find(|reader| is_of_pin(reader) && reader.had_token && !has_token);
        readers.retain(|reader| !is_of_pin(reader));
        let now = OfflineReader { owner, root: due.root.fid, rights, had_token: has_token };
        readers.push(before.unwrap_or(now));
        let link = vnode.state().link.clone().unwrap_or_default();
        let status = Status { caller_access: Rights::NONE, ..status };
        let record = OfflineObject { status, promised_at: self.wall(), link, readers };
        self.files.keep_offline(due.key, OfflineRecord::Object(record)).await?;
        let whole = Key::new(due.key.cell, Fid::whole_volume(volume.id));
        self.files.keep_offline(whole, OfflineRecord::Volume(self.described(&volume))).await
    }

    /// Removes what was kept for a pin of objects that left it.
    pub(super) async fn forget_for_offline(&self, due: &Due, dropped: &[Key]) {
        for key in dropped.iter().filter(|_| due.is_offline) {
            let is_of_pin =
                |reader: &OfflineReader| (Some(reader.owner), reader.root) == (due.owner, due.root.fid);
            if let Err(error) = self.forget_readers(*key, is_of_pin).await {
                tracing::warn!(fid = %key.fid, %error, "the record of a pinned file that was removed stays in the cache");
            }
        }
    }

    /// Removes readers from a record; without any left, the record.
    async fn forget_readers(&self, key: Key, is_gone: impl Fn(&OfflineReader) -> bool) -> Result<()> {
        let Some(OfflineRecord::Object(mut record)) = self.files.offline(key).await? else { return Ok(()) };
        let before = record.readers.len();
        record.readers.retain(|reader| !is_gone(reader));
        match record.readers.len() {
            0 => self.files.forget_offline(key).await,
            left if left == before => Ok(()),
            _ => self.files.keep_offline(key, OfflineRecord::Object(record)).await,
        }
    }

    /// Removes what was kept for a pin of all objects but these.
    pub(super) async fn sweep_offline(&self, pin: &Pin, but: &BTreeSet<Key>) -> Result<()> {
        let all = self.files.all_offline().await?;
        for key in all.iter().filter(|key| !but.contains(key)) {
            let is_of_pin =
                |reader: &OfflineReader| (Some(reader.owner), reader.root) == (pin.owner, pin.root.fid);
            self.forget_readers(*key, is_of_pin).await?;
        }
        // Volumes of which nothing is left.
        let all = self.files.all_offline().await?;
        let is_whole = |key: &Key| key.fid == Fid::whole_volume(key.fid.volume);
        let in_use: BTreeSet<_> = all.iter().filter(|key| !is_whole(key)).map(|key| key.volume()).collect();
        for key in all.iter().filter(|key| is_whole(key) && !in_use.contains(&key.volume())) {
            self.files.forget_offline(*key).await?;
        }
        Ok(())
    }

    /// Sweeps what objects that left a pin while no mount ran have left.
    pub(super) async fn sweep_settled_pins(&self) {
        while let Some((pin, objects)) = self.pins.take_unswept() {
            if let Err(error) = self.sweep_offline(&pin, &objects).await {
                tracing::warn!(%error, "records of pinned files that are not needed any more stay in the cache");
            }
        }
    }

    /// Takes up the volumes of earlier mounts, and pins what was kept: after this it can be found without any server.
    pub(super) async fn restore_offline(&self) {
        if !self.pins.any_offline() {
            return;
        }
        let restored = async {
            for key in self.files.all_offline().await? {
                match self.files.offline(key).await? {
                    Some(OfflineRecord::Volume(volume)) => self.restore_volume(key, volume).await?,
                    Some(OfflineRecord::Object(_)) => self.files.set_pinned(key, true),
                    None => {}
                }
            }
            Ok::<_, crate::error::VenusError>(())
        };
        if let Err(error) = restored.await {
            tracing::warn!(%error, "what was pinned for reading without its server cannot be found");
        }
    }

    async fn restore_volume(&self, whole: Key, kept: OfflineVolume) -> Result<()> {
        let OfflineVolume { kind, ids, flags, name, sites } = kept;
        let mut known = Vec::new();
        for OfflineSite { flags, server, addresses } in sites {
            let Some(first) = addresses.first() else { continue };
            let named =
                server.map_or(ServerName::Address(*first), |(uuid, unique)| ServerName::Uuid(uuid, unique));
            self.calls.restore_server(whole.cell, named, &addresses)?;
            known.push(GroupSite { server: named, flags });
        }
        let group = Arc::new(Group { name, ids, flags, sites: known });
        let context = CallContext::ANONYMOUS;
        // It may be elsewhere by now: then its servers say so, and its location is queried while they do not reply.
        self.calls.learn_volume(&context, whole.cell, &group, whole.fid.volume, kind).await.map(drop)
    }

    fn described(&self, volume: &Volume) -> OfflineVolume {
        let group = volume.group();
        let servers = self.location.servers();
        let site = |site: &GroupSite| {
            let (server, addresses) = match site.server {
                ServerName::Address(address) => (None, vec![address]),
                ServerName::Uuid(uuid, unique) => {
                    let known = servers.current(volume.cell, uuid, unique);
                    let peers = known.iter().flat_map(|server| server.addresses()).map(|at| at.peer);
                    (Some((uuid, unique)), peers.filter_map(of_four_bytes).collect())
                }
            };
            OfflineSite { flags: site.flags, server, addresses }
        };
        OfflineVolume {
            kind: volume.kind,
            ids: group.ids,
            flags: group.flags,
            name: group.name.clone(),
            sites: group.sites.iter().map(site).collect(),
        }
    }
}

fn of_four_bytes(peer: SocketAddr) -> Option<std::net::Ipv4Addr> {
    match peer.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// The contents of a directory, if they are here as of this status.
fn contents_of(vnode: &Vnode, status: &Status) -> Option<Bytes> {
    let state = vnode.state();
    let held = state.directory.as_ref().filter(|held| held.version == status.data_version)?;
    Some(Bytes::copy_from_slice(held.blob().as_bytes()))
}
