//! One writer of a volume whatever is converted by force, and whichever server is cut off or crashes meanwhile: file servers compare
//! their volumes with an entry, and a model with the same seed says which of them serve.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use afs_admin::{ConvertOptions, CreateOptions, ReleaseOptions, ServerPartition};
use afs_sim::{NodeId, SimRng};
use afs_wire::ids::VolumeId;

use super::cell::{Cell, address, place};

const SERVERS: u8 = 3;
const SEEDS: u64 = 12;
const ROUNDS: usize = 8;
/// Longer than the time between two looks, the calls of one, and its doubt.
const LOOKED: Duration = Duration::from_secs(150);

/// What happens to a server while the entry changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    None,
    CutOff,
    Crash,
}

/// What is done to the entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Change {
    Convert,
    ToAnother,
    ToNowhere,
}

/// The volume as it should be.
struct Model {
    cell: Cell,
    rng: SimRng,
    volume: VolumeId,
    /// The read-write volumes, and which of them serve.
    serving: BTreeMap<ServerPartition, bool>,
    /// Where the entry has it.
    site: ServerPartition,
}

/// A change while something is wrong with a server, and whether the entry was locked when the server looked.
type Round = (Change, Fault, bool);

impl Model {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(7000 + seed, SERVERS);
        let options = CreateOptions { name: "v".into(), place: place(0, 0), quota: 0, id: None };
        let volume = cell.run(|admin| async move { admin.create(options).await }).unwrap();
        for server in 1..SERVERS {
            let at = place(server, 0);
            cell.run(move |admin| async move { admin.add_site("v", at, false).await }).unwrap();
        }
        let options = ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() };
        cell.run(|admin| async move { admin.release(options).await }).unwrap();
        cell.servers.iter().for_each(|server| server.fence_volumes(address(1)));
        let serving = BTreeMap::from([(place(0, 0), true)]);
        Self { rng: cell.sim.fork_rng(), cell, volume, serving, site: place(0, 0) }
    }

    /// A fault, a change meanwhile, the fault's end. Checked: who is cut off stays as it was, and so does who finds the entry locked.
    fn round(&mut self) -> Round {
        let server = self.rng.below(u64::from(SERVERS)) as u8;
        let fault = [Fault::None, Fault::CutOff, Fault::Crash][self.rng.index(3)];
        self.begin(fault, server);
        let change = self.change(server);
        let locked = fault != Fault::None && self.rng.chance(400_000);
        if locked {
            self.cell.run(|admin| async move { admin.lock("v").await }).unwrap();
        }
        self.cell.sim.run_for(LOOKED);
        self.check(fault == Fault::CutOff, server, "cut off");
        self.end(fault, server);
        self.cell.sim.run_for(LOOKED);
        if locked {
            self.check(true, server, "a locked entry");
            self.cell.run(|admin| async move { admin.unlock("v").await }).unwrap();
            self.cell.sim.run_for(LOOKED);
        }
        self.settle();
        (0..SERVERS).for_each(|server| self.check(true, server, "after all"));
        (change, fault, locked)
    }

    fn begin(&self, fault: Fault, server: u8) {
        let node = self.node(server);
        match fault {
            Fault::None => {}
            Fault::CutOff => self.each_link(node, |from, to| self.cell.sim.cut(from, to)),
            Fault::Crash => self.cell.sim.crash(node),
        }
    }

    fn end(&self, fault: Fault, server: u8) {
        match fault {
            Fault::None => {}
            Fault::CutOff => self.each_link(self.node(server), |from, to| self.cell.sim.mend(from, to)),
            Fault::Crash => {
                let server = &self.cell.servers[usize::from(server)];
                self.cell.sim.restart(server.node);
                server.start_now();
                server.fence_volumes(address(1));
            }
        }
    }

    fn node(&self, server: u8) -> NodeId {
        self.cell.servers[usize::from(server)].node
    }

    /// Those to the databases and the tool: clients may reach the server.
    fn each_link(&self, node: NodeId, link: impl Fn(NodeId, NodeId)) {
        for other in [self.cell.databases.node, self.cell.tool] {
            link(node, other);
            link(other, node);
        }
    }

    /// A change that needs no server with a fault.
    fn change(&mut self, faulty: u8) -> Change {
        let copy = (1..SERVERS).filter(|server| *server != faulty).map(|server| place(server, 0));
        if let Some(copy) = copy.into_iter().find(|copy| !self.serving.contains_key(copy))
            && self.rng.chance(600_000)
        {
            let options = ConvertOptions { volume: "v".into(), place: copy, force: true };
            self.cell.run(move |admin| async move { admin.convert(&options).await }).unwrap();
            self.serving.insert(copy, true);
            self.site = copy;
            return Change::Convert;
        }
        let healthy = |place: &ServerPartition| place.server != address(2 + faulty);
        let others: Vec<_> = self.serving.keys().copied().filter(healthy).collect();
        let nowhere = place((faulty + 1) % SERVERS, 1);
        let another =
            self.rng.chance(800_000).then(|| others.get(self.rng.index(others.len().max(1)))).flatten();
        self.site = another.copied().unwrap_or(nowhere);
        let site = self.site;
        self.cell.run(move |admin| async move { admin.change_location("v", site).await }).unwrap();
        another.map_or(Change::ToNowhere, |_| Change::ToAnother)
    }

    /// All have looked: who has the volume by the entry serves, and nobody else.
    fn settle(&mut self) {
        self.serving.iter_mut().for_each(|(place, serves)| *serves = *place == self.site);
    }

    /// Compares the volumes of a server with the model.
    fn check(&self, wanted: bool, server: u8, when: &str) {
        for (&at, &serves) in self.serving.iter().filter(|(at, _)| wanted && at.server == address(2 + server))
        {
            let header = self.cell.store(at).volume(self.volume).expect("it is there").header();
            assert_eq!(header.online, serves, "{when}: {at}, {}", header.offline_message);
        }
    }

    /// The entry is lost while all are cut off: that says nothing of who has the volume.
    fn lose_entry(&mut self) {
        let links =
            |link: &dyn Fn(NodeId, NodeId)| (0..SERVERS).for_each(|n| self.each_link(self.node(n), link));
        self.cell.sim.run_for(LOOKED);
        links(&|from, to| self.cell.sim.cut(from, to));
        self.cell.lose_entry(self.volume);
        links(&|from, to| self.cell.sim.mend(from, to));
        self.cell.sim.run_for(LOOKED);
        (0..SERVERS).for_each(|server| self.check(true, server, "a lost entry"));
    }
}

#[test]
fn one_server_writes_a_volume_whichever_is_away_while_its_entry_changes() {
    let mut seen: BTreeMap<Round, usize> = BTreeMap::new();
    for seed in 0..SEEDS {
        let mut model = Model::new(seed);
        for _ in 0..ROUNDS {
            *seen.entry(model.round()).or_default() += 1;
        }
        model.lose_entry();
    }
    let kinds = |of: fn(&Round) -> (Change, Fault)| seen.keys().map(of).collect::<BTreeSet<_>>().len();
    assert_eq!(kinds(|&(change, fault, _)| (change, fault)), 9, "{seen:?}");
    assert!(seen.keys().any(|(_, _, locked)| *locked), "{seen:?}");
}
