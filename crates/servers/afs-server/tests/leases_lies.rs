//! Lists of changes under a lease that lie: about objects, names, owners, numbers and the lease itself, by seed.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::collections::{BTreeMap, BTreeSet};

use afs_sim::crash::{Rng, seeds};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, ANY_VERSION, Change, CreateSmall, LeaseId, ListedChange, SetStatus, SmallData, Status, StoreSmall,
    TakeLeaseReply,
};
use afs_wire::ids::{Fid, FileTime, Uniquifier, UnixSeconds, VolumeId};
use rig::leasing::{ask_for, earn, entries, list};
use rig::people::{ALICE, BOB};
use rig::{Cell, Claim, Client, mode, name};

/// What a list lies about. Counted: told, and refused.
type Counts = BTreeMap<&'static str, (u64, u64)>;

/// What a lease needs, and nothing more.
const RIGHTS: &str = "rlidwk";
const GOOD: [&str; 5] = ["a", "b", "c", "d", "e"];

struct World {
    seed: u64,
    rng: Rng,
    _cell: Cell,
    alice: Client,
    bob: Client,
    /// In which Bob may do what his rights permit; in it a directory of Alice's own and a file of hers; a directory beside it.
    dir: Fid,
    closed: Fid,
    file: Fid,
    beside: Fid,
    lease: Option<TakeLeaseReply>,
    number: u64,
    /// All that was ever lent.
    lent: BTreeSet<Fid>,
    counts: Counts,
}

impl World {
    fn new(seed: u64) -> World {
        let cell = Cell::new(7000 + seed);
        let alice = cell.client(1).acting_as(&Claim::of("alice"));
        let bob = cell.client(2).acting_as(&Claim::of("bob"));
        let [dir, beside] = ["hers", "beside"].map(|text| alice.make_dir(cell.root(), text).unwrap().fid);
        let closed = alice.make_dir(dir, "closed").unwrap().fid;
        for (of, bits) in [(dir, Some(RIGHTS)), (closed, None), (beside, None)] {
            let bob = bits.map_or(0, |bits| bits.parse::<afs_wire::ids::Rights>().unwrap().0);
            let acl = fs::AclText::new(format!("2\n0\nalice\t127\nbob\t{bob}\n\0").into_bytes()).unwrap();
            alice.ask(fs::StoreAcl { fid: of, acl }).unwrap();
        }
        let file = alice.create(dir, "of alice").unwrap().fid;
        for (at, text) in [(closed, "inside"), (beside, "outside")] {
            let made = alice.create(at, text).unwrap().fid;
            alice.store(made, 0, b"of alice").unwrap();
        }
        alice.store(file, 0, b"of alice").unwrap();
        let (lease, number, lent, counts) = (None, 1, BTreeSet::new(), Counts::new());
        let rng = Rng(seed);
        World { seed, rng, _cell: cell, alice, bob, dir, closed, file, beside, lease, number, lent, counts }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    fn take(&mut self) -> TakeLeaseReply {
        if self.lease.is_none() {
            earn(&self.bob, self.dir);
            let lease = self.bob.ask(ask_for(self.dir)).unwrap();
            self.lent.extend(lease.fids.iter().copied());
            (self.lease, self.number) = (Some(lease), 1);
        }
        self.lease.clone().unwrap()
    }

    /// Sends a list of a few changes, one of which lies, or which lies as a whole.
    fn send(&mut self) {
        let lease = self.take();
        let count = 1 + self.below(4);
        let mut changes: Vec<ListedChange> = (0..count).map(|_| self.change(&lease)).collect();
        let (id, next) = (lease.lease, self.number);
        let whole = self.below(12);
        let (lie, id, number) = match whole {
            0 => ("another lease", LeaseId(id.0 ^ 1), next),
            1 => ("number 0", id, 0),
            2 => ("a later number", id, next + 1),
            3 => ("the last number", id, u64::MAX),
            4 if next > 1 => ("an earlier number", id, next - 1),
            _ => (self.spoil(&lease, &mut changes), id, next),
        };
        let reply = self.bob.ask(list(self.dir, id, number, &changes));
        let is_whole = number != next || id != lease.lease;
        let made = reply.as_ref().map_or(0, |reply| reply.done.len());
        assert!(!is_whole || reply.is_err(), "seed {}: {lie}: {reply:?}", self.seed);
        let counted = self.counts.entry(lie).or_default();
        counted.0 += 1;
        counted.1 += u64::from(made < changes.len());
        for change in &changes[..made] {
            assert!(self.is_permitted(change), "seed {}: {lie}: {change:?}", self.seed);
        }
        match reply {
            // A list of which nothing was made uses no number.
            Ok(reply) => self.number += u64::from(!reply.done.is_empty()),
            Err(error) if error.abort_code() == Some(Errno::ESTALE.to_uae()) && !is_whole => {
                self.lease = None
            }
            Err(error) => {
                let of_volume = changes.iter().flat_map(|listed| listed.change.fids());
                let is_elsewhere = of_volume.into_iter().any(|fid| fid.volume != self.dir.volume);
                let code = if is_elsewhere { Errno::EXDEV.to_uae() } else { refusal(lie) };
                assert_eq!(error.abort_code(), Some(code), "seed {}: {lie}", self.seed);
            }
        }
    }

    /// A change that Bob may make, as far as his rights go.
    fn change(&mut self, lease: &TakeLeaseReply) -> ListedChange {
        let text = GOOD[self.below(GOOD.len())];
        let (file, sub) = (lease.fids[self.below(8)], lease.fids[8 + self.below(2)]);
        let (dir, none) = (self.dir, Fid::default());
        let (object, change) = match self.below(7) {
            0..=2 => (file, create(dir, text, mode(0o644))),
            3 => (sub, Change::MakeDir(fs::MakeDir { dir, name: name(text), status: mode(0o755) })),
            4 => (none, Change::RemoveFile(fs::RemoveFile { dir, name: name(text) })),
            5 => (none, store(file)),
            _ => {
                let (old_name, new_name) = (name(text), name("e"));
                (none, Change::Rename(fs::Rename { old_dir: dir, old_name, new_dir: dir, new_name }))
            }
        };
        ListedChange { object, time: FileTime::default(), change }
    }

    /// Replaces one change by a lie.
    fn spoil(&mut self, lease: &TakeLeaseReply, changes: &mut [ListedChange]) -> &'static str {
        let (at, fid, dir) = (self.below(changes.len()), lease.fids[self.below(8)], self.dir);
        let (closed, beside, file) = (self.closed, self.beside, self.file);
        let status = SetStatus { owner: Some(ALICE), group: Some(0), ..mode(0o4777) };
        let odd = ["x/y", "..", ".", "", "a\0b", "/"][self.below(6)];
        let elsewhere = [closed, beside, Fid { volume: VolumeId(dir.volume.0 + 1), ..dir }, Fid::default()];
        let elsewhere = elsewhere[self.below(4)];
        let not_lent = Fid { unique: Uniquifier(fid.unique.0 + 1), ..fid };
        let none = Fid::default();
        let (lie, object, change) = match self.below(13) {
            0 => ("a name that leads elsewhere", fid, create(dir, odd, mode(0o644))),
            1 => ("an object that was not lent", not_lent, create(dir, "a", mode(0o644))),
            2 => ("another user's object", file, create(dir, "a", mode(0o644))),
            3 => ("another directory", fid, create(elsewhere, "a", mode(0o644))),
            4 => ("an owner", fid, create(dir, "owned", status)),
            5 => ("an owner later", none, Change::StoreStatus(fs::StoreStatus { fid, status })),
            6 => (
                "a status of somebody else",
                none,
                Change::StoreStatus(fs::StoreStatus { fid: file, status }),
            ),
            7 => (
                "the status of the directory",
                none,
                Change::StoreStatus(fs::StoreStatus { fid: dir, status }),
            ),
            8 => ("data of somebody else", none, store(file)),
            9 => {
                let (old_name, new_name) = (name("of alice"), name("stolen"));
                let moved = fs::Rename { old_dir: dir, old_name, new_dir: elsewhere, new_name };
                ("a move elsewhere", none, Change::Rename(moved))
            }
            10 => {
                let existing = [file, dir, closed, fid][self.below(4)];
                ("a link to anything", none, Change::Link(fs::Link { dir, name: name("link"), existing }))
            }
            11 => ("the same object twice", fid, create(dir, "twice", mode(0o644))),
            _ => ("a time that cannot be", fid, create(dir, "late", mode(0o644))),
        };
        let time = match lie {
            "a time that cannot be" => FileTime::new(UnixSeconds(u32::MAX), 999_999_999),
            _ => FileTime::default(),
        };
        changes[at] = ListedChange { object, time, change };
        lie
    }

    /// Whether Bob may have made it, by what the change says alone.
    fn is_permitted(&self, made: &ListedChange) -> bool {
        let is_there = |fid: Fid| fid == self.dir || self.lent.contains(&fid);
        let object = !made.change.makes_object() || self.lent.contains(&made.object);
        let writes = match &made.change {
            Change::Store(store) => self.lent.contains(&store.fid),
            Change::StoreStatus(store) => store.status.owner.is_none_or(|owner| owner == BOB),
            _ => true,
        };
        object
            && writes
            && made.change.fids().into_iter().all(is_there)
            && names(&made.change).iter().all(|name| is_name(name))
    }

    /// What nobody but Alice may change, as she sees it.
    fn of_alice(&self) -> Vec<(Fid, Status, Vec<u8>)> {
        let inside = [self.closed, self.beside].map(|dir| (dir, entries(&self.alice, dir)));
        let fids = inside.into_iter().flat_map(|(dir, entries)| entries.into_values().chain([dir]));
        fids.map(|fid| (fid, self.alice.fetch_status(fid).unwrap().status, self.alice.read(fid))).collect()
    }

    fn check(&mut self, before: &[(Fid, Status, Vec<u8>)], of_dir: &Status) {
        let seed = self.seed;
        assert_eq!(self.of_alice(), before, "seed {seed}");
        self.lease = None;
        let now = self.alice.fetch_status(self.dir).unwrap().status;
        assert_eq!(
            (now.owner, now.group, now.parent),
            (of_dir.owner, of_dir.group, of_dir.parent),
            "seed {seed}"
        );
        for (text, fid) in entries(&self.alice, self.dir) {
            assert!(is_name(text.as_bytes()), "seed {seed}: {text:?}");
            let status = self.alice.fetch_status(fid).unwrap().status;
            let owner = if [self.closed, self.file].contains(&fid) { ALICE } else { BOB };
            assert_eq!(status.owner, owner, "seed {seed}: {text}");
            assert!(owner == ALICE || self.lent.contains(&fid), "seed {seed}: {text}");
            if fid == self.file {
                assert_eq!(self.alice.read(fid), b"of alice", "seed {seed}");
            }
        }
    }
}

fn create(dir: Fid, text: &str, status: SetStatus) -> Change {
    let create = fs::CreateFile { dir, name: name(text), status };
    Change::CreateFile(CreateSmall { create, data: SmallData::new(b"of bob").unwrap() })
}

fn store(fid: Fid) -> Change {
    let (status, data) = (SetStatus::default(), SmallData::new(b"of bob").unwrap());
    Change::Store(StoreSmall { fid, status, expected: ANY_VERSION, position: 0, file_length: 0, data })
}

/// The names that a change makes.
fn names(change: &Change) -> Vec<Vec<u8>> {
    match change {
        Change::CreateFile(made) => vec![made.create.name.as_bytes().to_vec()],
        Change::MakeDir(made) => vec![made.name.as_bytes().to_vec()],
        Change::Link(made) => vec![made.name.as_bytes().to_vec()],
        Change::Rename(made) => vec![made.new_name.as_bytes().to_vec()],
        _ => Vec::new(),
    }
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && !name.iter().any(|byte| matches!(byte, b'/' | 0))
        && name.len() < 256
}

/// The code of a list that is refused as a whole.
fn refusal(lie: &str) -> AbortCode {
    if lie == "another lease" { Errno::ESTALE.to_uae() } else { Errno::EINVAL.to_uae() }
}

#[test]
fn no_list_that_lies_does_more_than_its_user_may() {
    let mut all = Counts::new();
    for seed in seeds(30) {
        let mut world = World::new(seed);
        let (before, of_dir) = (world.of_alice(), world.alice.fetch_status(world.dir).unwrap().status);
        for _ in 0..60 {
            world.send();
        }
        world.check(&before, &of_dir);
        for (lie, (told, refused)) in std::mem::take(&mut world.counts) {
            let counted = all.entry(lie).or_default();
            *counted = (counted.0 + told, counted.1 + refused);
        }
    }
    let few = seeds(30).count() < 30;
    assert!(few || all.len() == 18 && all.values().all(|(told, refused)| told.min(refused) > &5), "{all:?}");
}
