//! Records for reading without a promise: of each object of a pin for that its status and rights, and the contents of directories; of
//! its volume where it is.

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
use crate::residency::{Held, Residency};
use crate::venus::Venus;
use crate::venus::keeping::Look;
use crate::vnode::Vnode;

impl Look<'_> {
    fn is_of_pin(&self, reader: &OfflineReader) -> bool {
        (Some(reader.owner), reader.root) == (self.due.pin.owner, self.due.pin.fid)
    }

    /// Keeps the record of an object that is complete and promised, for the user of the pin; of one that is not, what was kept for
    /// that pin is removed.
    pub(super) async fn keep_record(&self, held: &Held) -> Result<()> {
        let Look { venus, vnode, due } = self;
        let Some(owner) = due.pin.owner.filter(|_| due.residency == Residency::Offline) else {
            return Ok(());
        };
        // Without a token a refusal says nothing of the user's rights.
        let had_token = venus.token_for(due.key.cell) != TokenId::NONE;
        let outranks = |reader: &OfflineReader| reader.had_token && !had_token;
        if *held != Held::Whole {
            let is_refused = |reader: &OfflineReader| self.is_of_pin(reader) && !outranks(reader);
            return venus.forget_readers(due.key, is_refused).await;
        }
        let volume = venus.volume_of(due.key).await?;
        let Some(status) = vnode.fresh_status(&volume, venus.now()) else { return Ok(()) };
        let mut rights = venus.rights_on(vnode, &volume, &status, |_| false).await?;
        if status.kind != FileKind::Directory {
            // Of files and links the rights follow from the directory.
            rights = rights & Rights::ADMINISTER;
        } else if let Some(contents) = contents_of(vnode, &status) {
            venus.files.keep_contents(due.key, status.data_version, contents).await?;
        }
        let mut readers = match venus.files.offline(due.key).await? {
            Some(OfflineRecord::Object(record)) => record.readers,
            _ => Vec::new(),
        };
        let before = readers.iter().copied().find(|reader| self.is_of_pin(reader) && outranks(reader));
        readers.retain(|reader| !self.is_of_pin(reader));
        readers.push(before.unwrap_or(OfflineReader { owner, root: due.pin.fid, rights, had_token }));
        let link = vnode.state().link.clone().unwrap_or_default();
        let status = Status { caller_access: Rights::NONE, ..status };
        let record = OfflineObject { status, promised_at: venus.wall(), link, readers };
        venus.files.keep_offline(due.key, OfflineRecord::Object(record)).await?;
        let whole = Key::new(due.key.cell, Fid::whole_volume(volume.id));
        venus.files.keep_offline(whole, OfflineRecord::Volume(venus.described(&volume))).await
    }

    /// Removes what was kept for the pin of objects that left it.
    pub(super) async fn forget_records(&self, dropped: &[Key]) {
        for key in dropped.iter().filter(|_| self.due.residency == Residency::Offline) {
            if let Err(error) = self.venus.forget_readers(*key, |reader| self.is_of_pin(reader)).await {
                tracing::warn!(fid = %key.fid, %error, "the record of a pinned file that was removed stays in the cache");
            }
        }
    }
}

impl Venus {
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

    /// Removes what no pin needs: of objects, and of volumes of which nothing is left.
    pub(super) async fn sweep_offline(&self) -> Result<()> {
        for key in self.files.all_offline().await? {
            let is_gone = |reader: &OfflineReader| !self.pins.needs(reader.owner, reader.root, key);
            self.forget_readers(key, is_gone).await?;
        }
        let all = self.files.all_offline().await?;
        let is_whole = |key: &Key| key.fid == Fid::whole_volume(key.fid.volume);
        let in_use: BTreeSet<_> = all.iter().filter(|key| !is_whole(key)).map(|key| key.volume()).collect();
        for key in all.iter().filter(|key| is_whole(key) && !in_use.contains(&key.volume())) {
            self.files.forget_offline(*key).await?;
        }
        Ok(())
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
