//! The model: who reads which file of which state, computed anew from what was done.

use std::collections::{BTreeMap, BTreeSet};

use afs_sim::crash::Rng;
use afs_wire::fs;
use afs_wire::ids::{Fid, KindNumber, Rights, UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vol::{self, AttachFlags, NameChars, RestoreCookie, VolumeFlags};

use super::rig::{Cell, Claim, Client};
use super::{at, clear, keep, set_list, take};

/// A directory with one file.
#[derive(Clone)]
struct Directory {
    name: String,
    above: Option<Fid>,
    file: Fid,
    everybody: Rights,
}

type State = BTreeMap<Fid, Directory>;

struct Model {
    cell: Cell,
    alice: Client,
    stranger: Client,
    present: State,
    /// By volume; later ones have greater numbers.
    pasts: BTreeMap<VolumeId, State>,
    /// Directories, and the newest state that is closed.
    closed: BTreeSet<(Fid, VolumeId)>,
    made: u32,
    /// Answers that were compared: permitted, refused by the present, by a closed past, and after a removal.
    seen: [u32; 4],
}

impl Model {
    fn new(seed: u64) -> Self {
        let cell = Cell::with(seed, Default::default(), "rl");
        let (alice, stranger) = (cell.client(1).acting_as(&Claim::of("alice")), cell.client(2));
        set_list(&cell.owner(), cell.root(), Rights::READ | Rights::LOOKUP);
        let file = alice.create(cell.root(), "file").unwrap().fid;
        let everybody = Rights::READ | Rights::LOOKUP;
        let present = [(cell.root(), Directory { name: String::new(), above: None, file, everybody })].into();
        let (pasts, closed) = Default::default();
        Model { cell, alice, stranger, present, pasts, closed, made: 0, seen: [0; 4] }
    }

    fn some(&self, rng: &mut Rng) -> Fid {
        *self.present.keys().nth(rng.below(self.present.len() as u64) as usize).unwrap()
    }

    fn step(&mut self, rng: &mut Rng) {
        self.made += 1;
        let (dir, name) = (self.some(rng), format!("d{}", self.made));
        match rng.below(12) {
            0..4 => self.make(dir, &name),
            4..6 => self.remove(dir),
            6..9 => {
                let everybody = [Rights::NONE, Rights::LOOKUP, Rights::READ | Rights::LOOKUP];
                let everybody = everybody[rng.below(3) as usize];
                set_list(&self.alice, dir, everybody);
                self.present.get_mut(&dir).unwrap().everybody = everybody;
            }
            9 => {
                let (root, id) = (self.cell.root().volume, 1000 + self.made);
                let past = keep(&self.cell, root, VolumeKind::Backup, &format!("root.cell.s{id}"), id);
                self.pasts.insert(past, self.present.clone());
            }
            10 => self.close(dir, rng),
            _ => self.go_back(rng),
        }
    }

    fn make(&mut self, above: Fid, name: &str) {
        let made = self.alice.make_dir(above, name).unwrap().fid;
        let file = self.alice.create(made, "file").unwrap().fid;
        let everybody = self.present[&above].everybody;
        self.present.insert(made, Directory { name: name.into(), above: Some(above), file, everybody });
    }

    /// Unless something is below it.
    fn remove(&mut self, dir: Fid) {
        let Some(above) = self.present[&dir].above else { return };
        if self.present.values().any(|other| other.above == Some(dir)) {
            return;
        }
        let name = self.present[&dir].name.clone();
        self.alice.remove(dir, "file").unwrap();
        self.alice.remove_dir(above, &name).unwrap();
        self.present.remove(&dir);
    }

    /// By Alice, or again opened by an administrator.
    fn close(&mut self, dir: Fid, rng: &mut Rng) {
        let with = self.pasts.iter().filter(|(_, state)| state.contains_key(&dir));
        let pasts: Vec<VolumeId> = with.map(|(past, _)| *past).collect();
        if pasts.is_empty() {
            return;
        }
        let past = pasts[rng.below(pasts.len() as u64) as usize];
        if self.closed.iter().any(|(closed, _)| *closed == dir) && rng.below(2) == 0 {
            let acl = self.cell.owner().ask(fs::FetchAcl { fid: at(dir, past) }).unwrap().acl;
            self.cell.owner().ask(fs::StoreAcl { fid: at(dir, past), acl }).unwrap();
            return self.closed.retain(|(closed, _)| *closed != dir);
        }
        self.alice.ask(fs::StoreAcl { fid: at(dir, past), acl: clear() }).unwrap();
        self.closed.insert((dir, past));
    }

    fn go_back(&mut self, rng: &mut Rng) {
        if self.pasts.is_empty() || rng.below(3) != 0 {
            return;
        }
        let (past, state) = self.pasts.iter().nth(rng.below(self.pasts.len() as u64) as usize).unwrap();
        restore(&self.cell, self.cell.root().volume, *past);
        self.present = state.clone();
    }

    /// The directory and those above it, as a state has them.
    fn chain(state: &State, dir: Fid) -> Vec<Fid> {
        std::iter::successors(Some(dir), |dir| state[dir].above).collect()
    }

    fn compare(&mut self, rng: &mut Rng) {
        if self.pasts.is_empty() {
            return;
        }
        let (past, state) = self.pasts.iter().nth(rng.below(self.pasts.len() as u64) as usize).unwrap();
        let dir = *state.keys().nth(rng.below(state.len() as u64) as usize).unwrap();
        let chain = Model::chain(state, dir);
        let covers = |(closed, until): &(Fid, VolumeId)| chain.contains(closed) && past <= until;
        let is_closed = self.closed.iter().any(covers);
        let today = chain.iter().find_map(|dir| self.present.get(dir)).unwrap();
        let by_day = state[&dir].everybody.contains(Rights::READ);
        let expected = !is_closed && by_day && today.everybody.contains(Rights::READ);
        let file = at(state[&dir].file, *past);
        assert_eq!(self.stranger.fetch(file, 0, 1).is_ok(), expected, "{file} in {dir}");
        assert_eq!(self.alice.fetch(file, 0, 1).is_ok(), !is_closed, "{file} of Alice in {dir}");
        self.seen[0] += u32::from(expected);
        self.seen[1] += u32::from(!is_closed && by_day && !expected);
        self.seen[2] += u32::from(is_closed);
        self.seen[3] += u32::from(!is_closed && !self.present.contains_key(&dir));
    }
}

/// The volume gets the content of an earlier state.
pub(super) fn restore(cell: &Cell, volume: VolumeId, past: VolumeId) {
    let owner = cell.owner();
    let from = take(&owner, past, AttachFlags::BUSY);
    let dump = vol::Dump { transaction: from, from_date: UnixSeconds(0) };
    let stream = owner.read_stream(dump).unwrap();
    owner.ask(vol::EndTrans { transaction: from }).unwrap();
    let to = take(&owner, volume, AttachFlags::OFFLINE);
    let (name, kind) = (NameChars::truncated(b"root.cell"), KindNumber(0));
    let cookie = RestoreCookie { name, kind, clone: VolumeId(0), parent: volume };
    owner.send_stream(vol::Restore { transaction: to, flags: 1, cookie }, &[&stream]).unwrap();
    owner.ask(vol::SetFlags { transaction: to, flags: VolumeFlags(0) }).unwrap();
    owner.ask(vol::EndTrans { transaction: to }).unwrap();
}

#[test]
fn whatever_was_done_the_past_shows_what_its_day_and_the_present_both_show() {
    let mut seen = [0; 4];
    for seed in 0..12 {
        let (mut model, mut rng) = (Model::new(seed), Rng(seed + 77));
        for _ in 0..60 {
            model.step(&mut rng);
            (0..4).for_each(|_| model.compare(&mut rng));
        }
        seen.iter_mut().zip(model.seen).for_each(|(all, more)| *all += more);
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}
