//! Volume service call that sends a volume to several servers at once. The volume is read once; a destination
//! that fails, or stalls for too long, is dropped and the others continue.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, Table, future};
use afs_volume::dump::VolumeDump;
use afs_wire::error::AbortCode;
use afs_wire::vol::{self, ForwardMultiple, Replica};
use afs_wire::xdr::BoundedVec;
use bytes::Bytes;

use super::VolumeServer;
use super::delivery::{Delivery, To, Undelivered};
use super::dump::forwarded;
use super::work::Work;
use crate::flow::{Content, Sink};
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

/// One destination: its index in the call, and how far its dump is.
struct Way {
    at: usize,
    state: State,
}

enum State {
    /// Under way; or broken, if it is by the data path and the next piece was not taken.
    Going(Delivery),
    Broken(Delivery),
    /// Dropped with a code.
    Dropped(AbortCode),
}

/// Destinations by their index in the call, with their final codes.
type Results = Vec<(usize, i32)>;

impl VolumeServer {
    async fn forward_multiple(self: &Arc<Self>, call: &ForwardMultiple) -> Result<Vec<i32>, AbortCode> {
        let work = self.enter(call.transaction, "ForwardMulti")?;
        // Unreachable destinations are found before any waits for data.
        let reached = future::join_all(call.replicas.iter().map(|to| self.reach(to))).await;
        let formats: BTreeSet<u32> = reached.iter().filter_map(|reached| reached.ok()).collect();
        let streams = formats.into_iter().map(|formats| {
            let alike =
                |(at, reached): (usize, &Result<u32, AbortCode>)| (*reached == Ok(formats)).then_some(at);
            let to: Vec<usize> = reached.iter().enumerate().filter_map(alike).collect();
            self.stream(&work, call, formats, to)
        });
        let mut results: Vec<i32> = reached.iter().map(|to| to.err().map_or(0, |code| code.0)).collect();
        for stream in future::join_all(streams).await {
            for (at, code) in stream? {
                results[at] = code;
            }
        }
        Ok(results)
    }

    /// Sends the volume to the destinations that accept the same formats.
    async fn stream(
        self: &Arc<Self>,
        work: &Work,
        call: &ForwardMultiple,
        formats: u32,
        to: Vec<usize>,
    ) -> Result<Results, AbortCode> {
        let volume = work.volume()?;
        let dump = || VolumeDump::new(volume.clone(), forwarded(call.from_date));
        let mut content = match self.head(work, dump(), formats).await {
            Ok(content) => content,
            // The other group of destinations may succeed.
            Err(code) => return Ok(to.into_iter().map(|at| (at, code.0)).collect()),
        };
        let bytes = content.bytes;
        let begun = to.into_iter().map(|at| self.begin(work, call, at, (formats, bytes)));
        let mut all = future::join_all(begun).await;
        loop {
            let piece = match content.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    let code = self.code(work.id(), &error);
                    all.into_iter().for_each(|way| way.give_up(code));
                    return Err(code);
                }
            };
            all = future::join_all(all.into_iter().map(|way| self.send(way, piece.clone()))).await;
            if !all.iter().any(|way| matches!(way.state, State::Going(_))) {
                break;
            }
        }
        let ends = all.into_iter().map(|way| async {
            let (at, ended) = (way.at, way.finish().await);
            let done = match ended {
                Err(Undelivered::Broken) => self.send_by_call(work, dump(), formats, to_of(call, at)?).await,
                Err(Undelivered::Code(code)) => Err(code),
                Ok(()) => Ok(()),
            };
            Some((at, done.err().map_or(0, |code| code.0)))
        });
        Ok(future::join_all(ends).await.into_iter().flatten().collect())
    }

    /// Whether a destination is reachable, and which formats it accepts.
    async fn reach(&self, to: &Replica) -> Result<u32, AbortCode> {
        self.look_at_transaction(&to.server, to.transaction).await?;
        self.formats(&to.server).await
    }

    async fn begin(
        &self,
        work: &Work,
        call: &ForwardMultiple,
        at: usize,
        (formats, bytes): (u32, u64),
    ) -> Way {
        let begun = match to_of(call, at) {
            Some(to) => Delivery::begin(self, to, self.path_use(work, to.server, formats, bytes)).await,
            None => Err(Undelivered::Code(AbortCode::VOLSERDUMPERROR)),
        };
        let state = match begun {
            Ok(delivery) => State::Going(delivery),
            Err(Undelivered::Code(code)) => State::Dropped(code),
            Err(Undelivered::Broken) => State::Dropped(AbortCode::VOLSERDUMPERROR),
        };
        Way { at, state }
    }

    async fn send(&self, way: Way, piece: Bytes) -> Way {
        let State::Going(mut delivery) = way.state else { return way };
        let state = match self.env.timeout(STALL_MAX, delivery.put(piece)).await {
            Ok(Ok(())) => State::Going(delivery),
            Ok(Err(Undelivered::Broken)) => State::Broken(delivery),
            Ok(Err(Undelivered::Code(code))) => State::Dropped(code),
            Err(_) => {
                delivery.give_up(AbortCode::RX_CALL_TIMEOUT);
                State::Dropped(AbortCode::RX_CALL_TIMEOUT)
            }
        };
        Way { at: way.at, state }
    }
}

/// A destination of a call.
fn to_of(call: &ForwardMultiple, at: usize) -> Option<To<'_>> {
    let Replica { server, transaction } = call.replicas.get(at)?;
    Some(To { server, transaction: *transaction, since: call.from_date, cookie: call.cookie })
}

impl Way {
    async fn finish(self) -> Result<(), Undelivered> {
        match self.state {
            State::Going(delivery) | State::Broken(delivery) => delivery.finish().await,
            State::Dropped(code) => Err(Undelivered::Code(code)),
        }
    }

    fn give_up(self, code: AbortCode) {
        if let State::Going(delivery) | State::Broken(delivery) = self.state {
            delivery.give_up(code);
        }
    }
}
