//! Fetch of a range of one version from the drives that its layout names, with what only the file server has.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::session::{Error, Handle};
use afs_drive::ChunkRef;
use afs_rpc::sync::OwnedSemaphorePermit;
use afs_rpc::{BoxFuture, CallError, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::fs::{Order, PartToSend};
use afs_wire::ids::DataVersion;
use afs_wire::xdr::Fixed;
use bytes::Bytes;

use super::super::capabilities::Given;
use super::super::connect::STALL;
use super::super::fallback::{Ended, Fallback};
use super::super::link::Link;
use super::super::steps::RATE_MIN;
use super::layout::{Layout, Part, PartCopy, Permission, Place, Segment};
use super::layouts::Key;
use super::server_drives::ServerDrives;
use super::sites::Site;
use crate::calls::Target;
use crate::transfer::{PIECE, Sink, Wanted};

const ZEROS: &[u8] = &[0; PIECE as usize];

/// Bytes of a version from the file server.
pub(crate) trait AtServer: Send + Sync {
    /// All bytes of a small range of the version that is held; `None` if they cannot be had.
    fn bytes<'a>(&'a self, target: &'a Target, wanted: Wanted) -> BoxFuture<'a, Option<Bytes>>;
}

/// What a fetch is for.
pub(super) struct Fetch<'a> {
    pub target: &'a Target,
    wanted: &'a Wanted,
    pub key: Key,
    server: &'a dyn AtServer,
}

impl ServerDrives {
    /// Gives a sink all bytes of a range of a version. Gives the number of those that came from drives.
    pub async fn fetch(
        self: &Arc<Self>,
        target: &Target,
        (wanted, version): (&Wanted, DataVersion),
        sink: &mut dyn Sink,
        server: &dyn AtServer,
    ) -> Result<u64, Ended> {
        let fetch = Fetch { target, wanted, key: (target.token, wanted.fid, version), server };
        let (mut left, mut at_drives) = (wanted.range.clone(), 0);
        let mut layout = self.layout(target, fetch.key, left.start).await?;
        if !layout.has_copies(&left) {
            return Err(Ended::NoPath);
        }
        sink.begin(left.end - left.start);
        while left.start < left.end {
            if !layout.range.contains(&left.start) {
                layout = self.layout(target, fetch.key, left.start).await?;
            }
            let (parts, bytes, is_of_drive) = self.next(&fetch, &layout, &left).await?;
            sink.put(parts).await.map_err(|_| here())?;
            left.start += bytes;
            at_drives += if is_of_drive { bytes } else { 0 };
        }
        sink.end().await.map_err(|_| here())?;
        Ok(at_drives)
    }

    /// The next bytes, how many they are, and whether they are of a drive.
    async fn next(
        self: &Arc<Self>,
        fetch: &Fetch<'_>,
        layout: &Layout,
        left: &Range<u64>,
    ) -> Result<(Vec<Bytes>, u64, bool), Ended> {
        let nothing = Ended::Fallback(Fallback::NoLayout);
        match layout.segment(left).ok_or(nothing)? {
            Segment::Hole(length) => Ok((zeros(length), length, false)),
            Segment::Server(length) => {
                let range = left.start..left.start + length;
                let wanted = Wanted { range, ..fetch.wanted.clone() };
                let bytes = fetch.server.bytes(fetch.target, wanted).await.ok_or(Ended::NoPath)?;
                Ok((vec![bytes], length, false))
            }
            Segment::Drives { part, at, length } => match self.read(fetch, part, at..at + length).await {
                Ok(bytes) => Ok((vec![bytes], length, true)),
                Err(why) => {
                    if why.is_of_layout() {
                        self.layouts.lock().failed(fetch.key);
                    }
                    Err(Ended::Fallback(why))
                }
            },
        }
    }

    /// Bytes of a part, from the first copy that has them.
    async fn read(
        self: &Arc<Self>,
        fetch: &Fetch<'_>,
        part: &Part,
        bytes: Range<u64>,
    ) -> Result<Bytes, Fallback> {
        let (mut last, length) = (Fallback::NoLayout, bytes.end - bytes.start);
        let copies: Vec<_> = part.in_order().filter(|copy| copy.is_worth(length)).collect();
        for (place, copy) in copies.iter().enumerate() {
            let most = patience(length, place + 1 < copies.len());
            match self.read_copy(fetch, (part, copy), (&bytes, most)).await {
                Ok(bytes) => return Ok(bytes),
                Err(why) => {
                    if why.is_of_request() {
                        copy.note_bad();
                    }
                    last = self.fallback(why);
                }
            }
        }
        Err(last)
    }

    async fn read_copy(
        self: &Arc<Self>,
        fetch: &Fetch<'_>,
        (part, copy): (&Part, &PartCopy),
        (bytes, most): (&Range<u64>, Duration),
    ) -> Result<Bytes, Fallback> {
        let length = bytes.end - bytes.start;
        let range = copy.range(bytes.start, length).ok_or(Fallback::Protocol)?;
        let (site, permission) = match &copy.place {
            Place::Drive(site, permission) => (site, permission),
            Place::Bucket(bucket) => {
                let what = (*bucket, copy.chunk, part.start());
                return self.read_object(fetch, what, (range, most)).await;
            }
        };
        let link = self.link(&site.offer)?;
        let _permit = self.turn(&link, most).await.ok_or(Fallback::Full)?;
        let given = site.given();
        let read = match link.handle(&given, self.now()) {
            Ok(handle) => {
                let at = part.start() + bytes.start;
                let what = (&**site, permission, copy.chunk);
                let read = self.read_by(fetch, (&link, &handle), what, (at, range));
                self.common.env.timeout(most, read).await.unwrap_or(Err(Error::Stalled))
            }
            Err(error) => Err(error),
        };
        match read {
            Ok(bytes) if bytes.len() as u64 == length => {
                if link.succeeded() {
                    self.links.lock().succeeded(&link);
                }
                Ok(bytes)
            }
            Ok(_) => Err(self.failed(&link, &given, Fallback::Protocol)),
            Err(error) => {
                let why = self.failed(&link, &given, Fallback::of(&error));
                if why == Fallback::Refused {
                    site.refused(&given, self.now());
                }
                Err(why)
            }
        }
    }

    /// A place among the transfers of a connection. Those who find none wait: the file server would have to read at the same drive.
    async fn turn(&self, link: &Link, most: Duration) -> Option<OwnedSemaphorePermit> {
        match link.begin(self.now()) {
            Some(permit) => Some(permit),
            None => self.common.env.timeout(most, link.turn()).await.ok().flatten(),
        }
    }

    /// A range of a chunk, which begins at a position of the file, by what the layout has for it.
    async fn read_by(
        self: &Arc<Self>,
        fetch: &Fetch<'_>,
        (link, handle): (&Link, &Handle),
        (site, permission, chunk): (&Site, &Permission, ChunkRef),
        (position, range): (u64, Range<u32>),
    ) -> Result<Bytes, Error> {
        match permission {
            Permission::Listed(element) => {
                link.session.read_listed(handle, (chunk, element.shown()), range).await
            }
            Permission::Commanded => {
                let (number, transfer) = self.transfer();
                let (_, fid, version) = fetch.key;
                let order = Order::Send(PartToSend { version, position, transfer });
                let received = link.session.receive(handle, number, (chunk, range));
                let drive = Fixed(site.offer.drive.0.to_be_bytes());
                self.commanded(fetch.target, (fid, drive, order), received).await
            }
        }
    }

    /// A request by a capability has failed.
    pub(super) fn failed(&self, link: &Arc<Link>, given: &Given, why: Fallback) -> Fallback {
        if why == Fallback::Refused {
            link.withdraw(given);
        }
        let is_failure = why.is_failure() || (why.is_of_request() && link.was_fruitless());
        if is_failure && link.failed() {
            let pause = self.links.lock().failed(link, why, self.now()).unwrap_or_default().as_secs();
            let drive = link.offer.addresses.first();
            tracing::warn!(
                ?drive,
                reason = why.name(),
                pause,
                "a drive failed; its bytes are moved by the file server"
            );
        }
        why
    }
}

/// How long a drive may take for so many bytes: a slow one is not waited for where there is another copy.
fn patience(bytes: u64, has_another: bool) -> Duration {
    STALL + if has_another { Duration::ZERO } else { Duration::from_secs(bytes / RATE_MIN) }
}

/// The local end has stopped it.
pub(super) fn here() -> Ended {
    Ended::Failed(CallError::GivenUp(AbortCode::VIO))
}

fn zeros(length: u64) -> Vec<Bytes> {
    let whole = (0..length / PIECE).map(|_| Bytes::from_static(ZEROS));
    let rest = ZEROS.get(..(length % PIECE) as usize).map(Bytes::from_static);
    whole.chain(rest.filter(|rest| !rest.is_empty())).collect()
}
