//! Stores of clients at a drive: what a commit makes of staged chunks, every lie about them, and crashes at every step.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

mod collected;
mod crashes;
mod placed;
use crate::rig;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{Capability, Refusal, Secret};
use afs_datapath::session::{Client as Session, Error, Failure, Handle, Patience, Security};
use afs_drive::{ChunkId, ChunkRef, DriveId};
use afs_remote::STAGED_LIFE;
use afs_rpc::{CallError, Class, Level};
use afs_volume::{DataRoute, DriveCount, Placement, SLOT_LEN};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CommitPlace, GetRoomReply, LayoutDrive, SetStatus};
use afs_wire::ids::{DataVersion, Fid, PartitionId};
use afs_wire::rpc::Request;
use afs_wire::xdr::{Decode, Encode, Fixed};
use bytes::Bytes;
use rig::far::{self, Far, acl};
use rig::{CallResult, Cell, Claim, Client, Heard, PATIENCE, mode};

const SLOT: usize = SLOT_LEN as usize;

const SECOND: DriveId = DriveId(2);

/// The drives of a scene.
fn ids(has_second: bool) -> &'static [DriveId] {
    if has_second { &[far::FAR, SECOND] } else { &[far::FAR] }
}

/// A cell whose new data go to a drive on another host.
struct Scene {
    cell: Cell,
    far: Far,
    /// Another drive of the same kind, if there is one.
    second: Option<Far>,
    owner: Client,
    carol: Client,
    dir: Fid,
}

/// What a client has staged.
#[derive(Clone)]
struct Staged {
    room: GetRoomReply,
    chunks: Vec<ChunkRef>,
}

/// A commit of chunks at one drive.
#[derive(Clone)]
struct Commit {
    fid: Fid,
    status: SetStatus,
    expected: DataVersion,
    file_length: u64,
    grown_to: u64,
    drive: Fixed<16>,
    room: Fixed<16>,
    parts: u32,
}

/// A chunk of it, and the part of the file that it becomes.
#[derive(Clone)]
struct Part {
    position: u64,
    chunk: Fixed<24>,
}

impl Commit {
    /// The call, with its tables.
    fn request(self, parts: &[Part]) -> (fs::Commit, Vec<u8>) {
        let Self { fid, status, expected, file_length, grown_to, drive, room, parts: places } = self;
        let call =
            fs::Commit { fid, status, expected, file_length, grown_to, staged: room, drives: 1, places };
        let place = |Part { position, chunk }: &Part| {
            CommitPlace { position: *position, drive: 0, chunk: *chunk }.to_bytes()
        };
        let tables = [drive.0.to_vec(), parts.iter().flat_map(place).collect()];
        (call, tables.concat())
    }
}

impl Staged {
    /// The chunks, one after the other from a position on.
    fn parts(&self, mut position: u64) -> Vec<Part> {
        let part = |chunk: &ChunkRef| {
            let part = Part { position, chunk: Fixed(chunk.to_bytes()) };
            position += u64::from(chunk.len);
            part
        };
        self.chunks.iter().map(part).collect()
    }
}

fn content(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| ((at + seed) % 251) as u8).collect()
}

impl Scene {
    fn new(seed: u64) -> Self {
        Self::made(seed, false)
    }

    fn made(seed: u64, has_second: bool) -> Self {
        let cell = Cell::new(seed);
        let far = Far::new(&cell);
        let second = has_second.then(|| Far::with_id(&cell, SECOND));
        far::add_all(&cell, ids(has_second));
        far::delete_in_background(&cell);
        let owner = cell.owner();
        let claim = Claim::of("carol").protected(Class::Rxkad, Level::Crypt);
        let carol = cell.client(1).acting_as(&claim);
        let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
        let scene = Self { cell, far, second, owner, carol, dir };
        scene.permit(11);
        far::set_route(&scene.cell, dir.volume, DataRoute::Drives);
        scene
    }

    /// Gives carol rights in the directory.
    fn permit(&self, rights: u32) {
        let list = acl(&format!("2\n0\nadmin:staff\t{rights}\nadmin\t127\n"));
        self.owner.ask(fs::StoreAcl { fid: self.dir, acl: list }).unwrap();
    }

    /// A file with two slots of bytes.
    fn file(&self, name: &str) -> Fid {
        let fid = self.owner.create(self.dir, name).unwrap().fid;
        self.owner.store(fid, 0, &content(0, 2 * SLOT)).unwrap();
        fid
    }

    fn room(&self, fid: Fid, bytes: u64, length: u64) -> CallResult<GetRoomReply> {
        self.carol.ask(fs::GetRoom { fid, bytes, length })
    }

    /// What a client does at the drive, by the capability of a room.
    fn at_drive<T: Send + 'static, F: Future<Output = Result<T, Error>> + Send + 'static>(
        &self,
        drive: &LayoutDrive,
        work: impl FnOnce(Session, Handle) -> F + Send + 'static,
    ) -> Result<T, Error> {
        let address = SocketAddr::from((drive.address, drive.port));
        let capability = Capability::from_bytes(&drive.capability.arguments).unwrap();
        let secret = Secret::new(drive.capability.secret.0);
        let env = self.carol.world.env(self.carol.node);
        let work = async move {
            let stream = env.connect(address).await.map_err(|error| Error::Lost(error.into()))?;
            let (security, patience) = (Security::Clear, Patience::default());
            let session = Session::open(env, stream, security, patience).await?;
            let handle = session.present(&capability, &secret)?;
            work(session, handle).await
        };
        self.carol.world.block_on(self.carol.node, PATIENCE, work).unwrap()
    }

    /// Stages pieces in a room.
    fn stage(&self, room: GetRoomReply, pieces: Vec<Vec<u8>>) -> Result<Staged, Error> {
        let staged = self.stage_at(&room.drives[0], pieces);
        staged.map(|chunks| Staged { room, chunks })
    }

    fn stage_at(&self, drive: &LayoutDrive, pieces: Vec<Vec<u8>>) -> Result<Vec<ChunkRef>, Error> {
        self.at_drive(drive, |session, handle| async move {
            let mut chunks = Vec::new();
            for piece in pieces {
                chunks.push(session.stage(&handle, Bytes::from(piece)).await?);
            }
            Ok(chunks)
        })
    }

    /// A room for a file, with two chunks in it.
    fn staged(&self, fid: Fid) -> Staged {
        let room = self.room(fid, 3 * SLOT_LEN, 2 * SLOT_LEN).unwrap();
        self.stage(room, vec![content(7, SLOT), content(8, 5000)]).unwrap()
    }

    fn commit(&self, fid: Fid, staged: &Staged) -> CallResult<fs::StatusReply> {
        let (call, parts) = self.call(fid, staged);
        send(&self.carol, call, &parts)
    }

    /// The commit that makes the chunks of a store the file's, based on the version that it has.
    fn call(&self, fid: Fid, staged: &Staged) -> (Commit, Vec<Part>) {
        let parts = staged.parts(0);
        let call = Commit {
            fid,
            status: SetStatus::default(),
            expected: self.cell.version(fid),
            file_length: u64::MAX >> 1,
            grown_to: 0,
            drive: staged.room.drives[0].drive,
            room: staged.room.room,
            parts: parts.len() as u32,
        };
        (call, parts)
    }

    /// Has both processes swept, and all that nobody claimed forgotten. Returns the bytes on the drive.
    fn settled(&self) -> u64 {
        self.cell.sim.run_for(2 * STAGED_LIFE);
        self.far.bytes()
    }

    fn refused_commits(&self) -> u64 {
        self.cell.files().statistics().refused_commits
    }

    fn restart_server(&mut self) {
        let ids = ids(self.second.is_some());
        self.cell.restart();
        far::add_all(&self.cell, ids);
        far::delete_in_background(&self.cell);
        let store = self.cell.partitions().store(PartitionId(0)).unwrap().clone();
        for id in ids {
            let store = store.clone();
            let swept = async move { store.sweep_drive(*id).await.map(drop) };
            self.cell.sim.block_on(self.cell.server, PATIENCE, swept).unwrap().unwrap();
        }
    }

    fn restart_drive(&mut self, run: u64) {
        self.far.crash(&self.cell, run);
        self.cell.sim.run_for(Duration::from_secs(60));
    }
}

fn send(client: &Client, call: Commit, parts: &[Part]) -> CallResult<fs::StatusReply> {
    let (call, tables) = call.request(parts);
    client.store_as(call, &tables)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: CallResult<T>, code: AbortCode) {
    assert!(matches!(outcome, Err(CallError::Abort(told)) if told == code), "{outcome:?}");
}

/// The file has what it had, or what was committed by [`Scene::staged`] on top.
fn committed() -> Vec<u8> {
    let mut whole = content(0, 2 * SLOT);
    whole[..SLOT].copy_from_slice(&content(7, SLOT));
    whole[SLOT..SLOT + 5000].copy_from_slice(&content(8, 5000));
    whole
}

#[test]
fn a_client_stores_at_the_drive_and_one_commit_makes_it_the_files() {
    let scene = Scene::new(1);
    let fid = scene.file("f");
    scene.owner.fetch_status(fid).unwrap();
    scene.owner.heard();
    let before = scene.cell.version(fid);
    let reply = scene.commit(fid, &scene.staged(fid)).unwrap();
    assert_eq!((reply.status.data_version, reply.status.length), (DataVersion(before.0 + 1), 2 * SLOT_LEN));
    assert_eq!(scene.owner.heard(), [Heard::Break(vec![fid])]);
    assert_eq!(scene.owner.read(fid), committed());
    // A longer file, cut before and grown behind; its chunks stay when all that was not claimed is forgotten.
    let room = scene.room(fid, 2 * SLOT_LEN, 5 * SLOT_LEN).unwrap();
    let staged = scene.stage(room, vec![content(3, 100), content(4, SLOT)]).unwrap();
    let (call, mut parts) = scene.call(fid, &staged);
    (parts[0].position, parts[1].position) = (SLOT_LEN + 10, 3 * SLOT_LEN);
    let call = Commit { file_length: SLOT_LEN + 5, grown_to: 5 * SLOT_LEN, ..call };
    send(&scene.carol, call, &parts).unwrap();
    let mut whole = committed();
    whole.truncate(SLOT + 5);
    whole.resize(5 * SLOT, 0);
    whole[SLOT + 10..SLOT + 110].copy_from_slice(&content(3, 100));
    whole[3 * SLOT..4 * SLOT].copy_from_slice(&content(4, SLOT));
    scene.settled();
    assert_eq!(scene.owner.read(fid), whole);
    assert_eq!((scene.far.served.counts().refused, scene.refused_commits()), ([0; 8], 0));
}

#[test]
fn a_room_is_for_who_may_store_where_the_volume_permits_it() {
    let scene = Scene::new(2);
    let fid = scene.file("f");
    let ask = |client: &Client, fid, bytes, length| client.ask(fs::GetRoom { fid, bytes, length }).map(drop);
    let (carol, stranger) = (&scene.carol, scene.cell.client(2));
    refused(ask(&stranger, fid, 1, 1), Errno::EACCES.to_uae());
    refused(ask(carol, scene.dir, 1, 1), Errno::EISDIR.to_uae());
    refused(ask(carol, fid, 0, 1), Errno::EINVAL.to_uae());
    refused(ask(carol, fid, fs::ROOM_BYTES_MAX + 1, 1), Errno::EINVAL.to_uae());
    refused(ask(carol, fid, 1, u64::MAX), Errno::EFBIG.to_uae());
    scene.permit(9);
    refused(ask(carol, fid, 1, 1), Errno::EACCES.to_uae());
    scene.permit(11);
    ask(carol, fid, 1, 1).unwrap();
    for route in [DataRoute::Calls, DataRoute::Server] {
        far::set_route(&scene.cell, fid.volume, route);
        refused(ask(carol, fid, 1, 1), Errno::EOPNOTSUPP.to_uae());
    }
    far::set_route(&scene.cell, fid.volume, DataRoute::Drives);
    // One drive is away; another one is the server's own.
    scene.cell.sim.cut(scene.cell.server, scene.far.node);
    scene.cell.sim.run_for(Duration::from_secs(60));
    refused(ask(carol, fid, 1, 1), Errno::EOPNOTSUPP.to_uae());
    scene.cell.sim.mend(scene.cell.server, scene.far.node);
    scene.cell.sim.run_for(Duration::from_secs(60));
    ask(carol, fid, 1, 1).unwrap();
    scene.cell.partitions().store(PartitionId(0)).unwrap().use_drive(DriveId::OWN).unwrap();
    refused(ask(carol, fid, 1, 1), Errno::EOPNOTSUPP.to_uae());
}

/// What is to be on a drive to which clients are not sent goes through the file server, and so does what was staged before that.
#[test]
fn no_room_is_given_or_committed_where_data_go_to_other_drives_too() {
    let scene = Scene::new(12);
    let fid = scene.file("f");
    let store = scene.cell.partitions().store(PartitionId(0)).unwrap().clone();
    store.use_drives(&[far::FAR, DriveId::OWN]).unwrap();
    let two = DriveCount::new(2).unwrap();
    let several =
        [Placement { copies: Some(two), width: DriveCount::ONE }, Placement { copies: None, width: two }];
    for placement in several {
        far::set_placement(&scene.cell, fid.volume, Placement::default());
        let staged = scene.staged(fid);
        far::set_placement(&scene.cell, fid.volume, placement);
        refused(scene.commit(fid, &staged), Errno::ESTALE.to_uae());
        refused(scene.room(fid, 1, 1), Errno::EOPNOTSUPP.to_uae());
        assert_eq!(scene.owner.read(fid), content(0, 2 * SLOT));
    }
    // With one drive there is nothing to go round.
    store.use_drive(far::FAR).unwrap();
    scene.commit(fid, &scene.staged(fid)).unwrap();
    assert_eq!(scene.owner.read(fid), committed());
}

/// Each lie is refused, counted, and changes nothing; the truth is good all the while.
#[test]
fn no_lie_about_chunks_is_committed() {
    type Lie = fn(&Scene, Fid, &Staged, &mut Commit, &mut Vec<Part>);
    let lies: [(&str, Lie); 8] = [
        ("another checksum", |_, _, _, _, parts| parts[1].chunk.0[23] ^= 1),
        ("another length", |_, _, _, _, parts| parts[1].chunk.0[19] ^= 1),
        ("another chunk", |_, _, _, _, parts| parts[1].chunk.0[14] ^= 0x80),
        ("another drive", |_, _, _, call, _| call.drive.0[15] ^= 1),
        ("a room that is none", |_, _, _, call, _| call.room = Fixed([1; 16])),
        ("another room for the file", |s, fid, _, call, _| {
            call.room = s.room(fid, SLOT_LEN, SLOT_LEN).unwrap().room;
        }),
        ("a chunk of another room", |s, fid, _, _, parts| {
            let other = s.staged(fid).parts(0);
            parts[0].chunk = other[0].chunk;
        }),
        ("a chunk of the file itself", |s, fid, _, _, parts| {
            let version = s.cell.version(fid);
            let wanted = fs::LayoutRequest { fid, version, start: 0, end: 1 };
            let wanted = fs::LayoutRequests::first_of([wanted]);
            let outcome = s.carol.ask(fs::GetLayout { wanted }).unwrap().outcomes.into_vec().remove(0);
            let layout = outcome.into_layout().unwrap();
            let part = &layout.parts.parts()[0];
            let id = ChunkId::from_bytes(part.copies[0].id.to_be_bytes());
            let chunk = ChunkRef { id, len: part.chunk.length, crc: part.chunk.crc };
            parts[0].chunk = Fixed(chunk.to_bytes());
        }),
    ];
    let scene = Scene::new(3);
    let fid = scene.file("f");
    let staged = scene.staged(fid);
    for (count, (what, lie)) in lies.into_iter().enumerate() {
        let (mut call, mut parts) = scene.call(fid, &staged);
        lie(&scene, fid, &staged, &mut call, &mut parts);
        let told = send(&scene.carol, call, &parts);
        assert!(
            matches!(told, Err(CallError::Abort(code)) if code == Errno::ESTALE.to_uae()),
            "{what}: {told:?}"
        );
        assert_eq!(scene.refused_commits(), count as u64 + 1, "{what}");
        assert_eq!(scene.owner.read(fid), content(0, 2 * SLOT), "{what}");
    }
    scene.commit(fid, &staged).unwrap();
    assert_eq!(scene.owner.read(fid), committed());
}

/// A chunk is durable when its commit is acknowledged, and what the drive does not have it does not give.
#[test]
fn a_chunk_that_was_never_staged_is_refused_by_the_drive_and_one_that_was_is_durable_with_its_commit() {
    let mut scene = Scene::new(4);
    let fid = scene.file("f");
    let room = scene.room(fid, SLOT_LEN, 2 * SLOT_LEN).unwrap();
    let staged = scene.stage(room, vec![content(7, 99)]).unwrap();
    let [chunk] = staged.chunks[..] else { panic!("one chunk") };
    let never = ChunkRef { id: ChunkId::from_parts(chunk.id.parts().0, 1 << 20), ..chunk };
    refused(scene.commit(fid, &Staged { chunks: vec![never], ..staged.clone() }), Errno::ESTALE.to_uae());
    assert_eq!(scene.owner.read(fid), content(0, 2 * SLOT));
    scene.commit(fid, &staged).unwrap();
    scene.restart_drive(2);
    assert_eq!(scene.owner.read(fid)[..99], content(7, 99));
}

fn granted(room: &GetRoomReply) -> Capability {
    Capability::from_bytes(&room.drives[0].capability.arguments).unwrap()
}

#[test]
fn a_room_is_of_one_file_one_caller_and_good_once() {
    let scene = Scene::new(5);
    let [fid, other] = ["f", "g"].map(|name| scene.file(name));
    let staged = scene.staged(fid);
    let stale = Errno::ESTALE.to_uae();
    refused(scene.commit(other, &staged), stale);
    let (call, parts) = scene.call(fid, &staged);
    refused(send(&scene.owner, call.clone(), &parts), stale);
    let claim = Claim::of("carol").protected(Class::Rxkad, Level::Crypt);
    refused(send(&scene.cell.client(7).acting_as(&claim), call, &parts), stale);
    scene.commit(fid, &staged).unwrap();
    refused(scene.commit(fid, &staged), stale);
    // Not by another room either.
    let again = Staged { room: scene.room(fid, SLOT_LEN, SLOT_LEN).unwrap(), ..staged.clone() };
    refused(scene.commit(fid, &again), stale);
    assert_eq!((scene.owner.read(fid), scene.refused_commits()), (committed(), 5));
    assert_eq!(scene.owner.read(other), content(0, 2 * SLOT));
    let late = scene.staged(fid);
    scene.cell.sim.run_for(Duration::from_secs(311));
    refused(scene.commit(fid, &late), stale);
    let told = scene.at_drive(&late.room.drives[0], |session, handle| async move {
        session.forget_staged(&handle).await
    });
    assert_eq!(told, Err(Error::Failed(Failure::Refused(Refusal::Expired))));
}

#[test]
fn numbers_that_cannot_be_are_refused_before_the_drive_is_asked() {
    let scene = Scene::new(6);
    let fid = scene.file("f");
    let staged = scene.staged(fid);
    let (invalid, too_big) = (Errno::EINVAL.to_uae(), Errno::EFBIG.to_uae());
    let (call, parts) = scene.call(fid, &staged);
    let at = |first: u64, second: u64| {
        let mut parts = parts.clone();
        (parts[0].position, parts[1].position) = (first, second);
        parts
    };
    let twice = vec![parts[1].clone(), Part { position: SLOT_LEN + 9000, ..parts[1].clone() }];
    let table = [
        ("overlapping", call.clone(), at(0, SLOT_LEN - 1), invalid),
        ("out of order", call.clone(), at(SLOT_LEN, 0), invalid),
        ("across a border", call.clone(), at(5, 2 * SLOT_LEN), invalid),
        ("twice", call.clone(), twice, invalid),
        ("none", Commit { parts: 0, ..call.clone() }, vec![], invalid),
        ("too many", Commit { parts: fs::COMMIT_PLACES_MAX as u32 + 1, ..call.clone() }, vec![], invalid),
        ("far too many", Commit { parts: u32::MAX, ..call.clone() }, vec![], invalid),
        ("a sum that overflows", call.clone(), at(0, u64::MAX - 5), too_big),
        ("beyond the longest file", call.clone(), at(0, 1 << 52), too_big),
        ("grown beyond", Commit { grown_to: u64::MAX, ..call.clone() }, parts.clone(), too_big),
        ("cut beyond", Commit { file_length: u64::MAX, ..call.clone() }, parts.clone(), too_big),
        (
            "another version",
            Commit { expected: DataVersion(99), ..call.clone() },
            parts.clone(),
            Errno::EAGAIN.to_uae(),
        ),
    ];
    for (what, call, parts, code) in table {
        let told = send(&scene.carol, call, &parts);
        assert!(matches!(told, Err(CallError::Abort(told)) if told == code), "{what}: {told:?}");
    }
    let cut = Commit { parts: 3, ..call };
    refused(send(&scene.carol, cut, &parts), AbortCode(-32));
    scene.commit(fid, &staged).unwrap();
}

#[test]
fn rights_and_quota_at_the_commit_decide() {
    let scene = Scene::new(7);
    let fid = scene.file("f");
    let before = scene.settled();
    let staged = scene.staged(fid);
    scene.permit(9);
    refused(scene.commit(fid, &staged), Errno::EACCES.to_uae());
    scene.permit(11);
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o444) }).unwrap();
    refused(scene.commit(fid, &staged), Errno::EACCES.to_uae());
    scene.owner.ask(fs::StoreStatus { fid, status: mode(0o644) }).unwrap();
    scene.owner.store(fid, 0, &content(0, 2 * SLOT)).unwrap();
    scene.commit(fid, &staged).unwrap();
    // A volume that became too small meanwhile: the chunks are freed at once.
    let room = scene.room(fid, 8 * SLOT_LEN, 8 * SLOT_LEN).unwrap();
    let staged = scene.stage(room, (0..8).map(|n| content(n, SLOT)).collect()).unwrap();
    let status = fs::SetVolumeStatus { quota_min: None, quota_max: Some(4096) };
    let (name, offline_message, motd) = Default::default();
    let volume = fid.volume;
    scene.owner.ask(fs::StoreVolumeStatus { volume, status, name, offline_message, motd }).unwrap();
    refused(scene.commit(fid, &staged), AbortCode::VOVERQUOTA);
    refused(scene.room(fid, 8 * SLOT_LEN, 8 * SLOT_LEN), AbortCode::VOVERQUOTA);
    assert_eq!(scene.owner.read(fid), committed());
    let after = scene.settled();
    assert!(after <= before + 16_384, "{before} {after}");
}

/// A client that stores by another way after all needs what the room has reserved.
#[test]
fn what_a_room_has_reserved_is_free_when_it_is_given_back() {
    let scene = Scene::new(10);
    let fid = scene.file("f");
    let status = fs::SetVolumeStatus { quota_min: None, quota_max: Some(12 * 1024) };
    let (name, offline_message, motd) = Default::default();
    let volume = fid.volume;
    scene.owner.ask(fs::StoreVolumeStatus { volume, status, name, offline_message, motd }).unwrap();
    let all = || scene.room(fid, 8 * SLOT_LEN, 8 * SLOT_LEN);
    let first = all().unwrap();
    let staged = scene.stage(first.clone(), vec![content(7, SLOT)]).unwrap();
    refused(all(), AbortCode::VOVERQUOTA);
    let end = |client: &Client, room| client.ask(fs::EndRoom { room });
    refused(end(&scene.owner, first.room), Errno::ESTALE.to_uae());
    refused(end(&scene.carol, Fixed([9; 16])), Errno::ESTALE.to_uae());
    refused(all(), AbortCode::VOVERQUOTA);
    end(&scene.carol, first.room).unwrap();
    let second = all().unwrap();
    // It is over.
    refused(end(&scene.carol, first.room), Errno::ESTALE.to_uae());
    refused(scene.commit(fid, &staged), Errno::ESTALE.to_uae());
    let staged = scene.stage(second, vec![content(7, SLOT), content(8, 5000)]).unwrap();
    scene.commit(fid, &staged).unwrap();
}

/// Rooms that nobody uses hold quota and places for a bounded time.
#[test]
fn rooms_are_bounded_and_end() {
    let scene = Scene::new(8);
    let fid = scene.file("f");
    let mut given = 0;
    while scene.room(fid, 1, 1).is_ok() {
        given += 1;
    }
    assert_eq!(given, 1024);
    refused(scene.room(fid, 1, 1), AbortCode::VBUSY);
    // Nor do those that are given back make place at once: their capabilities last.
    scene.cell.sim.run_for(Duration::from_secs(400));
    for _ in 0..1024 {
        let room = scene.room(fid, 1, 1).unwrap().room;
        scene.carol.ask(fs::EndRoom { room }).unwrap();
    }
    refused(scene.room(fid, 1, 1), AbortCode::VBUSY);
    scene.cell.sim.run_for(Duration::from_secs(400));
    scene.room(fid, 1, 1).unwrap();
}
