//! Addresses that the file server signs, by which clients fetch chunks from object stores (docs/protocol/extensions.md "Commands").

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_drive::{Addressed, DriveId};
use afs_volume::{DataRoute, LocatedChunk};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    CapabilityAccess, ChunkToFetch, CommandReply, DriveCapability, LAYOUT_DRIVES_MAX, LayoutDrive,
    OBJECT_ADDRESS_LIFE_MAX, ObjectAddress,
};
use afs_wire::ids::Fid;
use afs_wire::xdr::{ByteString, Fixed};

use super::capabilities::Wanted;
use super::object::Found;
use super::server::FileServer;
use crate::call_context::CallContext;
use crate::data_path::lifetime;

/// The buckets of a layout, each with its place in the reply.
pub(super) struct Buckets(BTreeMap<DriveId, (Arc<dyn Addressed>, u32)>);

impl FileServer {
    /// The rights are decided at each call. An address cannot be revoked, so its life is short, and it is for one chunk that is
    /// this part of the file and nothing else.
    pub(super) async fn address(
        &self,
        context: &CallContext,
        (fid, bucket): (Fid, Fixed<16>),
        wanted_chunk: &ChunkToFetch,
    ) -> Result<CommandReply, AbortCode> {
        let wanted = Wanted::of(CapabilityAccess::READ)?;
        let found = self.find_to_send(context, fid, wanted).await?;
        if found.header.route != DataRoute::Drives {
            return Err(Errno::EOPNOTSUPP.to_uae());
        }
        let end = wanted_chunk.position.checked_add(1).ok_or(Errno::EINVAL.to_uae())?;
        let layout = self.layout(&found, (fid, wanted_chunk.version), wanted_chunk.position..end, 1).await?;
        let none = Errno::ENXIO.to_uae();
        let part =
            layout.parts.iter().find(|part| part.range().contains(&wanted_chunk.position)).ok_or(none)?;
        let is_it = |(at, offset): &&(LocatedChunk, u32)| {
            name_of(at.drive) == bucket
                && at.chunk.to_bytes() == wanted_chunk.chunk.0
                && is_whole(*at, *offset, part.len)
        };
        let (at, _) = part.copies.iter().find(is_it).ok_or(none)?;
        let bucket = self.bucket(&found, at.drive).ok_or(none)?;
        let life = lifetime(&context.identity, self.env.wall().secs).min(OBJECT_ADDRESS_LIFE_MAX.into());
        let seconds = u32::try_from(life).ok().filter(|life| *life > 0).ok_or(Errno::EACCES.to_uae())?;
        let signed = bucket.address(at.chunk, seconds).await.ok_or(none)?;
        // Looked at again, so that none leaves after the reply to a change of the rights.
        self.find_to_send(context, fid, wanted).await?;
        let address = ObjectAddress(ByteString::new(signed.address.as_bytes()).map_err(|_| none)?);
        Ok(CommandReply { address, start: signed.range.start, length: at.chunk.len, seconds })
    }

    /// A bucket to which the clients of a volume may be sent.
    fn bucket(&self, found: &Found, drive: DriveId) -> Option<Arc<dyn Addressed>> {
        let bucket = self.partitions.addressed(found.served.site.partition, drive)?;
        let is_open = || self.guard.policy().is_open_to_all(found.header.name.as_str());
        (!bucket.is_clear() || is_open()).then_some(bucket)
    }

    /// The buckets that chunks are in, of a volume whose bytes may be read there; so many drives are in the reply before them.
    pub(super) fn buckets_of(
        &self,
        found: &Found,
        drives: impl Iterator<Item = DriveId>,
        before: usize,
    ) -> Buckets {
        let mut buckets = BTreeMap::new();
        let are_read = found.header.route == DataRoute::Drives;
        for id in drives.filter(|_| are_read) {
            let place = before + buckets.len();
            if place < LAYOUT_DRIVES_MAX
                && !buckets.contains_key(&id)
                && let Some(bucket) = self.bucket(found, id)
            {
                buckets.insert(id, (bucket, place as u32));
            }
        }
        Buckets(buckets)
    }
}

impl Buckets {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As the reply has them, in the order of their places.
    pub fn offers(&self, seconds: u64) -> Vec<LayoutDrive> {
        let mut places: Vec<_> = self.0.iter().map(|(id, (_, place))| (*place, *id)).collect();
        places.sort_unstable();
        places.into_iter().map(|(_, id)| offer(id, seconds)).collect()
    }

    /// The place of the bucket of a part's copy. A client has to fetch the whole chunk to compare it with its checksum: so none of a chunk that
    /// has other bytes than the part, nor of one that the store does not have yet.
    pub fn place(&self, at: LocatedChunk, offset: u32, len: u32) -> Option<u32> {
        let (bucket, place) = self.0.get(&at.drive)?;
        (is_whole(at, offset, len) && bucket.has(at.chunk)).then_some(*place)
    }
}

fn is_whole(at: LocatedChunk, offset: u32, len: u32) -> bool {
    offset == 0 && len == at.chunk.len
}

/// A bucket in the place of a drive.
fn offer(id: DriveId, seconds: u64) -> LayoutDrive {
    LayoutDrive {
        address: std::net::Ipv4Addr::UNSPECIFIED,
        port: 0,
        clear: false,
        drive: name_of(id),
        fingerprint: Fixed([0; 32]),
        capability: DriveCapability { seconds: seconds as u32, ..DriveCapability::none() },
    }
}

/// A bucket's id in layouts. Those of drives are random.
fn name_of(id: DriveId) -> Fixed<16> {
    Fixed(u128::from(id.0).to_be_bytes())
}
