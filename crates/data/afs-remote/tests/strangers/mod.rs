//! A drive that answers wrongly, a client without the key, and the joining of a drive.

#![allow(clippy::unwrap_used)]

use crate::kit;
mod presented;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Generation, Group, HolderId, KeyEpoch, Refusal, Secret,
    StoreNumber, TicketId,
};
use afs_datapath::frame::{ChunkReply, ChunkRequest};
use afs_datapath::session::{
    ChunkCall, Chunks, Client, Error, Failure, Objects, Opened, Patience, Pieces, ReadRequest, Security,
    StoreRequest, Taken,
};
use afs_drive::{ChunkId, ChunkRef, Drive, DriveError, LiveChunks, Usage};
use afs_env::BoxFuture;
use afs_remote::{GiveError, join};
use afs_sim::crash::seeds;
use bytes::Bytes;
use kit::{Kit, Live, STORE, at, data};

/// How a false drive answers.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Lie {
    OtherBytes,
    OtherSums,
    FewerBytes,
    MoreBytes,
    /// References with another sum, another length, and the id of an earlier chunk.
    OtherSum,
    OtherLength,
    EarlierId,
    /// A chunk where none can begin, because of its offset or beyond the end of a segment.
    OddPlace,
    FarPlace,
    /// Every request is done, says it.
    OtherReply,
    RangesWithoutOrder,
    RangesWithoutEnd,
    RangeOfAll,
    /// Every capability is of another epoch, says it.
    OtherKey,
    Nothing,
}

#[derive(Clone)]
struct FalseDrive(Lie);

const MARK: ChunkId = ChunkId::MIN;

fn written(bytes: &[u8]) -> ChunkRef {
    ChunkRef { id: ChunkId::from_parts(1, 4096), len: bytes.len() as u32, crc: crc32c::crc32c(bytes) }
}

struct Endless(u64, Bytes);

impl Pieces for Endless {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        let mut piece = Bytes::from(vec![0xff; most.min(usize::try_from(self.0).unwrap())]);
        if !self.1.is_empty() {
            piece = self.1.split_to(most.min(self.1.len()));
        }
        self.0 -= piece.len() as u64;
        Box::pin(async move { Ok(piece) })
    }
}

impl FalseDrive {
    fn bytes(&self, what: &ChunkRequest) -> (u64, Bytes) {
        let content = data(1, 100);
        let sums = crc32c::crc32c(&content).to_be_bytes();
        let right: Bytes = [&sums[..], &content[..]].concat().into();
        let changed = |at: usize| {
            let mut bytes = right.to_vec();
            bytes[at] ^= 1;
            Bytes::from(bytes)
        };
        match (what, self.0) {
            (ChunkRequest::Ranges { .. }, Lie::RangesWithoutOrder) => {
                (32, [[9; 16], [1; 16]].concat().into())
            }
            (ChunkRequest::Ranges { .. }, Lie::RangesWithoutEnd) => (32 << 20, Bytes::new()),
            (ChunkRequest::Ranges { .. }, Lie::RangeOfAll) => (32, [[0; 16], [0xff; 16]].concat().into()),
            (ChunkRequest::Ranges { .. }, _) => (0, Bytes::new()),
            (_, Lie::OtherBytes) => (104, changed(50)),
            (_, Lie::OtherSums) => (104, changed(0)),
            (_, Lie::FewerBytes) => (60, right.slice(..60)),
            (_, Lie::MoreBytes) => (1 << 40, right),
            _ => (104, right),
        }
    }
}

impl Objects for FalseDrive {
    fn read(&self, _: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }

    fn store(&self, _: StoreRequest, _: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }

    fn chunks(&self) -> Option<&dyn Chunks> {
        Some(self)
    }
}

impl Chunks for FalseDrive {
    fn perform(&self, call: ChunkCall, mut bytes: Taken) -> BoxFuture<'static, Result<ChunkReply, Failure>> {
        let lie = self.0;
        Box::pin(async move {
            while bytes.next().await?.is_some() {}
            let usage = Usage { free: 1 << 30, total: 1 << 30 };
            let chunk = written(&data(1, 100));
            match call.what {
                ChunkRequest::Begin { .. } if lie == Lie::EarlierId => {
                    Ok(ChunkReply::Begun { run: 1, mark: ChunkId::from_parts(2, 0), usage })
                }
                ChunkRequest::Begin { .. } => Ok(ChunkReply::Begun { run: 1, mark: MARK, usage }),
                _ if lie == Lie::OtherKey => Err(Failure::Refused(Refusal::OtherEpoch)),
                _ if lie == Lie::Nothing => std::future::pending().await,
                _ if lie == Lie::OtherReply => Ok(ChunkReply::Begun { run: 1, mark: MARK, usage }),
                ChunkRequest::Write { .. } => {
                    let chunk = match lie {
                        Lie::OtherSum => ChunkRef { crc: 1, ..chunk },
                        Lie::OtherLength => ChunkRef { len: 99, ..chunk },
                        Lie::OddPlace => ChunkRef { id: ChunkId::from_parts(1, 4097), ..chunk },
                        Lie::FarPlace => ChunkRef { id: ChunkId::from_parts(1, 1 << 30), ..chunk },
                        _ => chunk,
                    };
                    Ok(ChunkReply::Written { chunk, usage })
                }
                _ => Ok(ChunkReply::Done),
            }
        })
    }

    fn open(&self, call: ChunkCall) -> BoxFuture<'static, Result<Opened, Failure>> {
        let own = self.clone();
        Box::pin(async move {
            if own.0 == Lie::Nothing {
                std::future::pending::<()>().await;
            }
            if own.0 == Lie::OtherKey {
                return Err(Failure::Refused(Refusal::OtherEpoch));
            }
            let (length, bytes) = own.bytes(&call.what);
            Ok(Opened { file_length: 100, length, pieces: Box::new(Endless(length, bytes)) })
        })
    }
}

/// What a file server gets from such a drive for a write, a read of it, a flush and a sweep.
fn outcomes(lie: Lie) -> [Result<(), DriveError>; 4] {
    let kit = Kit::new(1);
    kit.serve(Arc::new(FalseDrive(lie)));
    let drive = kit.remote();
    let began = kit.sim.now();
    let outcomes = kit.run(async move {
        let chunk = written(&data(1, 100));
        let write = drive.write(data(1, 100)).await.map(drop);
        let read = drive.read(chunk, 10..20).await.map(|bytes| assert_eq!(bytes, data(1, 100)[10..20]));
        let sync = drive.sync(&[chunk]).await;
        [write, read, sync, drive.sweep(Arc::new(Live(Vec::new()))).await.map(drop)]
    });
    assert!(kit.sim.now() - began < Duration::from_secs(900), "{lie:?}");
    outcomes
}

#[test]
fn wrong_answers_are_noticed_and_bounded() {
    for (lie, which) in [
        (Lie::OtherBytes, 1),
        (Lie::OtherSums, 1),
        (Lie::FewerBytes, 1),
        (Lie::MoreBytes, 1),
        (Lie::OtherSum, 0),
        (Lie::OtherLength, 0),
        (Lie::EarlierId, 0),
        (Lie::OddPlace, 0),
        (Lie::FarPlace, 0),
        (Lie::RangesWithoutOrder, 3),
    ] {
        let outcomes = outcomes(lie);
        for (at, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.is_err(), at == which, "{lie:?}: operation {at}: {outcome:?}");
        }
    }
    assert!(outcomes(Lie::OtherReply)[..3].iter().enumerate().all(|(at, o)| at == 1 || o.is_err()));
    assert!(outcomes(Lie::RangesWithoutEnd)[3].is_err());
    for lie in [Lie::Nothing, Lie::OtherKey] {
        assert!(outcomes(lie).iter().all(Result::is_err), "{lie:?}");
    }
}

/// A store that notes whether it was asked for chunks.
struct Asked(AtomicU32);

impl LiveChunks for Asked {
    fn live_between(&self, _: ChunkId, _: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Vec::new())
    }
}

#[test]
fn a_range_of_more_than_a_segment_has_nothing_gathered() {
    let kit = Kit::new(1);
    kit.serve(Arc::new(FalseDrive(Lie::RangeOfAll)));
    let (drive, asked) = (kit.remote(), Arc::new(Asked(AtomicU32::new(0))));
    let live = asked.clone();
    let error = kit.run(async move { drive.sweep(live).await }).unwrap_err();
    assert!(matches!(&error, DriveError::Refused { .. }), "{error}");
    assert_eq!(asked.0.load(Ordering::Relaxed), 0);
}

fn capability(group: Group, access: Access) -> Capability {
    Capability {
        drive: DriveId(0xd1),
        epoch: KeyEpoch(1),
        group,
        access,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: Generation(0),
        holder: HolderId(1),
    }
}

#[test]
fn without_the_key_there_is_nothing() {
    let kit = Kit::new(1);
    let served = kit.start(1);
    let (mine, other) = (kit::key(7), kit::key(8));
    let chunks = Group::Chunks(STORE);
    let files = Group::Volume(afs_wire_volume());
    let cases = [
        (capability(chunks, Access::MANAGE), &other, Failure::Refused(Refusal::Forged)),
        (capability(chunks, Access::READ | Access::WRITE), &mine, Failure::Refused(Refusal::NotAllowed)),
        (capability(files, Access::MANAGE), &mine, Failure::Refused(Refusal::OtherObject)),
        (capability(Group::Chunks(StoreNumber(256)), Access::MANAGE), &mine, Failure::NoObject),
    ];
    for (capability, key, expected) in cases {
        let (secret, env) = (key.seal(&capability), kit.env());
        let told = kit.run(async move {
            let stream = env.connect(at()).await.unwrap();
            let client = Client::open(env, stream, Security::Clear, Patience::default()).await.unwrap();
            let handle = client.present(&capability, &secret).unwrap();
            client.perform(&handle, ChunkRequest::Status, Bytes::new()).await
        });
        assert_eq!(told, Err(Error::Failed(expected)));
    }
    assert_eq!(served.counts().in_progress, 0);
    assert_eq!(kit.segments(), [], "no store was opened");
}

fn afs_wire_volume() -> afs_wire::ids::VolumeId {
    afs_wire::ids::VolumeId(5)
}

/// A drive that waits to be joined. Counts the keys that it was given.
fn new_drive(kit: &Kit, join_secret: [u8; 32]) -> Arc<AtomicU32> {
    let adopted = Arc::new(AtomicU32::new(0));
    let count = adopted.clone();
    let adopt = move |_, _: &Secret| {
        count.fetch_add(1, Ordering::Relaxed);
        true
    };
    kit.start_with(1, DriveKey::new(DriveId(0xd1), KeyEpoch::JOIN, join_secret), Arc::new(adopt));
    adopted
}

#[test]
fn a_join_key_is_good_once() {
    for seed in seeds(10) {
        let kit = Kit::new(seed);
        let adopted = new_drive(&kit, [5; 32]);
        let join_with = |secret: [u8; 32], new: [u8; 32]| {
            let env = kit.env();
            let work = async move {
                join(&env, at(), Security::Clear, &Secret::new(secret), &Secret::new(new)).await
            };
            kit.run(work)
        };
        let wrong = join_with([6; 32], [7; 32]);
        assert!(matches!(wrong, Err(GiveError::Exchange(_))), "{wrong:?}");
        assert_eq!(adopted.load(Ordering::Relaxed), 0);
        assert_eq!(join_with([5; 32], [7; 32]).unwrap(), DriveId(0xd1), "seed {seed}");
        // The same file server repeats its attempt after a lost reply; another one tries the same join key.
        assert_eq!(join_with([5; 32], [7; 32]).unwrap(), DriveId(0xd1));
        assert!(join_with([5; 32], [9; 32]).is_err());
        assert_eq!(adopted.load(Ordering::Relaxed), 1);
        let drive = kit.remote();
        assert!(kit.run(async move { drive.write(data(1, 10)).await }).is_ok());
    }
}
