//! Bounded table of streams of volumes that were granted and have not begun. What has begun belongs to the drive
//! and to the call that granted it.
//!
//! A stream is granted by a call of the volume service, waits a few seconds for its client, and begins once. It
//! leaves the table then, or when its call ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_datapath::capability::{Capability, Refusal, StreamName};
use afs_datapath::session::{Failure, Pieces, StreamRequest, Taken};
use afs_rpc::sync::oneshot;
use afs_wire::ids::VolumeId;
use afs_wire::vol::TransactionId;
use parking_lot::Mutex;

/// Most streams that wait for their clients. The next is made by a call.
const WAITING_MAX: usize = 256;

/// The streams.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Table>);

#[derive(Default)]
struct Table {
    waiting: BTreeMap<StreamName, Waiting>,
    /// Numbers given out, modulo 2^32.
    numbers: u32,
}

struct Waiting {
    capability: Capability,
    begun: oneshot::Sender<Begun>,
}

/// A stream that its client has begun: what the drive waits for, or has.
pub(crate) enum Begun {
    /// The client wants a dump.
    Wanted(oneshot::Sender<Result<Box<dyn Pieces>, Failure>>),
    /// The client sends a dump, and waits for how its restore ends.
    Coming(Taken, oneshot::Sender<Result<(), Failure>>),
}

/// A granted stream, which cannot be begun any more when this is dropped.
pub(crate) struct OpenStream {
    streams: Arc<Streams>,
    name: StreamName,
    begun: oneshot::Receiver<Begun>,
}

impl Streams {
    /// A name for a new stream.
    pub(super) fn name(&self, volume: VolumeId, transaction: TransactionId) -> StreamName {
        let mut table = self.0.lock();
        table.numbers = table.numbers.wrapping_add(1);
        StreamName { volume, transaction, number: table.numbers }
    }

    /// Adds a stream with its capability. `None` if too many wait.
    pub(super) fn open(self: &Arc<Self>, name: StreamName, capability: Capability) -> Option<OpenStream> {
        let (sender, begun) = oneshot::channel();
        let mut table = self.0.lock();
        if table.waiting.len() >= WAITING_MAX || table.waiting.contains_key(&name) {
            return None;
        }
        table.waiting.insert(name, Waiting { capability, begun: sender });
        Some(OpenStream { streams: self.clone(), name, begun })
    }

    /// Begins a stream; it cannot be begun again.
    ///
    /// # Errors
    /// [`Refusal::Revoked`] for one that does not wait, or for which another capability was given.
    pub(super) fn begin(&self, request: &StreamRequest) -> Result<oneshot::Sender<Begun>, Refusal> {
        let mut table = self.0.lock();
        let waiting = table.waiting.get(&request.stream);
        waiting.filter(|waiting| waiting.capability == request.capability).ok_or(Refusal::Revoked)?;
        table.waiting.remove(&request.stream).map(|waiting| waiting.begun).ok_or(Refusal::Revoked)
    }
}

impl OpenStream {
    /// Waits until its client begins it.
    pub(crate) async fn begun(&mut self) -> Option<Begun> {
        (&mut self.begun).await.ok()
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.streams.0.lock().waiting.remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use afs_datapath::capability::{Access, ByteRange, DriveId, Generation, Group, HolderId, KeyEpoch};

    use super::*;

    fn capability(stream: StreamName, holder: u128) -> Capability {
        Capability {
            drive: DriveId(1),
            epoch: KeyEpoch(1),
            group: Group::Stream(stream),
            access: Access::WRITE,
            range: ByteRange::ALL,
            expires: 10,
            generation: Generation(0),
            holder: HolderId(holder),
        }
    }

    fn begin(streams: &Streams, capability: Capability) -> Option<Refusal> {
        let (peer, stream) = (SocketAddr::from(([10, 0, 0, 1], 9)), capability.group.stream().unwrap());
        streams.begin(&StreamRequest { peer, capability, stream }).err()
    }

    #[test]
    fn a_stream_begins_once_for_its_holder_and_while_its_call_lasts() {
        let streams = Arc::new(Streams::default());
        let [one, other] = [3, 4].map(|id| streams.name(VolumeId(7), TransactionId(id)));
        let open = |name| streams.open(name, capability(name, 5));
        let (held, ended) = (open(one), open(other));
        assert!(held.is_some() && ended.is_some() && open(one).is_none());
        assert_eq!(begin(&streams, capability(one, 6)), Some(Refusal::Revoked), "another holder");
        let elsewhere = StreamName { transaction: TransactionId(9), ..one };
        assert_eq!(begin(&streams, capability(elsewhere, 5)), Some(Refusal::Revoked));
        assert_eq!(begin(&streams, capability(one, 5)), None);
        assert_eq!(begin(&streams, capability(one, 5)), Some(Refusal::Revoked), "twice");
        drop(ended);
        assert_eq!(begin(&streams, capability(other, 5)), Some(Refusal::Revoked), "after the end");
        drop(held);
        assert!(streams.0.lock().waiting.is_empty());
    }

    #[test]
    fn the_table_is_bounded() {
        let streams = Arc::new(Streams::default());
        let open = || {
            let name = streams.name(VolumeId(7), TransactionId(1));
            streams.open(name, capability(name, 5))
        };
        let held: Vec<_> = (0..WAITING_MAX).map(|_| open()).collect();
        assert!(held.iter().all(Option::is_some) && open().is_none());
        drop(held);
        assert!(open().is_some());
    }
}
