//! Writes by the data path: the bytes of a store, kept under a ticket until Commit makes them a file's.

use std::sync::Arc;

use afs_datapath::capability::{Access, TicketId};
use afs_datapath::session::{Failure, StoreRequest, Taken};
use afs_wire::error::AbortCode;
use afs_wire::fs::SetStatus;
use bytes::Bytes;

use super::looking::{Looked, failed};
use crate::file::FileServer;
use crate::file::store_change::Change;
use crate::file::storing::{SHORT_DATA, StoreTarget};
use crate::file::ticket::Owner;
use crate::flow::{Broken, Source};

/// Takes the bytes of a store that a capability permits.
pub(super) async fn take(
    server: &Arc<FileServer>,
    request: StoreRequest,
    bytes: Taken,
) -> Result<TicketId, Failure> {
    let StoreRequest { peer, capability, description } = request;
    let fid = description.fid;
    let first = Looked::first(server, capability, Access::WRITE, peer.ip(), fid).await?;
    let (looked, header, record) = first;
    let owner = Owner::Holder(looked.holder.id);
    let target = StoreTarget { served: looked.served.clone(), header, record };
    let ranges = description.ranges().iter().map(|range| (range.start(), range.len())).collect();
    let (status, file_length) = (SetStatus::default(), description.file_length);
    // The call that commits the store names the status, the lengths and the version.
    let change = Change { fid, status, file_length, ranges, grown_to: 0, expected: None };
    let id = server.begin_store(&owner, peer.ip(), target, change).map_err(failed)?;
    let mut arriving = Arriving { server, looked, bytes, rest: Bytes::new(), failure: None };
    match server.feed_store(&owner, id, &mut arriving).await {
        Ok(()) => Ok(TicketId(u128::from_be_bytes(id.to_bytes()))),
        Err(code) => Err(arriving.failure.unwrap_or_else(|| of_store(code))),
    }
}

fn of_store(code: AbortCode) -> Failure {
    if code == SHORT_DATA { Failure::Stalled } else { failed(code) }
}

/// The bytes of a store as they arrive.
struct Arriving<'s> {
    server: &'s FileServer,
    looked: Looked,
    bytes: Taken,
    /// Bytes that have arrived and were not asked for yet.
    rest: Bytes,
    failure: Option<Failure>,
}

impl Arriving<'_> {
    /// Dropping the future loses no byte: nothing is awaited once a piece is there.
    async fn take(&mut self, most: usize) -> Result<Bytes, Failure> {
        if self.rest.is_empty() {
            self.looked.again(self.server).await?;
            self.rest = self.bytes.next().await?.unwrap_or_default();
        }
        Ok(self.rest.split_to(most.min(self.rest.len())))
    }
}

impl Source for Arriving<'_> {
    async fn next(&mut self, most: usize) -> Result<Vec<Bytes>, Broken> {
        match self.take(most).await {
            Ok(piece) if piece.is_empty() => Ok(Vec::new()),
            Ok(piece) => Ok(vec![piece]),
            Err(failure) => {
                self.failure = Some(failure);
                Err(Broken)
            }
        }
    }
}
