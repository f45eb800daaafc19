//! Table of what may be presented to a drive for each request that it knows: refused, counted and logged; no byte is answered or taken,
//! and no store is opened for it.

#[path = "../../../../data/afs-datapath/tests/kit/log.rs"]
mod log;
#[path = "../../../../data/afs-datapath/tests/kit/raw.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod raw;

use std::net::{Ipv4Addr, SocketAddr};

use afs_datapath::capability::{
    ChunkList, GroupTag, ListTerms, Listed, ListedChunk, Nonces, Proof, StagingTag, TransferId,
};
use afs_datapath::frame::{Content, HandleNumber, Message, Presented, RequestId};
use afs_datapath::session::Drive as Served;
use afs_sim::NodeId;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use log::{Log, logging};
use raw::{Raw, Sent};

use super::*;

const LEN: u32 = 200_000;
/// Of these bytes so many are bound.
const BOUND: u32 = 131_072;
/// Capabilities of clients are good for so many seconds.
const LIFE: u64 = 60;
const ROOM: StagingTag = StagingTag([5; 8]);

fn fid(vnode: u32) -> Fid {
    Fid::new(VolumeId(5), VnodeId(vnode), Uniquifier(1))
}

fn directory(vnode: u32) -> GroupTag {
    kit::key(7).tag(Group::Directory(fid(vnode)))
}

fn chunk() -> ChunkRef {
    ChunkRef { id: ChunkId::from_parts(1 << 32, 4096), len: LEN, crc: 1 }
}

/// A request of a client of layouts, of one with a room, or of the file server.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    InList,
    Receive,
    Stage,
    Commanded,
    Forget,
    Manage,
    Order,
}

use Kind::{Commanded, Forget, InList, Manage, Order, Receive, Stage};

const ALL: &[Kind] = &[InList, Receive, Stage, Commanded, Forget, Manage, Order];
/// What the file server may do ends with its key, and not before.
const CLIENTS: &[Kind] = &[InList, Receive, Stage, Commanded, Forget];

impl Kind {
    /// What is right for it.
    fn capability(self, scene: &Scene) -> Capability {
        let (group, access) = match self {
            InList | Receive => (Group::Tagged(directory(1)), Access::READ),
            Stage | Forget => (Group::Staged(STORE, ROOM), Access::WRITE),
            Commanded => (Group::Staged(STORE, ROOM), Access::WRITE | Access::COMMANDED),
            Manage | Order => (Group::Chunks(STORE), Access::MANAGE),
        };
        let (expires, generation) = (scene.now() + LIFE, scene.served.revocations.latest());
        let range = ByteRange::new(0, 1 << 20).unwrap();
        Capability { range, expires, generation, ..capability(group, access) }
    }

    fn request(self, scene: &Scene) -> ChunkRequest {
        let (transfer, content) = (TransferId(1), Content::of(&data(1, 5000)));
        let (start, end, credit) = (0, 5, 1 << 20);
        let (file, generation) = (directory(2), scene.served.revocations.latest());
        match self {
            InList => {
                let list = ChunkList::new(&[ListedChunk { chunk: chunk(), start: 0, end: BOUND }]).unwrap();
                let terms = ListTerms { store: STORE, file, generation };
                let binding = kit::key(7).bind_list(directory(1), &list, terms);
                let listed = Listed { start: 0, end: BOUND, place: 0, count: 1, path: list.path(0), binding };
                ChunkRequest::ReadListed { chunk: chunk(), start, end, credit, listed: Box::new(listed) }
            }
            Receive => ChunkRequest::Receive { transfer, chunk: chunk(), start, end, credit },
            Stage => ChunkRequest::Stage { length: 5000 },
            Commanded => ChunkRequest::Send { transfer, content },
            Forget => ChunkRequest::Forget,
            Manage => ChunkRequest::Write { length: 5000 },
            Order => ChunkRequest::Collect { holder: HolderId(1), tag: ROOM, transfer, content },
        }
    }
}

/// What is wrong.
struct Row {
    name: &'static str,
    refusal: Refusal,
    of: &'static [Kind],
    sent: Sent,
    is_forged: bool,
    change: fn(&mut Capability, u64),
    ask: fn(&mut ChunkRequest),
    /// After the capability was given.
    then: fn(&Scene),
}

fn row(name: &'static str, refusal: Refusal, of: &'static [Kind]) -> Row {
    let (sent, is_forged) = (Sent::Here, false);
    Row { name, refusal, of, sent, is_forged, change: |_, _| {}, ask: |_| {}, then: |_| {} }
}

fn rows() -> Vec<Row> {
    let another = Sent::ToAnother(DriveId(0xd2), KeyEpoch(1));
    let rekeyed = Sent::ToAnother(DriveId(0xd1), KeyEpoch(2));
    // Says that it is the same drive with the same key, and has not that key.
    let pretended = Sent::ToAnother(DriveId(0xd1), KeyEpoch(1));
    let other_access = |capability: &mut Capability, _: u64| {
        let is_to_read = capability.access == Access::READ;
        capability.access = if is_to_read { Access::WRITE } else { Access::READ };
    };
    let other_room = |capability: &mut Capability, _: u64| {
        let is_commanded = capability.access.permits(Access::COMMANDED);
        capability.access = if is_commanded { Access::WRITE } else { Access::WRITE | Access::COMMANDED };
    };
    let of_files = |capability: &mut Capability, _: u64| capability.group = Group::Directory(fid(1));
    let elsewhere = |capability: &mut Capability, _: u64| capability.group = Group::Tagged(directory(3));
    let other_chunk = |what: &mut ChunkRequest| {
        if let ChunkRequest::ReadListed { chunk, .. } = what {
            chunk.id = ChunkId::from_parts(1 << 32, 8192);
        }
    };
    let more = |what: &mut ChunkRequest| {
        if let ChunkRequest::ReadListed { end, .. } = what {
            *end = BOUND + 1;
        }
    };
    let old = |capability: &mut Capability, _: u64| capability.generation.0 -= 1;
    let small = |capability: &mut Capability, _: u64| capability.range = ByteRange::new(0, 4).unwrap();
    use Refusal::*;
    vec![
        Row { is_forged: true, ..row("a secret that was guessed", Forged, ALL) },
        Row { change: |capability, now| capability.expires = now, ..row("expired", Expired, ALL) },
        Row { sent: Sent::AgainByTheSame, ..row("recorded on another connection", Forged, ALL) },
        Row { sent: Sent::ByAnother, ..row("recorded on that of another client", Forged, ALL) },
        Row { sent: another, ..row("of another drive", OtherDrive, ALL) },
        Row { sent: rekeyed, ..row("of an old epoch of the key", OtherEpoch, ALL) },
        Row { sent: pretended, ..row("at what says that it is the drive", Forged, ALL) },
        Row { then: |scene| scene.served.revocations.revoke_all(), ..row("revoked", Revoked, CLIENTS) },
        Row { change: old, ..row("of an earlier run", Revoked, CLIENTS) },
        Row { then: |scene| scene.wrong_by_an_hour(true), ..row("a clock an hour ahead", Expired, ALL) },
        Row {
            then: |scene| scene.wrong_by_an_hour(false),
            ..row("a clock an hour behind", Expired, CLIENTS)
        },
        Row { change: other_access, ..row("to read, or to write", NotAllowed, ALL) },
        Row { change: other_room, ..row("a room of the other kind", NotAllowed, &[Stage, Commanded]) },
        Row { change: of_files, ..row("for files", OtherObject, ALL) },
        Row { change: elsewhere, ..row("for another directory", OtherObject, &[InList]) },
        Row { ask: other_chunk, ..row("another chunk", OtherObject, &[InList]) },
        Row { change: small, ..row("beyond its range", OutOfRange, &[InList, Receive]) },
        Row { ask: more, ..row("beyond what is bound", OutOfRange, &[InList]) },
    ]
}

/// A drive whose stores were not opened yet, and perhaps another one.
struct Scene {
    kit: Kit,
    client: NodeId,
    /// The drive to which is presented.
    served: Arc<Served>,
    at: SocketAddr,
}

impl Scene {
    fn new() -> Self {
        let kit = Kit::new(1);
        let client = kit.sim.node("client", Ipv4Addr::new(10, 0, 0, 3).into());
        let served = kit.start(1);
        Self { kit, client, served, at: at() }
    }

    fn of(row: &Row) -> Self {
        let mut scene = Self::new();
        if let Sent::ToAnother(id, epoch) = row.sent {
            scene.at.set_port(7011);
            let key = DriveKey::new(id, epoch, [8; 32]);
            scene.served = scene.kit.start_at(scene.at, 1, key, Arc::new(|_, _| false));
        }
        scene
    }

    fn now(&self) -> u64 {
        self.kit.env().wall().secs
    }

    fn wrong_by_an_hour(&self, forward: bool) {
        self.kit.sim.jump_wall(self.kit.host, Duration::from_secs(3600), forward);
    }

    /// Connects to a drive and says hello.
    fn greeted(&self, from: NodeId, at: SocketAddr) -> (Raw, Nonces) {
        let env = self.kit.sim.env(from);
        self.run(from, async move {
            let mut raw = Raw::new(env.connect(at).await.unwrap());
            let (_, nonces) = raw.greet().await;
            (raw, nonces)
        })
    }

    fn run<T: Send + 'static>(&self, from: NodeId, work: impl Future<Output = T> + Send + 'static) -> T {
        self.kit.sim.block_on(from, kit::HOUR, work).ok().unwrap()
    }

    /// What is answered to a request with what a row presents for it.
    fn answer(&self, row: &Row, kind: Kind) -> Option<Message> {
        let (mut capability, mut what) = (kind.capability(self), kind.request(self));
        (row.change)(&mut capability, self.now());
        (row.ask)(&mut what);
        let secret = if row.is_forged { Secret::new([0; 32]) } else { kit::key(7).seal(&capability) };
        let (mut raw, nonces) = self.greeted(self.client, at());
        let proof = Presented(Proof::new(&capability, &secret, &nonces));
        let present = Message::Present { handle: HandleNumber(0), capability, proof };
        (row.then)(self);
        let from = if row.sent == Sent::ByAnother { self.kit.server } else { self.client };
        if row.sent != Sent::Here {
            (raw, _) = self.greeted(from, self.at);
        }
        let (request, handle) = (RequestId(1), HandleNumber(0));
        self.run(from, async move {
            raw.send(&present).await;
            raw.send(&Message::Perform { request, handle, what }).await;
            raw.message().await
        })
    }
}

fn assert_refused(row: &Row, kind: Kind, log: &Log) {
    let (scene, name) = (Scene::of(row), format!("{kind:?}: {}", row.name));
    let answer = scene.answer(row, kind);
    let failed = Message::Failed { request: RequestId(1), failure: row.refusal.into() };
    assert_eq!(answer, Some(failed), "{name}");
    let counts = scene.served.counts();
    let refused = counts.refused_for(row.refusal);
    assert!(refused > 0 && counts.refused.iter().sum::<u64>() == refused, "{name}: {counts:?}");
    assert_eq!((counts.bytes_sent, counts.bytes_received, counts.in_progress), (0, 0, 0), "{name}");
    assert_eq!(scene.kit.opened(), 0, "{name}: no store is opened");
    let (lines, wanted) = (log.take(), format!(" refusal={} count=", row.refusal));
    let from = if row.sent == Sent::ByAnother { "10.0.0.2" } else { "10.0.0.3" };
    let is_right = |line: &&String| line.contains(&wanted) && line.contains(&format!(" peer={from}:"));
    assert_eq!(lines.iter().filter(is_right).count() as u64, refused, "{name}: {lines:?}");
}

#[test]
fn whatever_is_presented_for_any_request_is_refused_counted_and_logged() {
    logging(|log| {
        for row in &rows() {
            row.of.iter().for_each(|kind| assert_refused(row, *kind, log));
        }
    });
}

/// What the rows change is all that is wrong with them.
#[test]
fn what_is_right_is_refused_for_no_request() {
    logging(|_| {
        for kind in ALL {
            let (scene, right) = (Scene::new(), row("right", Refusal::Forged, ALL));
            let answer = scene.answer(&right, *kind);
            assert!(answer.is_some(), "{kind:?}");
            assert_eq!(scene.served.counts().refused, [0; 8], "{kind:?}: {answer:?}");
        }
    });
}

/// Requests without end, each with another capability that is none: the drive computes a MAC for each, and keeps and opens nothing.
#[test]
fn a_flood_of_what_is_refused_opens_no_store_and_fills_neither_memory_nor_the_log() {
    const FLOOD: u32 = 2000;
    logging(|log| {
        let scene = Scene::new();
        let (mut raw, nonces) = scene.greeted(scene.client, at());
        let (right, what) = (Manage.capability(&scene), Manage.request(&scene));
        scene.run(scene.client, async move {
            for n in 1..=FLOOD {
                let capability = Capability { holder: HolderId(n.into()), ..right };
                raw.present(n % 4, &capability, &Secret::new([0; 32]), &nonces).await;
                let (request, handle) = (RequestId(n), HandleNumber(n % 4));
                raw.send(&Message::Perform { request, handle, what: what.clone() }).await;
                let failed = Message::Failed { request, failure: Refusal::Forged.into() };
                assert_eq!(raw.message().await, Some(failed));
            }
        });
        let counts = scene.served.counts();
        assert_eq!(counts.refused_for(Refusal::Forged), 2 * u64::from(FLOOD));
        assert_eq!((counts.in_progress, counts.bytes_sent, scene.kit.opened()), (0, 0, 0));
        let lines = log.take().len();
        assert!(lines < 80, "{lines} lines");
        let drive = scene.kit.remote();
        assert!(scene.kit.run(async move { drive.write(data(1, 10)).await }).is_ok());
    });
}
