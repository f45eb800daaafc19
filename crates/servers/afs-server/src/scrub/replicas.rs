//! Replicas of damaged file data at the other servers of the cell.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Rx};
use afs_volume::{BadData, BadPart};
use afs_wire::ids::{Fid, KindNumber, VolumeId, VolumeKind};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{Entry, GetEntryByIdN, SiteFlags};
use afs_wire::vol::{FetchPart, PART_MAX};
use bytes::{Bytes, BytesMut};

use crate::remote::DatabaseServers;
use crate::volumes::OwnSecurity;

/// Time-outs for another server.
const PATIENCE: CallOptions =
    CallOptions { dead: Some(Duration::from_secs(15)), hard: Some(Duration::from_secs(120)) };

/// The other servers of the cell.
pub struct Replicas {
    locations: DatabaseServers,
    rx: Rx,
    security: OwnSecurity,
    port: u16,
}

/// A volume at another site that may have the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) server: Ipv4Addr,
    pub(super) volume: VolumeId,
}

impl Replicas {
    /// Uses `locations` for the sites of volumes, and the volume services there, at `port`.
    pub fn new(locations: DatabaseServers, rx: Rx, security: OwnSecurity, port: u16) -> Self {
        Replicas { locations, rx, security, port }
    }

    /// The sites of the volumes of a group.
    pub(super) async fn sources(&self, parent: VolumeId) -> Result<Vec<Source>, CallError> {
        let reply = self.locations.call(&GetEntryByIdN { volume: parent, kind: KindNumber::ANY }).await?;
        Ok(sources(&reply.entry))
    }

    /// The damaged bytes, as the source has them.
    pub(super) async fn read(&self, source: Source, bad: &BadData) -> Result<Bytes, CallError> {
        let BadPart::Chunk { position, len, .. } = bad.part else { return Ok(Bytes::new()) };
        let peer = SocketAddr::new(IpAddr::V4(source.server), self.port);
        let there = self.rx.connection(peer, ServiceId::VOLUME, (self.security)()).with_options(PATIENCE);
        let fid = Fid { volume: source.volume, vnode: bad.vnode, unique: bad.unique };
        let (mut bytes, end) = (BytesMut::new(), position + len);
        loop {
            let position = position + bytes.len() as u64;
            let length = (end - position).min(PART_MAX as u64) as u32;
            let part = FetchPart { fid, data_version: bad.data_version, position, length };
            let reply = there.call(&part).await?;
            bytes.extend_from_slice(reply.bytes.as_bytes());
            if bytes.len() as u64 == len || reply.bytes.as_bytes().is_empty() {
                return Ok(bytes.freeze());
            }
        }
    }
}

/// Read-only copies first: those at other servers share no data with the damaged volume.
fn sources(entry: &Entry) -> Vec<Source> {
    let of = |kind: VolumeKind, flag: SiteFlags| {
        let volume = entry.id(kind);
        let there = entry.sites.iter().filter(move |site| site.flags.contains(flag) && volume.0 != 0);
        there.map(move |site| Source { server: site.server, volume })
    };
    let read_only = of(VolumeKind::ReadOnly, SiteFlags::RO_VOLUME);
    read_only.chain(of(VolumeKind::ReadWrite, SiteFlags::RW_VOLUME)).collect()
}
