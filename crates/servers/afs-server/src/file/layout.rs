//! GetLayout, a call of our own: where the bytes of files are, for clients that read them at the drives
//! (docs/protocol/extensions.md "Layouts").

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use afs_datapath::capability::{Access, ByteRange, Capability, Group, HolderId, Terms};
use afs_datapath::session::Security;
use afs_drive::{DriveId, Pieces};
use afs_remote::{DirectDrive, RemoteOptions, Sealing};
use afs_rpc::{EnvExt, Table};
use afs_volume::{DataRoute, Layout, LocatedChunk};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, CapabilityAccess, CapabilityArguments, CapabilitySecret, DriveCapability, FileLayout,
    LAYOUT_DRIVES_MAX, LISTED_PARTS_MAX, LayoutDrive, LayoutOutcome, LayoutOutcomes, LayoutRequest,
    LayoutRequests,
};
use afs_wire::ids::{DataVersion, Fid};
use afs_wire::xdr::{BoundedVec, Encode, Fixed};

use super::addresses::Buckets;
use super::capabilities::{Wanted, group};
use super::object::{Found, is_file};
use super::server::FileServer;
use crate::call_context::CallContext;
use crate::data_path::lifetime;

/// How long a capability for a drive is valid that cannot ask about rights, in seconds: so late is a change of them that the drive
/// could not be told of.
const LIFETIME: u64 = 60;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::GetLayout| async move {
        server.get_layouts(&context, &call.wanted).await
    })
}

/// Bounds of a layout.
#[derive(Clone, Copy)]
struct Most {
    parts: usize,
    /// Reads of the index, each for 64 MiB.
    reads: usize,
}

/// Bytes of a file that are to be laid out: 512 MiB of one file, 64 MiB of each of several.
const READS_OF_ONE: usize = 8;

/// A drive to which the client is sent.
pub(super) struct Sent {
    pub direct: DirectDrive,
    pub sealing: Sealing,
    /// Its place in the reply.
    pub place: u32,
}

/// The drives of a layout.
pub(super) type Sents = BTreeMap<DriveId, Sent>;

impl FileServer {
    async fn get_layouts(
        &self,
        context: &CallContext,
        wanted: &LayoutRequests,
    ) -> Result<fs::GetLayoutReply, AbortCode> {
        let Some(parts) = LISTED_PARTS_MAX.checked_div(wanted.len()) else {
            return Err(Errno::EINVAL.to_uae());
        };
        let most = Most { parts, reads: if wanted.len() == 1 { READS_OF_ONE } else { 1 } };
        self.recall_many(context, wanted.iter().map(|request| request.fid)).await;
        let mut outcomes = Vec::with_capacity(wanted.len());
        for request in wanted {
            let given = self.get_layout(context, request, most).await.map_err(|code| context.code(code));
            let outcome = LayoutOutcome::from(given);
            self.audit_capability(context, request.fid, outcome.error);
            outcomes.push(outcome);
        }
        Ok(fs::GetLayoutReply { outcomes: LayoutOutcomes::first_of(outcomes) })
    }

    async fn get_layout(
        &self,
        context: &CallContext,
        wanted: &LayoutRequest,
        most: Most,
    ) -> Result<FileLayout, AbortCode> {
        let LayoutRequest { fid, version, start, end } = *wanted;
        self.lay_out(context, (fid, version), start..end, most).await?.into_layout()
    }

    /// As for a capability, the rights are looked at twice: after the first look the drives tell their generations, so that a
    /// change after the second one revokes what is sealed here.
    async fn lay_out(
        &self,
        context: &CallContext,
        (fid, version): (Fid, DataVersion),
        range: Range<u64>,
        most: Most,
    ) -> Result<Laid, AbortCode> {
        let none = Errno::EOPNOTSUPP.to_uae();
        let wanted = Wanted::of(CapabilityAccess::READ)?;
        let found = self.find_to_send(context, fid, wanted).await?;
        let group = group(fid, &found, wanted.reach(context, &found)?);
        let layout = self.long_layout(&found, (fid, version), range.clone(), most).await?;
        let sents = self.drives_of(&found, &layout).await;
        let buckets = self.buckets_of(&found, drives_in(&layout), sents.len());
        if sents.is_empty() && buckets.is_empty() {
            return Err(none);
        }
        self.data_path.layouts().enter(fid, found.directory(fid.volume)).await;
        let found = self.find_unchanged(context, (fid, wanted), group).await?;
        let layout = self.long_layout(&found, (fid, version), range, most).await?;
        let seconds = self.seconds_of_layout(context)?;
        let mut drives: Vec<_> = sents.values().collect();
        drives.sort_by_key(|sent| sent.place);
        let drives =
            drives.into_iter().map(|sent| self.send(sent, group, seconds)).collect::<Option<Vec<_>>>();
        let drives = [drives.ok_or(none)?, buckets.offers(seconds)].concat();
        let route = found.header.route;
        Ok(Laid { layout, drives, sents, buckets, group, file: fid, route })
    }

    /// The file again, if the caller's rights still reach as far.
    pub(super) async fn find_unchanged(
        &self,
        context: &CallContext,
        (fid, wanted): (Fid, Wanted),
        group: Group,
    ) -> Result<Found, AbortCode> {
        let found = self.find_to_send(context, fid, wanted).await?;
        match self::group(fid, &found, wanted.reach(context, &found)?) == group {
            true => Ok(found),
            false => Err(AbortCode::VBUSY),
        }
    }

    /// How long the capabilities of a layout last.
    pub(super) fn seconds_of_layout(&self, context: &CallContext) -> Result<u64, AbortCode> {
        match lifetime(&context.identity, self.env.wall().secs).min(LIFETIME) {
            0 => Err(Errno::EACCES.to_uae()),
            seconds => Ok(seconds),
        }
    }

    /// A file that the caller may read, of a volume whose bytes may be read at the drives.
    pub(super) async fn find_to_send(
        &self,
        context: &CallContext,
        fid: Fid,
        wanted: Wanted,
    ) -> Result<Found, AbortCode> {
        let found = self.find_for(context, fid, wanted).await?;
        if !is_file(&found.record) {
            return Err(Errno::EISDIR.to_uae());
        }
        wanted.reach(context, &found)?;
        match found.header.route {
            DataRoute::Drives | DataRoute::Commanded => Ok(found),
            DataRoute::Calls | DataRoute::Server => Err(Errno::EOPNOTSUPP.to_uae()),
        }
    }

    pub(super) async fn layout(
        &self,
        found: &Found,
        (fid, version): (Fid, DataVersion),
        Range { start, end }: Range<u64>,
        parts_max: usize,
    ) -> Result<Layout, AbortCode> {
        let read = self.read(&found.served.volume, move |volume| volume.layout(fid, start, end, parts_max));
        let layout = read.await.map_err(|error| self.code(fid, &error))?;
        match layout.record.data_version == version {
            true => Ok(layout),
            false => Err(Errno::EAGAIN.to_uae()),
        }
    }

    /// As [`FileServer::layout`], by several reads, because one takes a thread no longer than that of 64 MiB does.
    async fn long_layout(
        &self,
        found: &Found,
        object: (Fid, DataVersion),
        range: Range<u64>,
        most: Most,
    ) -> Result<Layout, AbortCode> {
        let mut layout = self.layout(found, object, range.clone(), most.parts).await?;
        for _ in 1..most.reads {
            let left = most.parts - layout.parts.len().min(most.parts);
            if left == 0 || layout.end >= range.end.min(layout.record.length) {
                break;
            }
            let next = self.layout(found, object, layout.end..range.end, left).await?;
            layout.parts.extend(next.parts);
            layout.end = next.end;
        }
        Ok(layout)
    }

    /// The drives of a layout that can be told of revocations now.
    pub(super) async fn drives_of(&self, found: &Found, layout: &Layout) -> Sents {
        let (partition, mut sents) = (found.served.site.partition, Sents::new());
        for id in drives_in(layout) {
            if sents.contains_key(&id) || sents.len() >= LAYOUT_DRIVES_MAX {
                continue;
            }
            let Some(direct) = self.partitions.direct(partition, id) else { continue };
            if let Some(sent) = self.sent_to(found, direct, sents.len() as u32).await {
                sents.insert(id, sent);
            }
        }
        sents
    }

    /// A drive, if a client may be sent there for a file and it can be told of revocations now.
    pub(super) async fn sent_to(&self, found: &Found, direct: DirectDrive, place: u32) -> Option<Sent> {
        let is_open = self.guard.policy().is_open_to_all(found.header.name.as_str());
        if direct.options().security == Security::Clear && !is_open || !has_address(direct.options()) {
            return None;
        }
        let sealing = direct.sealing().await?;
        Some(Sent { direct, sealing, place })
    }

    /// What a client needs for a drive. `None` for one without an address in the reply's form.
    pub(super) fn send(&self, sent: &Sent, group: Group, seconds: u64) -> Option<LayoutDrive> {
        let (options, sealing) = (sent.direct.options(), &sent.sealing);
        let Sealing { key, generation, .. } = sealing;
        let capability = Capability {
            drive: key.drive(),
            epoch: key.epoch(),
            group: Group::Tagged(key.tag(group)),
            access: Access::READ,
            range: ByteRange::ALL,
            expires: self.env.wall().secs + seconds,
            generation: *generation,
            holder: HolderId(u128::from_le_bytes(self.env.random_bytes())),
        };
        offer(options, sealing, capability, seconds)
    }
}

/// Whether a drive has an address in the form of replies, which is IPv4 as everywhere in AFS.
fn has_address(options: &RemoteOptions) -> bool {
    options.address.is_ipv4()
}

/// The drives of a layout's chunks, each as often as it has one.
fn drives_in(layout: &Layout) -> impl Iterator<Item = DriveId> {
    layout.parts.iter().flat_map(|part| &part.copies).map(|(at, _)| at.drive)
}

/// What a client needs to use a capability at its drive. `None` for a drive without an address in the reply's form.
pub(super) fn offer(
    options: &RemoteOptions,
    Sealing { key, .. }: &Sealing,
    capability: Capability,
    seconds: u64,
) -> Option<LayoutDrive> {
    let IpAddr::V4(address) = options.address.ip() else { return None };
    let (clear, fingerprint) = match options.security {
        Security::Clear => (true, [0; 32]),
        Security::Tls(fingerprint) => (false, fingerprint.0),
    };
    let secret = CapabilitySecret(*key.seal(&capability).expose());
    let arguments = CapabilityArguments::new(capability.to_bytes()).ok()?;
    Some(LayoutDrive {
        address,
        port: options.address.port(),
        clear,
        drive: Fixed(key.drive().0.to_be_bytes()),
        fingerprint: Fixed(fingerprint),
        capability: DriveCapability { arguments, secret, seconds: seconds as u32 },
    })
}

/// What a client gets of a file.
pub(super) struct Laid {
    pub layout: Layout,
    /// As the reply has them.
    pub drives: Vec<LayoutDrive>,
    pub sents: Sents,
    pub buckets: Buckets,
    pub group: Group,
    pub file: Fid,
    pub route: DataRoute,
}

impl Sent {
    /// What may be read of a chunk in which a part of a file is. A drive sends whole pieces: nothing, if the file has a part of a
    /// piece, because other bytes would come along.
    pub fn terms(&self, at: LocatedChunk, offset: u32, len: u32, file: Fid) -> Option<Terms> {
        let range = of_whole_pieces(at, offset, len)?;
        let Sealing { key, generation, .. } = &self.sealing;
        let (store, file) = (self.direct.options().store, key.tag(Group::File(file)));
        Some(Terms { store, start: range.start, end: range.end, file, generation: *generation })
    }
}

/// The range of a chunk in which a part of a file is; `None` if it shares a piece with other bytes.
pub(super) fn of_whole_pieces(at: LocatedChunk, offset: u32, len: u32) -> Option<Range<u32>> {
    let range = offset..offset.checked_add(len)?;
    (Pieces::covering(at.chunk.len, &range).ok()? == range).then_some(range)
}

pub(super) fn bounded<T, const MAX: usize>(items: Vec<T>) -> Result<BoundedVec<T, MAX>, AbortCode> {
    BoundedVec::try_from(items).map_err(|_| Errno::E2BIG.to_uae())
}
