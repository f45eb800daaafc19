//! Volume service call that sends a volume to several servers at once. The volume is read once; a destination
//! that fails, or stalls for too long, is dropped and the others continue.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, Table, future};
use afs_volume::dump::VolumeDump;
use afs_wire::error::AbortCode;
use afs_wire::vol::{self, ForwardMultiple, Replica};
use afs_wire::xdr::BoundedVec;
use bytes::Bytes;

use super::VolumeServer;
use super::dump::forwarded;
use super::peers::Delivery;
use super::work::Work;
use crate::flow::Sink;
use crate::guard::administrators;

/// How long one destination may delay the others before it takes a piece: less than a peer waits for the
/// next.
const STALL_MAX: Duration = Duration::from_secs(30);

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    administrators(table, |server: Arc<VolumeServer>, call: ForwardMultiple| async move {
        let results = server.forward_multiple(&call).await?;
        Ok(vol::ForwardMultipleReply { results: BoundedVec::first_of(results) })
    })
}

/// One destination: its stream, or the code with which it was dropped.
type Outcome = Result<Delivery, AbortCode>;

/// Destinations by their index in the call, with their final codes.
type Results = Vec<(usize, i32)>;

impl VolumeServer {
    async fn forward_multiple(self: &Arc<Self>, call: &ForwardMultiple) -> Result<Vec<i32>, AbortCode> {
        let work = self.enter(call.transaction, "ForwardMulti")?;
        // Unreachable destinations are found before any waits for data.
        let reached = future::join_all(call.replicas.iter().map(|to| self.reach(to))).await;
        let streams = [true, false].map(|holes| {
            let alike =
                |(at, reached): (usize, &Result<bool, AbortCode>)| (*reached == Ok(holes)).then_some(at);
            let to: Vec<usize> = reached.iter().enumerate().filter_map(alike).collect();
            self.stream(&work, call, holes, to)
        });
        let mut results: Vec<i32> = reached.iter().map(|to| to.err().map_or(0, |code| code.0)).collect();
        for stream in future::join_all(streams).await {
            for (at, code) in stream? {
                results[at] = code;
            }
        }
        Ok(results)
    }

    /// Sends the volume to the destinations with the same support for holes.
    async fn stream(
        self: &Arc<Self>,
        work: &Work,
        call: &ForwardMultiple,
        holes: bool,
        to: Vec<usize>,
    ) -> Result<Results, AbortCode> {
        if to.is_empty() {
            return Ok(Vec::new());
        }
        let dump = VolumeDump::new(work.volume()?, forwarded(call.from_date));
        let mut dump = match self.prepare(work, dump, holes).await {
            Ok(dump) => dump,
            // The other group of destinations may succeed.
            Err(code) => return Ok(to.into_iter().map(|at| (at, code.0)).collect()),
        };
        let begun = to.iter().filter_map(|at| call.replicas.get(*at)).map(|to| self.begin(to, call));
        let mut all = future::join_all(begun).await;
        loop {
            let piece = match dump.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    let code = self.code(work.id(), &error);
                    all.into_iter().flatten().for_each(|delivery| delivery.give_up(code));
                    return Err(code);
                }
            };
            all = future::join_all(all.into_iter().map(|one| self.send(one, piece.clone()))).await;
            if all.iter().all(Result::is_err) {
                break;
            }
        }
        let ends = all.into_iter().map(|one| async move {
            match one {
                Ok(delivery) => delivery.finish().await,
                Err(code) => Err(code),
            }
        });
        let ends = future::join_all(ends).await;
        Ok(to.into_iter().zip(ends.into_iter().map(|end| end.err().map_or(0, |code| code.0))).collect())
    }

    /// Whether a destination is reachable, and whether it accepts holes.
    async fn reach(&self, to: &Replica) -> Result<bool, AbortCode> {
        self.look_at_transaction(&to.server, to.transaction).await?;
        self.takes_holes(&to.server).await
    }

    async fn begin(&self, to: &Replica, call: &ForwardMultiple) -> Outcome {
        Delivery::begin(self, &to.server, to.transaction, call.from_date, call.cookie).await
    }

    async fn send(&self, to: Outcome, piece: Bytes) -> Outcome {
        let mut delivery = to?;
        match self.env.timeout(STALL_MAX, delivery.put(piece)).await {
            Ok(sent) => sent.map(|()| delivery),
            Err(_) => {
                delivery.give_up(AbortCode::RX_CALL_TIMEOUT);
                Err(AbortCode::RX_CALL_TIMEOUT)
            }
        }
    }
}
