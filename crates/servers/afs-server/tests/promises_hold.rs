//! Consistency of promises under faults of network and machines: a client that got its replies, and was not
//! marked down since, holds no promise on an old version at any moment at which a call has been answered.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::collections::BTreeMap;
use std::time::Duration;

use afs_rpc::Instant;
use afs_sim::{LinkConfig, SimRng};
use afs_wire::fs;
use afs_wire::ids::{DataVersion, Fid};
use rig::{Cell, Client, Heard};

const CLIENTS: u8 = 3;
const FILES: usize = 4;
const STEPS: usize = 150;

/// The cached state of a client, as in a cache manager.
struct Believer {
    client: Client,
    believes: BTreeMap<Fid, (DataVersion, Instant)>,
    reachable: bool,
    /// Whether it got a reply since it was last marked down, and since the server started: it must be
    /// notified of every change from then on.
    current: bool,
}

impl Believer {
    /// Applies breaks received, and expiry.
    fn listen(&mut self) {
        for heard in self.client.heard() {
            match heard {
                Heard::Break(fids) => self.believes.retain(|fid, _| !fids.contains(fid)),
                Heard::Reset(_) => self.believes.clear(),
                _ => {}
            }
        }
        let now = self.client.world.now();
        self.believes.retain(|_, (_, until)| *until > now);
    }

    fn read(&mut self, fid: Fid) -> bool {
        self.listen();
        let answer = self.client.fetch_status(fid);
        self.listen();
        let Ok(reply) = answer else { return false };
        let until = self.client.world.now() + Duration::from_secs(reply.callback.expires_in.into());
        self.believes.insert(fid, (reply.status.data_version, until));
        true
    }

    fn write(&mut self, fid: Fid) -> bool {
        self.listen();
        let answer = self.client.store(fid, 0, b"something else");
        self.listen();
        match answer {
            Ok(reply) => {
                // The promise is unchanged; only the version is new.
                if let Some(belief) = self.believes.get_mut(&fid) {
                    belief.0 = reply.status.data_version;
                }
                true
            }
            // The store may have happened all the same.
            Err(_) => {
                self.believes.remove(&fid);
                false
            }
        }
    }

    fn check(&self, cell: &Cell, seed: u64) {
        for (fid, (version, _)) in &self.believes {
            let real = cell.version(*fid);
            assert_eq!(*version, real, "seed {seed}: {} relies on an old {fid}", self.client.address);
        }
    }
}

fn run(seed: u64) {
    let mut cell = Cell::new(seed);
    let mut rng: SimRng = cell.sim.fork_rng();
    cell.sim.set_link(LinkConfig { loss_per_million: 10_000, ..LinkConfig::default() });
    let mut believers: Vec<Believer> = (1..=CLIENTS)
        .map(|n| Believer {
            client: cell.client(n),
            believes: BTreeMap::new(),
            reachable: true,
            current: true,
        })
        .collect();
    let root = cell.root();
    let files: Vec<Fid> =
        (0..FILES).map(|n| believers[0].client.create(root, &format!("f{n}")).unwrap().fid).collect();
    let mut answered = 0;
    for _ in 0..STEPS {
        let who = rng.index(believers.len());
        let fid = files[rng.index(files.len())];
        let good = match rng.index(100) {
            0..50 => believers[who].read(fid),
            50..80 => believers[who].write(fid),
            80..90 => {
                toggle(&cell, &mut believers[who]);
                false
            }
            90..93 => {
                cell.restart();
                believers.iter_mut().for_each(|believer| believer.current = false);
                false
            }
            93..97 => {
                cell.sim.run_for(Duration::from_secs(rng.index(2000) as u64));
                false
            }
            _ => {
                let fids = fs::Fids::first_of(files.iter().copied());
                believers[who]
                    .client
                    .ask(fs::GiveUpCallBacks { fids, callbacks: fs::Promises::new() })
                    .is_ok()
                    && {
                        believers[who].believes.clear();
                        true
                    }
            }
        };
        if good {
            answered += 1;
            believers[who].current = true;
        }
        for believer in &mut believers {
            believer.listen();
            if believer.current {
                believer.check(&cell, seed);
            }
        }
    }
    assert!(answered > STEPS / 8, "seed {seed}: only {answered} calls were answered");
}

/// Disconnects a client from the network, or reconnects it.
fn toggle(cell: &Cell, believer: &mut Believer) {
    let (server, node) = (cell.server, believer.client.node);
    believer.reachable = !believer.reachable;
    believer.current = false;
    if believer.reachable {
        cell.sim.mend(server, node);
        cell.sim.mend(node, server);
    } else {
        cell.sim.cut(server, node);
        cell.sim.cut(node, server);
    }
}

#[test]
fn no_client_that_was_answered_relies_on_an_old_version() {
    for seed in afs_sim::crash::seeds(12) {
        run(1000 + seed);
    }
}

/// Both datagrams of a probe of a silent client were lost: it was never told of the next change.
#[test]
fn a_client_whose_probe_was_lost_is_told_of_changes() {
    run(1048);
}

/// Of a client that had moved to a new address, the server asked for a sign of life once; the reply was lost.
#[test]
fn a_client_at_a_new_address_whose_proof_was_lost_is_told_of_changes() {
    run(1341);
}
