//! Rooms at two drives: what was acknowledged is on both, or on the one that is left while the other is away; and lies about the second
//! one.

use afs_volume::{Rebuild, VolumeStore};

use super::crashes::begin_call;
use super::*;

/// All data are on both drives.
fn copies() -> Placement {
    Placement { copies: DriveCount::new(2), width: DriveCount::ONE }
}

/// What a client has staged at both drives.
#[derive(Clone)]
struct AtBoth {
    room: GetRoomReply,
    drives: Vec<Fixed<16>>,
    places: Vec<CommitPlace>,
}

impl Scene {
    /// Two drives, on both of which data are to be.
    fn pair(seed: u64, placement: Placement) -> (Self, Fid) {
        let scene = Self::made(seed, true);
        far::set_placement(&scene.cell, scene.dir.volume, placement);
        let fid = scene.file("f");
        (scene, fid)
    }

    fn placed_room(&self, fid: Fid) -> CallResult<GetRoomReply> {
        self.room(fid, 3 * SLOT_LEN, 2 * SLOT_LEN)
    }

    /// The change of [`committed`], staged at all drives that the room names.
    fn staged_at_both(&self, fid: Fid) -> AtBoth {
        let room = self.placed_room(fid).unwrap();
        self.stage_all(room)
    }

    fn stage_all(&self, room: GetRoomReply) -> AtBoth {
        let round = |slot: usize| &room.rounds[slot % room.rounds.len()];
        let pieces = [content(7, SLOT), content(8, 5000)];
        let (mut drives, mut staged) = (Vec::new(), Vec::new());
        for (at, drive) in (0..).zip(room.drives.iter()) {
            let of_drive = (0..2).filter(|slot| round(*slot).contains(&at)).map(|slot| pieces[slot].clone());
            let chunks = self.stage_at(drive, of_drive.collect()).unwrap();
            drives.push(drive.drive);
            staged.push(chunks.into_iter());
        }
        let mut places = Vec::new();
        for slot in 0..2 {
            for drive in round(slot).iter().copied() {
                let chunk = Fixed(staged[drive as usize].next().unwrap().to_bytes());
                places.push(CommitPlace { position: slot as u64 * SLOT_LEN, drive, chunk });
            }
        }
        AtBoth { room, drives, places }
    }

    fn placed_call(&self, fid: Fid, staged: &AtBoth) -> (fs::Commit, Vec<u8>) {
        let call = fs::Commit {
            fid,
            status: SetStatus::default(),
            expected: self.cell.version(fid),
            file_length: u64::MAX >> 1,
            grown_to: 0,
            staged: staged.room.room,
            drives: staged.drives.len() as u32,
            places: staged.places.len() as u32,
        };
        let drives = staged.drives.iter().flat_map(Encode::to_bytes);
        (call, drives.chain(staged.places.iter().flat_map(Encode::to_bytes)).collect())
    }

    fn commit_placed(&self, fid: Fid, staged: &AtBoth) -> CallResult<fs::StatusReply> {
        let (call, tables) = self.placed_call(fid, staged);
        self.carol.store_as(call, &tables)
    }

    fn fars(&mut self) -> [&mut Far; 2] {
        [&mut self.far, self.second.as_mut().unwrap()]
    }

    fn both_bytes(&mut self) -> u64 {
        self.cell.sim.run_for(2 * STAGED_LIFE);
        self.fars().map(|far| far.bytes()).iter().sum()
    }

    /// Whether the file server reaches a drive from now on.
    fn reach(&mut self, victim: usize, reaches: bool) {
        let (server, node) = (self.cell.server, self.fars()[victim].node);
        for (from, to) in [(server, node), (node, server)] {
            if reaches { self.cell.sim.mend(from, to) } else { self.cell.sim.cut(from, to) }
        }
    }

    /// The file is read while either drive is away.
    fn survives_any(&mut self, fid: Fid, wanted: &[u8]) {
        for victim in 0..2 {
            self.reach(victim, false);
            assert!(self.owner.read(fid) == wanted, "drive {victim} is lost");
            self.reach(victim, true);
            self.cell.sim.run_for(Duration::from_secs(120));
        }
    }

    /// Makes the copies that are missing.
    fn rebuild(&self) {
        let store: VolumeStore = self.cell.partitions().store(PartitionId(0)).unwrap().clone();
        let work = async move {
            let mut position = Rebuild::default();
            while !store.rebuild_step(&mut position, 64 << 20).await.unwrap().complete {}
        };
        self.cell.sim.block_on(self.cell.server, PATIENCE, work).unwrap();
    }
}

#[test]
fn a_store_at_two_drives_is_on_both_when_it_is_acknowledged() {
    let two = DriveCount::new(2).unwrap();
    let table = [
        (copies(), vec![vec![0, 1]]),
        (Placement { copies: Some(two), width: two }, vec![vec![0, 1], vec![1, 0]]),
        (Placement { copies: None, width: two }, vec![vec![0], vec![1]]),
    ];
    for (placement, rounds) in table {
        let (mut scene, fid) = Scene::pair(1, placement);
        let staged = scene.staged_at_both(fid);
        let told: Vec<_> = staged.room.rounds.iter().map(|round| round.to_vec()).collect();
        assert_eq!((told, staged.room.drives.len()), (rounds, 2));
        scene.commit_placed(fid, &staged).unwrap();
        assert!(scene.owner.read(fid) == committed());
        if placement.copies.is_some() {
            scene.survives_any(fid, &committed());
        }
        // It is used up, and its chunks stay when what was not claimed is forgotten.
        refused(scene.commit_placed(fid, &staged), Errno::ESTALE.to_uae());
        scene.both_bytes();
        assert!(scene.owner.read(fid) == committed());
    }
}

/// Each lie is refused and changes nothing, whatever is true of the first drive.
#[test]
fn no_lie_about_the_second_of_two_drives_is_committed() {
    type Lie = fn(&Scene, Fid, &mut AtBoth);
    let (stale, invalid) = (Errno::ESTALE.to_uae(), Errno::EINVAL.to_uae());
    let lies: [(&str, AbortCode, Lie); 11] = [
        ("a chunk that it never had", stale, |_, _, staged| staged.places[1].chunk.0[13] ^= 1),
        ("another drive", stale, |_, _, staged| staged.drives[1].0[15] ^= 8),
        ("the drives in each other's place", stale, |_, _, staged| staged.drives.swap(0, 1)),
        ("a chunk of another room", stale, |scene, fid, staged| {
            let other = scene.staged_at_both(fid);
            staged.places[1] = other.places[1].clone();
        }),
        ("another room", stale, |scene, fid, staged| staged.room = scene.placed_room(fid).unwrap()),
        ("the same drive twice", invalid, |_, _, staged| staged.drives[1] = staged.drives[0]),
        ("another checksum", invalid, |_, _, staged| staged.places[1].chunk.0[23] ^= 1),
        ("another length", invalid, |_, _, staged| staged.places[1].chunk.0[19] ^= 1),
        ("no such drive", invalid, |_, _, staged| staged.places[1].drive = 2),
        ("a drive for itself", invalid, |_, _, staged| staged.places[1].drive = 0),
        ("four drives", invalid, |_, _, staged| {
            staged.drives = [0, 1, 2, 3].map(|n| Fixed([n; 16])).to_vec();
        }),
    ];
    let (scene, fid) = Scene::pair(2, copies());
    for (what, code, lie) in lies {
        let mut staged = scene.staged_at_both(fid);
        lie(&scene, fid, &mut staged);
        let told = scene.commit_placed(fid, &staged);
        assert!(matches!(told, Err(CallError::Abort(told)) if told == code), "{what}: {told:?}");
        assert!(scene.owner.read(fid) == content(0, 2 * SLOT), "{what}");
    }
    scene.commit_placed(fid, &scene.staged_at_both(fid)).unwrap();
    assert!(scene.owner.read(fid) == committed());
}

/// What is on one drive alone though the other one is there, or is no more at the other one, is refused, and freed at the first.
#[test]
fn a_copy_that_is_left_out_or_given_up_is_no_copy() {
    let (mut scene, fid) = Scene::pair(3, copies());
    let before = scene.both_bytes();
    for place in 0..2 {
        let mut staged = scene.staged_at_both(fid);
        staged.places.remove(place);
        refused(scene.commit_placed(fid, &staged), Errno::ESTALE.to_uae());
    }
    let mut staged = scene.staged_at_both(fid);
    staged.places.swap(0, 1);
    refused(scene.commit_placed(fid, &staged), Errno::ESTALE.to_uae());
    for drive in 0..2 {
        let staged = scene.staged_at_both(fid);
        let forgotten = scene.at_drive(&staged.room.drives[drive], |session, handle| async move {
            session.forget_staged(&handle).await
        });
        forgotten.unwrap();
        refused(scene.commit_placed(fid, &staged), Errno::ESTALE.to_uae());
    }
    assert!(scene.owner.read(fid) == content(0, 2 * SLOT));
    let after = scene.both_bytes();
    assert!(after <= before + 16_384, "{before} {after}");
}

#[test]
fn a_drive_that_is_away_when_it_is_asked_is_left_out_and_gets_its_copy_later() {
    for victim in 0..2 {
        let (mut scene, fid) = Scene::pair(4, copies());
        let staged = scene.staged_at_both(fid);
        scene.reach(victim, false);
        scene.commit_placed(fid, &staged).unwrap();
        assert!(scene.owner.read(fid) == committed(), "drive {victim}");
        // It is known to be away: the next room is at the other one alone, and is committed when it is back.
        let room = scene.placed_room(fid).unwrap();
        assert_eq!((room.drives.len(), room.rounds.len(), room.rounds[0].len()), (1, 1, 1));
        let staged = scene.stage_all(room);
        scene.reach(victim, true);
        scene.cell.sim.run_for(Duration::from_secs(120));
        scene.commit_placed(fid, &staged).unwrap();
        scene.rebuild();
        scene.survives_any(fid, &committed());
    }
}

/// A drive that does not answer, and is not known to be away, is no reason to leave it out.
#[test]
fn no_room_is_given_while_a_drive_does_not_answer_for_the_first_time() {
    let (mut scene, fid) = Scene::pair(5, copies());
    scene.reach(1, false);
    scene.cell.sim.run_for(Duration::from_secs(120));
    refused(scene.placed_room(fid).map(drop), Errno::EOPNOTSUPP.to_uae());
    scene.reach(1, true);
    scene.cell.sim.run_for(Duration::from_secs(120));
    scene.placed_room(fid).unwrap();
}

/// A power failure of either drive or of the file server between the chunks and the commit, or at any moment of it.
#[test]
fn a_crash_during_a_commit_at_two_drives_makes_all_of_it_or_nothing() {
    let mut outcomes = [0; 2];
    for victim in 0..3 {
        for moment in [1, 2, 4, 8] {
            let what = format!("{victim} after {moment}");
            let (mut scene, fid) = Scene::pair(6, copies());
            let before = scene.both_bytes();
            let staged = scene.staged_at_both(fid);
            let (call, tables) = scene.placed_call(fid, &staged);
            let told = begin_call(&scene.carol, call, tables);
            scene.cell.sim.run_for(Duration::from_micros(500 * moment));
            match victim {
                2 => scene.restart_server(),
                _ => {
                    let Scene { cell, far, second, .. } = &mut scene;
                    let far = if victim == 0 { far } else { second.as_mut().unwrap() };
                    far.crash(cell, 2);
                }
            }
            scene.cell.sim.run_for(Duration::from_secs(120));
            let is_told = matches!(*told.lock().unwrap(), Some(Ok(_)));
            let read = scene.owner.read(fid);
            let is_done = read == committed();
            assert!(is_done || read == content(0, 2 * SLOT), "{what}: all or nothing");
            assert!(is_done || !is_told, "{what}: an acknowledged store is lost");
            outcomes[usize::from(is_done)] += 1;
            scene.both_bytes();
            scene.restart_server();
            let after = scene.both_bytes();
            assert!(after <= before + 2 * 8192, "{what}: {before} {after}");
            scene.survives_any(fid, &read);
        }
    }
    assert!(outcomes.iter().all(|count| *count > 2), "{outcomes:?}");
}
