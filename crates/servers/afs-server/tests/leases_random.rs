//! Leases in simulated worlds by seed: what two clients see of one directory, with crashes of the holder, of the server, and
//! silence; and two clients that race for a lease and a name.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_sim::crash::{Rng, seeds};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CallBack, ChangeList, LeaseId, ListedChange, TakeLease};
use afs_wire::ids::{Fid, Uuid};
use rig::leasing::{created, entries, list, objects, removed};
use rig::{Cell, Client, Heard, Manner, mode, name};

/// A file whose data are its name.
fn create(dir: Fid, object: Fid, text: &str) -> ListedChange {
    created(dir, object, text, text.as_bytes())
}

/// What a client with a lease has told its programs and not sent.
struct Held {
    lease: LeaseId,
    /// The number of the next list.
    next: u64,
    fids: VecDeque<Fid>,
    pending: Vec<ListedChange>,
}

/// A client that keeps changes back, as long as it has a lease.
struct Holder {
    client: Client,
    held: Arc<Mutex<Option<Held>>>,
    silent: Arc<Mutex<bool>>,
}

impl Holder {
    fn new(cell: &Cell) -> Self {
        Holder::of(cell.client(1))
    }

    fn of(client: Client) -> Self {
        let holder = Holder { client, held: Arc::default(), silent: Arc::default() };
        holder.answer_recalls();
        holder
    }

    /// The process ends, and another one takes its place at another port.
    fn crash(&mut self, uuid: Uuid, port: u16) {
        let address = std::net::SocketAddr::new(self.client.address.ip(), port);
        let (world, node) = (self.client.world.clone(), self.client.node);
        self.client.on_recall(Arc::new(|_| Box::pin(std::future::pending())));
        *self = Holder::of(Client::on(world, node, address, uuid, Manner::Modern));
    }

    fn answer_recalls(&self) {
        let (held, silent) = (self.held.clone(), self.silent.clone());
        let connection = self.client.connection::<ChangeList>();
        self.client.on_recall(Arc::new(move |call| {
            let (held, silent, connection) = (held.clone(), silent.clone(), connection.clone());
            Box::pin(async move {
                if *silent.lock().unwrap() {
                    std::future::pending::<()>().await;
                }
                let mine = held.lock().unwrap().take().filter(|held| held.lease == call.lease);
                if let Some(held) = mine.filter(|held| !held.pending.is_empty()) {
                    let reply = connection.call(&list(call.dir, held.lease, held.next, &held.pending)).await;
                    assert_eq!(
                        reply.map(|reply| reply.code),
                        Ok(AbortCode::OK),
                        "what programs were told holds"
                    );
                }
                Ok(())
            })
        }));
    }

    /// A call of its own that reveals a lost lease, as any call of the file service does.
    fn learns(&self, dir: Fid) -> Vec<Heard> {
        self.client.fetch_status(dir).unwrap();
        self.client.heard()
    }
}

#[test]
fn what_others_see_is_what_the_holder_did_or_the_lease_is_lost() {
    let mut all = [0; 3];
    for seed in seeds(60) {
        let world = World::new(seed).run();
        let of_seed = [world.lent, world.sent_lists, world.lost];
        all = [0, 1, 2].map(|at| all[at] + of_seed[at]);
    }
    let are_few = seeds(60).count() < 60;
    assert!(are_few || all.iter().all(|count| *count > 20), "leases, lists, and leases lost: {all:?}");
}

struct World {
    seed: u64,
    rng: Rng,
    cell: Cell,
    holder: Holder,
    other: Client,
    dir: Fid,
    /// As the programs of all machines know it.
    model: BTreeMap<String, Fid>,
    /// The same without what the holder keeps back.
    sent: BTreeMap<String, Fid>,
    count: usize,
    ports: u16,
    lent: usize,
    sent_lists: usize,
    lost: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(5000 + seed);
        let (holder, other, dir) = (Holder::new(&cell), cell.client(2), cell.root());
        let model = entries(&other, dir);
        let sent = model.clone();
        let (count, lent, sent_lists, lost) = (0, 0, 0, 0);
        let (rng, ports) = (Rng(seed), 7001);
        World { seed, rng, cell, holder, other, dir, model, sent, count, ports, lent, sent_lists, lost }
    }

    fn run(mut self) -> Self {
        for step in 0..60 {
            match self.rng.below(20) {
                0..=7 => self.change_by_holder(),
                8 | 9 => self.send(),
                10 | 11 => self.take(),
                12..=14 => self.change_by_other(),
                15 | 16 => self.look(step),
                17 => self.holder_falls_silent(),
                18 if self.rng.below(3) == 0 => self.server_restarts(),
                19 if self.rng.below(3) == 0 => self.holder_crashes(),
                _ => self.give_back(),
            }
        }
        self.look(60);
        self
    }

    fn has_lease(&self) -> bool {
        self.holder.held.lock().unwrap().is_some()
    }

    fn take(&mut self) {
        if self.has_lease() {
            return;
        }
        for _ in 0..3 {
            self.single_by_holder();
        }
        let _ = self.holder.learns(self.dir);
        let wanted = TakeLease { dir: self.dir, files: 12, directories: 0, space: 0 };
        match self.holder.client.ask(wanted) {
            Ok(reply) => {
                assert_eq!(entries(&self.holder.client, self.dir), self.model, "seed {}", self.seed);
                let fids = reply.fids.iter().copied().collect();
                let held = Held { lease: reply.lease, next: 1, fids, pending: Vec::new() };
                self.lent += 1;
                *self.holder.held.lock().unwrap() = Some(held);
            }
            // A client that was late is not trusted for a while.
            Err(error) => assert_eq!(error.abort_code(), Some(Errno::EAGAIN.to_uae()), "seed {}", self.seed),
        }
    }

    fn single_by_holder(&mut self) {
        let text = self.fresh();
        let fid = self.holder.client.create(self.dir, &text).unwrap().fid;
        self.model.insert(text.clone(), fid);
        self.sent.insert(text, fid);
    }

    /// By itself if it has the lease, else by a call.
    fn change_by_holder(&mut self) {
        if !self.has_lease() {
            return self.single_by_holder();
        }
        let (text, removes) = (self.fresh(), self.rng.below(3) == 0);
        let mut lock = self.holder.held.lock().unwrap();
        let held = lock.as_mut().unwrap();
        let victim = self.model.iter().find(|(name, _)| name.starts_with('n')).map(|(name, _)| name.clone());
        match (victim, held.fids.pop_front()) {
            (Some(victim), _) if removes => {
                held.pending.push(removed(self.dir, &victim));
                self.model.remove(&victim);
            }
            (_, Some(fid)) => {
                held.pending.push(create(self.dir, fid, &text));
                self.model.insert(text, fid);
            }
            _ => {}
        }
    }

    /// Sends what it keeps back, perhaps twice, as after a lost reply.
    fn send(&mut self) {
        let twice = self.rng.below(2) == 0;
        let next = {
            let mut lock = self.holder.held.lock().unwrap();
            let Some(held) = lock.as_mut().filter(|held| !held.pending.is_empty()) else { return };
            let next = list(self.dir, held.lease, held.next, &std::mem::take(&mut held.pending));
            held.next += 1;
            next
        };
        let reply = self.holder.client.ask(next.clone()).unwrap();
        assert_eq!(reply.code, AbortCode::OK, "seed {}", self.seed);
        if twice {
            let again = self.holder.client.ask(next).unwrap();
            assert_eq!((objects(&again), again.code), (objects(&reply), reply.code), "seed {}", self.seed);
        }
        self.sent = self.model.clone();
        self.sent_lists += 1;
    }

    fn give_back(&mut self) {
        self.send();
        let held = self.holder.held.lock().unwrap().take();
        if let Some(held) = held {
            self.holder.client.ask(fs::ReturnLease { dir: self.dir, lease: held.lease }).unwrap();
        }
    }

    /// The recall comes first, so everything that was kept back is there.
    fn recalled(&mut self) {
        self.sent = self.model.clone();
    }

    fn change_by_other(&mut self) {
        self.recalled();
        let text = self.fresh();
        let fid = self.other.create(self.dir, &text).unwrap().fid;
        self.model.insert(text.clone(), fid);
        self.sent.insert(text, fid);
        let victim = self.model.keys().find(|name| name.starts_with('n')).cloned().unwrap();
        self.other.remove(self.dir, &victim).unwrap();
        self.model.remove(&victim);
        self.sent.remove(&victim);
    }

    fn look(&mut self, step: usize) {
        self.recalled();
        let seen = entries(&self.other, self.dir);
        assert_eq!(seen, self.model, "seed {} step {step}", self.seed);
        for (text, fid) in seen.iter().filter(|(text, _)| text.starts_with('n')) {
            let data = self.other.read(*fid);
            assert!(data.is_empty() || data == text.as_bytes(), "seed {} step {step}", self.seed);
        }
    }

    /// It loses the lease, and with it what it kept back; it hears of that before its next call is served.
    fn holder_falls_silent(&mut self) {
        let had = self.holder.held.lock().unwrap().take();
        *self.holder.silent.lock().unwrap() = true;
        let begun = self.cell.world().now();
        self.model = self.sent.clone();
        self.look(usize::MAX);
        let waited = self.cell.world().now() - begun;
        assert!(waited < Duration::from_secs(9), "seed {}: {waited:?}", self.seed);
        *self.holder.silent.lock().unwrap() = false;
        let Some(mut held) = had else { return };
        self.lost += 1;
        self.holder.client.heard();
        let late = match held.fids.pop_front() {
            Some(fid) => create(self.dir, fid, "late"),
            None => removed(self.dir, "late"),
        };
        let code = self.holder.client.refusal(list(self.dir, held.lease, held.next, &[late]));
        assert_eq!(code, Errno::ESTALE.to_uae(), "seed {}", self.seed);
    }

    fn server_restarts(&mut self) {
        let had = self.holder.held.lock().unwrap().take();
        self.cell.restart();
        self.model = self.sent.clone();
        if let Some(held) = had {
            self.lost += 1;
            let late = list(self.dir, held.lease, held.next, &[removed(self.dir, "late")]);
            let code = self.holder.client.refusal(late);
            assert_eq!(code, Errno::ESTALE.to_uae(), "seed {}", self.seed);
        }
        self.look(usize::MAX);
    }

    /// Another process takes the place of the one that had the lease, at another port.
    fn holder_crashes(&mut self) {
        self.model = self.sent.clone();
        self.ports += 1;
        self.holder.crash(Uuid([1; 16]), self.ports);
        self.look(usize::MAX);
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("n{:03}", self.count)
    }
}

/// The two races: a call that was let through just before the directory was lent, and a promise that is given just after.
#[test]
fn one_of_two_gets_a_name_however_a_lease_and_a_call_race() {
    let (mut lent, mut by_call) = (0, 0);
    for seed in seeds(120) {
        let (cell, mut rng) = (Cell::new(9000 + seed), Rng(seed));
        let (holder, other, dir) = (Holder::new(&cell), cell.client(2), cell.root());
        other.fetch_status(dir).unwrap();
        for n in 0..3 {
            holder.client.create(dir, &format!("n{n}")).unwrap();
        }
        holder.client.fetch_status(dir).unwrap();
        other.heard();
        let wanted = TakeLease { dir, files: 1, directories: 0, space: 0 };
        let taken = holder.client.begin(wanted);
        cell.sim.run_for(Duration::from_micros(rng.below(3000)));
        let (asks, makes) = (rng.below(2) == 0, rng.below(2) == 0);
        let status = asks.then(|| other.begin(fs::FetchStatus { fid: dir }));
        let made = makes.then(|| other.begin(fs::CreateFile { dir, name: name("x"), status: mode(0o644) }));
        // Its programs create the name as soon as the lease is there, if it is free then.
        while taken.lock().unwrap().is_none() {
            cell.sim.run_for(Duration::from_millis(1));
        }
        let reply_of_lease = taken.lock().unwrap().take().unwrap().ok();
        let decided = reply_of_lease.clone().filter(|_| !entries(&holder.client, dir).contains_key("x"));
        // A recall that came before the reply was answered: the lease is not used.
        let recalled = |lease| holder.client.heard().contains(&Heard::Recall(dir, lease));
        let decided = decided.filter(|reply| !recalled(reply.lease));
        if let Some(reply) = &decided {
            lent += 1;
            let pending = vec![create(dir, reply.fids[0], "x")];
            *holder.held.lock().unwrap() =
                Some(Held { lease: reply.lease, next: 1, fids: VecDeque::new(), pending });
        }
        cell.sim.run_for(Duration::from_secs(20));
        if let Some(Ok(reply)) = status.and_then(|status| status.lock().unwrap().take()) {
            let relies =
                reply.callback != CallBack::NONE && !other.heard().contains(&Heard::Break(vec![dir]));
            let kept = reply_of_lease.is_some() && holder.held.lock().unwrap().is_some();
            assert!(!(relies && kept), "seed {seed}: one relies on what the other decides");
        }
        let made = made.and_then(|made| made.lock().unwrap().take()).map(|made| made.map(|reply| reply.fid));
        let fid = entries(&other, dir).get("x").copied();
        match (&decided, made) {
            (Some(reply), Some(Err(_)) | None) => assert_eq!(fid, Some(reply.fids[0]), "seed {seed}"),
            (None, Some(Ok(of_other))) => {
                by_call += 1;
                assert_eq!(fid, Some(of_other), "seed {seed}");
            }
            (None, Some(Err(error))) => panic!("seed {seed}: {error}"),
            (None, None) => assert_eq!(fid, None, "seed {seed}"),
            (Some(_), Some(Ok(_))) => panic!("seed {seed}: both were told that they created the name"),
        }
    }
    let are_few = seeds(120).count() < 120;
    assert!(are_few || lent > 20 && by_call > 20, "{lent} {by_call}");
}
