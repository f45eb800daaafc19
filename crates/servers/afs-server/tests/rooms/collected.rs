//! Rooms of a volume whose transfers are commanded: the drive takes what the file server has commanded for who may store, and a commit
//! makes it the file's.

use afs_datapath::capability::{Access, TransferId};
use afs_datapath::frame::Content;

use super::*;

const LEN: u64 = 3 * SLOT_LEN;

impl Scene {
    /// A file of a volume whose transfers are commanded.
    pub fn commanded(seed: u64) -> (Self, Fid) {
        let scene = Self::new(seed);
        let fid = scene.file("f");
        far::set_route(&scene.cell, fid.volume, DataRoute::Commanded);
        (scene, fid)
    }

    pub fn commanded_room(&self, fid: Fid, bytes: u64) -> GetRoomReply {
        self.room(fid, bytes, 2 * SLOT_LEN).unwrap()
    }

    /// Has the file server command the drive to take a chunk.
    fn collect(&self, fid: Fid, room: &GetRoomReply, (number, piece): (u128, &[u8])) -> CallResult<()> {
        self.carol.ask(call(fid, room, (number, piece))).map(drop)
    }

    fn send(&self, room: &GetRoomReply, number: u128, piece: Vec<u8>) -> Result<ChunkRef, Error> {
        self.at_drive(&room.drives[0], move |session, handle| async move {
            session.send(&handle, TransferId(number), Bytes::from(piece)).await
        })
    }

    /// Sends pieces into a room, each commanded.
    fn collected(&self, fid: Fid, pieces: Vec<Vec<u8>>) -> Staged {
        let room = self.commanded_room(fid, LEN);
        let mut chunks = Vec::new();
        for (number, piece) in (100..).zip(pieces) {
            self.collect(fid, &room, (number, &piece)).unwrap();
            chunks.push(self.send(&room, number, piece).unwrap());
        }
        Staged { room, chunks }
    }

    /// As [`Scene::staged`].
    pub fn change(&self, fid: Fid) -> Staged {
        self.collected(fid, vec![content(7, SLOT), content(8, 5000)])
    }
}

fn call(fid: Fid, room: &GetRoomReply, (number, piece): (u128, &[u8])) -> fs::Command {
    let Content { length, crc: checksum } = Content::of(&Bytes::copy_from_slice(piece));
    let transfer = Fixed(number.to_be_bytes());
    let order = fs::Order::Take(fs::ChunkToTake { room: room.room, transfer, length, checksum });
    fs::Command { fid, drive: room.drives[0].drive, order }
}

/// The same command with another chunk.
fn changed(call: &fs::Command, change: impl FnOnce(&mut fs::ChunkToTake)) -> fs::Command {
    let mut call = call.clone();
    let fs::Order::Take(chunk) = &mut call.order else { panic!("a chunk to take") };
    change(chunk);
    call
}

#[test]
fn a_commanded_store_is_made_the_files_by_one_commit() {
    let (scene, fid) = Scene::commanded(31);
    let before = scene.settled();
    scene.commit(fid, &scene.change(fid)).unwrap();
    assert_eq!(scene.owner.read(fid), committed());
    // What is sent and not committed is freed after its time.
    scene.change(fid);
    let after = scene.settled();
    assert!(after <= before + 8192, "{before} {after}");
    assert_eq!(scene.owner.read(fid), committed());
    assert_eq!((scene.far.served.counts().refused, scene.refused_commits()), ([0; 8], 0));
}

#[test]
fn a_commanded_room_says_so_and_takes_nothing_else() {
    let (scene, fid) = Scene::commanded(32);
    let none = Errno::EOPNOTSUPP.to_uae();
    let room = scene.commanded_room(fid, LEN);
    assert_eq!(granted(&room).access, Access::WRITE | Access::COMMANDED);
    let told = scene.stage(room, vec![content(1, 5000)]).map(drop);
    assert_eq!(told, Err(Error::Failed(Failure::Refused(Refusal::NotAllowed))));
    far::set_route(&scene.cell, fid.volume, DataRoute::Drives);
    assert_eq!(granted(&scene.commanded_room(fid, LEN)).access, Access::WRITE);
    for route in [DataRoute::Calls, DataRoute::Server] {
        far::set_route(&scene.cell, fid.volume, route);
        refused(scene.room(fid, 1, 2 * SLOT_LEN), none);
    }
}

/// Each is refused, and the drive is commanded nothing.
#[test]
fn a_transfer_is_commanded_for_who_may_store_into_a_room_of_its_own() {
    let (scene, fid) = Scene::commanded(33);
    let (other, piece) = (scene.file("g"), content(7, 5000));
    let room = scene.commanded_room(fid, LEN);
    let right = call(fid, &room, (1, &piece));
    let ask = |client: &Client, call: &fs::Command| client.ask(call.clone()).map(drop);
    let [stale, invalid, none] = [Errno::ESTALE, Errno::EINVAL, Errno::ENXIO].map(Errno::to_uae);
    let table = [
        ("another file", fs::Command { fid: other, ..right.clone() }, stale),
        ("a room that is none", changed(&right, |chunk| chunk.room = Fixed([1; 16])), stale),
        ("no bytes", changed(&right, |chunk| chunk.length = 0), invalid),
        ("too many", changed(&right, |chunk| chunk.length = SLOT_LEN as u32 + 1), invalid),
        ("far too many", changed(&right, |chunk| chunk.length = u32::MAX), invalid),
        ("another drive", fs::Command { drive: Fixed([1; 16]), ..right.clone() }, none),
        ("a directory", fs::Command { fid: scene.dir, ..right.clone() }, Errno::EISDIR.to_uae()),
    ];
    for (what, call, code) in table {
        let told = ask(&scene.carol, &call);
        assert!(matches!(told, Err(CallError::Abort(told)) if told == code), "{what}: {told:?}");
    }
    refused(ask(&scene.owner, &right), stale);
    refused(ask(&scene.cell.client(2), &right), Errno::EACCES.to_uae());
    let claim = Claim::of("carol").protected(Class::Rxkad, Level::Crypt);
    refused(ask(&scene.cell.client(7).acting_as(&claim), &right), stale);
    scene.permit(9);
    refused(ask(&scene.carol, &right), Errno::EACCES.to_uae());
    scene.permit(11);
    far::set_route(&scene.cell, fid.volume, DataRoute::Drives);
    refused(ask(&scene.carol, &right), Errno::EOPNOTSUPP.to_uae());
    far::set_route(&scene.cell, fid.volume, DataRoute::Commanded);
    let told = scene.send(&room, 1, piece.clone());
    assert_eq!(told, Err(Error::Failed(Failure::Stalled)), "nothing of that was commanded");
    ask(&scene.carol, &right).unwrap();
    scene.send(&room, 1, piece.clone()).unwrap();
    // What the drive cannot be told of.
    scene.cell.sim.cut(scene.cell.server, scene.far.node);
    refused(ask(&scene.carol, &right), none);
    scene.cell.sim.mend(scene.cell.server, scene.far.node);
    scene.cell.sim.run_for(Duration::from_secs(60));
    // A room that is over.
    let staged = scene.change(fid);
    scene.commit(fid, &staged).unwrap();
    refused(ask(&scene.carol, &call(fid, &staged.room, (2, &piece))), stale);
    let given_up = scene.commanded_room(fid, LEN);
    scene.carol.ask(fs::EndRoom { room: given_up.room }).unwrap();
    refused(ask(&scene.carol, &call(fid, &given_up, (3, &piece))), stale);
    let late = scene.commanded_room(fid, LEN);
    scene.cell.sim.run_for(Duration::from_secs(311));
    refused(ask(&scene.carol, &call(fid, &late, (4, &piece))), stale);
    assert_eq!(scene.owner.read(fid), committed());
}

/// A client is commanded as often as it asks, and fills its room once.
#[test]
fn commands_take_no_more_than_the_room_has() {
    let (scene, fid) = Scene::commanded(34);
    let room = scene.commanded_room(fid, 2 * SLOT_LEN);
    let piece = content(1, SLOT);
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        scene.collect(fid, &room, (5, &piece)).unwrap();
        outcomes.push(scene.send(&room, 5, piece.clone()).map(drop));
    }
    let full = Err(Error::Failed(Failure::Refused(Refusal::OutOfRange)));
    assert_eq!(outcomes, [Ok(()), Ok(()), full]);
}

/// The file server or the drive is started again after the command and after the bytes.
#[test]
fn a_start_of_either_side_in_the_middle_leaves_nothing_that_can_be_committed() {
    for victim in ["drive", "server"] {
        for step in 0..2 {
            let what = format!("{victim} after step {step}");
            let (mut scene, fid) = Scene::commanded(35);
            let before = scene.settled();
            let (room, piece) = (scene.commanded_room(fid, LEN), content(7, SLOT));
            scene.collect(fid, &room, (1, &piece)).unwrap();
            let staged = (step == 1).then(|| scene.change(fid));
            match victim {
                "drive" => scene.restart_drive(2),
                _ => scene.restart_server(),
            }
            if victim == "drive" {
                assert!(scene.send(&room, 1, piece.clone()).is_err(), "{what}: commanded before");
            }
            if let Some(staged) = staged {
                refused(scene.commit(fid, &staged), Errno::ESTALE.to_uae());
            }
            assert_eq!(scene.owner.read(fid), content(0, 2 * SLOT), "{what}");
            scene.commit(fid, &scene.change(fid)).unwrap();
            assert_eq!(scene.owner.read(fid), committed(), "{what}");
            scene.settled();
            scene.restart_server();
            let after = scene.settled();
            assert!(after <= before + 8192, "{what}: {before} {after}");
        }
    }
}
