//! Tests of the transfers alone: sinks and sources, and calls to a scripted server.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvRef, Parts};
use afs_wire::error::AbortCode;
use afs_wire::fs::SetStatus;
use afs_wire::ids::VolumeKind;

use super::*;
use crate::cache::{CacheStore, CacheWorker, MemoryCache};
use crate::calls::CallContext;
use crate::calls::test_kit::{fid, test_kit};
use crate::data::{Content, FileData};
use crate::error::{ErrorKind, VenusError};

fn part(byte: u8, len: usize) -> Vec<Bytes> {
    vec![vec![byte; len].into()]
}

/// A cache in memory, whose I/O completes at once.
fn here() -> (CacheWorker, Arc<FileData>) {
    let cache = Arc::new(MemoryCache::new(1 << 20));
    let data = FileData::new(cache.create().unwrap(), Content::new(DataVersion(1), 100));
    let env: EnvRef = Parts::default().shared();
    (CacheWorker::new(env, cache), Arc::new(data))
}

fn done<T>(work: CacheIo<T>) -> Result<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(work).poll(&mut context) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => panic!("work that had to be waited for"),
    }
}

#[test]
fn more_bytes_than_requested_are_refused_whatever_was_announced() {
    let (worker, data) = here();
    let report = SinkReport::default();
    let sinks: [Box<dyn Sink>; 2] =
        [Box::new(MemorySink::new(100)), Box::new(CacheSink::new(&worker, &data, 50..150, &report))];
    for mut sink in sinks {
        sink.begin(u64::MAX);
        assert!(done(sink.put(part(1, 60))).is_ok() && done(sink.put(part(1, 41))).is_err());
    }
}

#[test]
fn bytes_of_an_earlier_route_are_discarded() {
    let (worker, data) = here();
    let mut memory = MemorySink::new(100);
    let report = SinkReport::default();
    let mut sink = CacheSink::new(&worker, &data, 50..150, &report);
    for sink in [&mut memory as &mut dyn Sink, &mut sink] {
        for (byte, len) in [(1, 90), (2, 70)] {
            sink.begin(100);
            done(sink.put(part(byte, len))).unwrap();
        }
        done(sink.end()).unwrap();
    }
    assert_eq!(memory.into_bytes(), [2; 70]);
    assert_eq!((sink.received().length, &data.file.read_at(50, 70).unwrap()[..]), (70, &[2; 70][..]));
}

/// A source without bytes.
struct Empty;

impl Source for Empty {
    fn read(&mut self, _: &Piece, _: u64, _: usize) -> CacheIo<Bytes> {
        CacheIo::done(Err(VenusError::new(ErrorKind::Cache, "cache")))
    }

    fn check(
        &mut self,
        _: &Piece,
        _: u64,
        _: usize,
        read: Result<Bytes>,
    ) -> std::result::Result<Bytes, Stopped> {
        read.map_err(|_| Stopped)
    }
}

/// Such a call was once taken for an abort of the transport: the server was marked unreachable, and later calls waited
/// for it.
#[test]
fn a_local_failure_of_a_store_does_not_mark_the_server_down() {
    let kit = test_kit(1);
    let fake = kit.fake(1);
    let volume = kit.volume(VolumeKind::ReadWrite, &[&fake]);
    let (calls, called) = (kit.calls.clone(), volume.clone());
    let work = async move {
        let context = CallContext::waiting(None);
        let pieces = [Piece { range: 0..10, file_length: 10 }];
        let change = StoreRequest {
            fid: fid(),
            directory: None,
            status: SetStatus::default(),
            pieces: &pieces,
            expected: None,
        };
        let outcome = calls.on_sites(&context, &called, change.operation(), |target| {
            let change = &change;
            async move { Rpc.store(&target, change, &mut Empty).await }
        });
        outcome.await.result.err().unwrap()
    };
    let failed = kit.sim.block_on(kit.node, Duration::from_secs(100), work).unwrap();
    assert_eq!(failed.kind, ErrorKind::of_abort(AbortCode::VIO));
    assert!(!volume.is_unreachable(kit.promises.now()));
    assert_eq!(kit.counters.values().calls["StoreData64"], 1);
}
