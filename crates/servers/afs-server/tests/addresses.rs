//! Signed addresses of chunks in a bucket: who gets one, of what, and what a layout names.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::sync::Arc;
use std::time::Duration;

use afs_bucket::{Bucket, BucketDrive, Config, OwnerId};
use afs_drive::{Addressed, BoxFuture, ChunkAddress, ChunkId, ChunkRef, DriveId};
use afs_rpc::{CallError, Class, Level};
use afs_server::{Policy, Requirement};
use afs_testkit::{SignedStore, StoreConduct};
use afs_venus::ObjectReader;
use afs_volume::{Actor, DataRoute, SLOT_LEN};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, ChunkToFetch, Command, CommandReply, FileLayout, LIST_ADDRESSED, OBJECT_ADDRESS_LIFE_MAX, Order,
};
use afs_wire::ids::{Fid, PartitionId, ViceId};
use afs_wire::xdr::Fixed;
use rig::far::{self, acl};
use rig::{CallResult, Cell, Claim, Client, PATIENCE, mode};

const BUCKET: DriveId = DriveId(2);
const ALL: u64 = i64::MAX as u64;
const ADMINISTRATOR: Actor = Actor { id: ViceId(1), administrator: true };

/// A cell whose new data go to a bucket.
struct Scene {
    cell: Cell,
    store: SignedStore,
    drive: BucketDrive,
    owner: Client,
    carol: Client,
    dir: Fid,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(seed);
        let env = cell.sim.env(cell.server);
        let store = SignedStore::new(env.clone());
        let bucket: Arc<dyn Bucket> = Arc::new(store.clone());
        let making = BucketDrive::create(bucket, OwnerId([7; 16]), env, Config::default());
        let drive = cell.sim.block_on(cell.server, PATIENCE, making).unwrap().unwrap();
        let partition = PartitionId(0);
        let volumes = cell.partitions().store(partition).unwrap().clone();
        volumes.add_drive(BUCKET, Arc::new(drive.clone())).unwrap();
        volumes.use_drive(BUCKET).unwrap();
        cell.partitions().add_addressed(partition, BUCKET, Arc::new(drive.clone()));
        let owner = cell.owner();
        let carol = cell.client(1).acting_as(&Claim::of("carol").protected(Class::Rxkad, Level::Crypt));
        let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
        owner.ask(fs::StoreAcl { fid: dir, acl: acl("2\n0\nadmin:staff\t9\nadmin\t127\n") }).unwrap();
        far::set_route(&cell, dir.volume, DataRoute::Drives);
        Self { cell, store, drive, owner, carol, dir }
    }

    fn file(&self, name: &str, seed: u8) -> Fid {
        let fid = self.owner.create(self.dir, name).unwrap().fid;
        self.owner.store(fid, 0, &content(seed)).unwrap();
        fid
    }

    fn layout(&self, fid: Fid) -> CallResult<FileLayout> {
        let wanted = fs::LayoutRequest { fid, version: self.cell.version(fid), start: 0, end: ALL };
        let wanted = fs::LayoutRequests::first_of([wanted]);
        let outcome = self.carol.ask(fs::GetLayout { wanted })?.outcomes.into_vec().remove(0);
        outcome.into_layout().map_err(CallError::Abort)
    }

    /// What a client with the layout asks for the part at a position.
    fn request(&self, fid: Fid, layout: &FileLayout, position: u64) -> Command {
        let part = layout.parts.parts().iter().find(|part| part.start == position).unwrap();
        let copy = &part.copies[0];
        assert_eq!((layout.lists[copy.drive as usize], part.chunk.offset), (LIST_ADDRESSED, 0));
        let drive = layout.drives[copy.drive as usize].drive;
        let (version, chunk) = (self.cell.version(fid), Fixed(chunk(part).to_bytes()));
        Command { fid, drive, order: Order::Address(ChunkToFetch { version, position, chunk }) }
    }

    fn fetch(&self, reply: &CommandReply) -> Option<Vec<u8>> {
        let address = std::str::from_utf8(&reply.address.0).unwrap();
        let reading = self.store.read(address, reply.start..reply.start + u64::from(reply.length));
        self.cell.sim.block_on(self.carol.node, PATIENCE, reading).unwrap().ok().map(|bytes| bytes.to_vec())
    }
}

/// The chunk of a part.
fn chunk(part: &fs::ListedPart) -> ChunkRef {
    let id = ChunkId::from_bytes(part.copies[0].id.to_be_bytes());
    ChunkRef { id, len: part.chunk.length, crc: part.chunk.crc }
}

/// What a command asks for.
fn wanted(call: &mut Command) -> &mut ChunkToFetch {
    match &mut call.order {
        Order::Address(chunk) => chunk,
        other => panic!("{other:?}"),
    }
}

fn content(seed: u8) -> Vec<u8> {
    (0..2 * SLOT_LEN as usize).map(|at| (at % 251) as u8 ^ seed).collect()
}

fn refused<T: std::fmt::Debug>(outcome: CallResult<T>, code: AbortCode) {
    assert!(matches!(outcome, Err(CallError::Abort(told)) if told == code), "{outcome:?}");
}

#[test]
fn a_layout_names_the_bucket_and_an_address_leads_to_the_chunk_for_a_minute() {
    let scene = Scene::new(1);
    let fid = scene.file("f", 0);
    let layout = scene.layout(fid).unwrap();
    let bucket = &layout.drives[0];
    assert_eq!((layout.drives.len(), layout.parts.parts().len()), (1, 2));
    assert!(bucket.address.is_unspecified() && bucket.port == 0 && bucket.capability.arguments.is_empty());
    for (number, position) in [0, SLOT_LEN].into_iter().enumerate() {
        let reply = scene.carol.ask(scene.request(fid, &layout, position)).unwrap();
        assert!(reply.seconds <= OBJECT_ADDRESS_LIFE_MAX && u64::from(reply.length) == SLOT_LEN);
        let bytes = &content(0)[number * SLOT_LEN as usize..][..SLOT_LEN as usize];
        assert!(scene.fetch(&reply).unwrap() == bytes, "{position}");
        // Not a byte before or behind, of a pack that has other files' chunks too.
        let wider = CommandReply { start: reply.start - 8, length: reply.length + 8, ..reply.clone() };
        assert_eq!(scene.fetch(&wider), None);
        scene.cell.sim.run_for(Duration::from_secs(62));
        assert_eq!(scene.fetch(&reply), None, "it has expired");
    }
}

#[test]
fn an_address_is_for_who_may_read_and_for_what_the_file_consists_of() {
    let scene = Scene::new(2);
    let [fid, other] = [("f", 0), ("g", 9)].map(|(name, seed)| scene.file(name, seed));
    let layout = scene.layout(fid).unwrap();
    let good = || scene.request(fid, &layout, 0);
    let ask = |call| scene.carol.ask::<Command>(call);
    let changed = |change: &dyn Fn(&mut ChunkToFetch)| {
        let mut call = good();
        change(wanted(&mut call));
        call
    };
    ask(good()).unwrap();
    refused(scene.cell.client(2).ask(good()), Errno::EACCES.to_uae());
    refused(ask(Command { fid: scene.dir, ..good() }), Errno::EISDIR.to_uae());
    refused(ask(changed(&|chunk| chunk.version.0 += 1)), Errno::EAGAIN.to_uae());
    refused(ask(changed(&|chunk| chunk.position = u64::MAX)), Errno::EINVAL.to_uae());
    let elsewhere = scene.layout(other).unwrap();
    let none = Errno::ENXIO.to_uae();
    let of_another_file = wanted(&mut scene.request(other, &elsewhere, 0)).chunk;
    let hostile = [
        ("a chunk of another file", changed(&|chunk| chunk.chunk = of_another_file)),
        ("another chunk of the file", changed(&|chunk| chunk.position = SLOT_LEN)),
        ("a position behind the end", changed(&|chunk| chunk.position = 9 * SLOT_LEN)),
        ("no chunk", changed(&|chunk| chunk.chunk = Fixed([0; 24]))),
        ("another drive", Command { drive: Fixed([9; 16]), ..good() }),
    ];
    for (what, call) in hostile {
        let outcome = ask(call);
        assert!(matches!(outcome, Err(CallError::Abort(code)) if code == none), "{what}: {outcome:?}");
    }
    for route in [DataRoute::Calls, DataRoute::Server, DataRoute::Commanded] {
        far::set_route(&scene.cell, fid.volume, route);
        refused(ask(good()), Errno::EOPNOTSUPP.to_uae());
        if route == DataRoute::Commanded {
            refused(scene.layout(fid), Errno::EOPNOTSUPP.to_uae());
        }
    }
}

#[test]
fn a_change_of_rights_ends_the_addresses_before_its_reply() {
    let scene = Scene::new(3);
    let fid = scene.file("f", 0);
    let layout = scene.layout(fid).unwrap();
    scene.carol.ask(scene.request(fid, &layout, 0)).unwrap();
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o200) }).unwrap();
    refused(scene.carol.ask(scene.request(fid, &layout, 0)), Errno::EACCES.to_uae());
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o644) }).unwrap();
    scene.carol.ask(scene.request(fid, &layout, 0)).unwrap();
    scene.owner.ask(fs::StoreAcl { fid: scene.dir, acl: acl("1\n0\nadmin\t127\n") }).unwrap();
    refused(scene.carol.ask(scene.request(fid, &layout, 0)), Errno::EACCES.to_uae());
}

#[test]
fn a_chunk_with_other_bytes_than_the_files_is_read_at_the_file_server() {
    let scene = Scene::new(4);
    let fid = scene.file("f", 0);
    let before = scene.layout(fid).unwrap();
    let mut old = scene.request(fid, &before, SLOT_LEN);
    // The file ends behind it, in the middle of the second chunk.
    scene.owner.store(fid, SLOT_LEN + 20_000, &[7; 5000]).unwrap();
    let layout = scene.layout(fid).unwrap();
    let of_old = wanted(&mut old);
    let mut there = layout.parts.parts().iter().filter(|part| !part.copies.is_empty());
    assert!(there.all(|part| chunk(part).to_bytes() != of_old.chunk.0), "{layout:?}");
    of_old.version = scene.cell.version(fid);
    refused(scene.carol.ask(old), Errno::ENXIO.to_uae());
    scene.carol.ask(scene.request(fid, &layout, 0)).unwrap();
}

#[test]
fn a_store_that_signs_nothing_gives_none() {
    let scene = Scene::new(5);
    let fid = scene.file("f", 0);
    let layout = scene.layout(fid).unwrap();
    scene.store.set_conduct(StoreConduct::SignsNothing);
    refused(scene.carol.ask(scene.request(fid, &layout, 0)), Errno::ENXIO.to_uae());
}

/// The same bucket, over http.
struct Clear(BucketDrive);

impl Addressed for Clear {
    fn is_clear(&self) -> bool {
        true
    }

    fn has(&self, chunk: ChunkRef) -> bool {
        self.0.has(chunk)
    }

    fn address(&self, chunk: ChunkRef, seconds: u32) -> BoxFuture<Option<ChunkAddress>> {
        self.0.address(chunk, seconds)
    }
}

/// The same bucket, which has no chunk yet, or while which signs something happens.
struct Meanwhile {
    drive: BucketDrive,
    has: bool,
    what: Option<Arc<dyn Fn() -> BoxFuture<()> + Send + Sync>>,
}

impl Addressed for Meanwhile {
    fn is_clear(&self) -> bool {
        self.drive.is_clear()
    }

    fn has(&self, chunk: ChunkRef) -> bool {
        self.has && self.drive.has(chunk)
    }

    fn address(&self, chunk: ChunkRef, seconds: u32) -> BoxFuture<Option<ChunkAddress>> {
        let (signed, what) = (self.drive.address(chunk, seconds), self.what.clone());
        Box::pin(async move {
            if let Some(what) = what {
                what().await;
            }
            signed.await
        })
    }
}

#[test]
fn no_address_leaves_after_rights_that_change_while_it_is_signed() {
    let scene = Scene::new(7);
    let fid = scene.file("f", 0);
    let layout = scene.layout(fid).unwrap();
    let volume = scene.cell.partitions().volume(fid.volume).unwrap();
    let forbid = move || -> BoxFuture<()> {
        let volume = volume.clone();
        Box::pin(async move {
            let status = mode(0o200);
            let set = volume.update(move |tx| tx.set_status(fid, &status, ADMINISTRATOR).map(drop));
            set.await.map_err(|error| error.to_string()).unwrap();
        })
    };
    let meanwhile = Meanwhile { drive: scene.drive.clone(), has: true, what: Some(Arc::new(forbid)) };
    scene.cell.partitions().add_addressed(PartitionId(0), BUCKET, Arc::new(meanwhile));
    refused(scene.carol.ask(scene.request(fid, &layout, 0)), Errno::EACCES.to_uae());
}

#[test]
fn a_layout_names_no_chunk_that_the_store_does_not_have_yet() {
    let scene = Scene::new(8);
    let fid = scene.file("f", 0);
    let meanwhile = Meanwhile { drive: scene.drive.clone(), has: false, what: None };
    scene.cell.partitions().add_addressed(PartitionId(0), BUCKET, Arc::new(meanwhile));
    let layout = scene.layout(fid);
    assert!(
        layout.as_ref().is_ok_and(|layout| layout.parts.parts().iter().all(|part| part.copies.is_empty())),
        "{layout:?}"
    );
}

#[test]
fn a_volume_with_a_requirement_gives_no_address_of_a_store_without_tls() {
    let scene = Scene::new(6);
    let fid = scene.file("f", 0);
    let layout = scene.layout(fid).unwrap();
    let good = || scene.request(fid, &layout, 0);
    scene.cell.partitions().add_addressed(PartitionId(0), BUCKET, Arc::new(Clear(scene.drive.clone())));
    scene.carol.ask(good()).unwrap();
    scene.cell.policy.set(Policy::default().of_volume("root.cell", Requirement::ALL[1]));
    refused(scene.carol.ask(good()), Errno::ENXIO.to_uae());
    refused(scene.layout(fid), Errno::EOPNOTSUPP.to_uae());
    scene.cell.partitions().add_addressed(PartitionId(0), BUCKET, Arc::new(scene.drive.clone()));
    scene.carol.ask(good()).unwrap();
    scene.cell.partitions().remove_direct(BUCKET);
    refused(scene.carol.ask(good()), Errno::ENXIO.to_uae());
}
