//! Users with tokens, and groups that change while they work: what each was allowed can be explained by the memberships of the
//! last second.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::future::join_all;
use afs_rpc::{EnvExt, Instant};
use afs_sim::crash::seeds;
use common::{Cell, Client};

/// Directories, each for a group of its own.
const GROUPS: usize = 3;
const USERS: [(u32, &str); 3] = [(1001, "alice"), (1002, "bob"), (1003, "carol")];
/// How long a change may take to be noticed.
const NOTICED: Duration = Duration::from_secs(1);
/// The same of a machine that was cut off.
const NOTICED_AFTER_CUT: Duration = Duration::from_secs(80);
const RUN: Duration = Duration::from_secs(180);

/// Who was in which group, and when; and when each machine was cut off.
#[derive(Default)]
struct Truth {
    changes: Vec<(Instant, usize, usize, bool)>,
    cuts: Vec<(usize, Instant, Instant)>,
}

impl Truth {
    /// Whether a user was in a group, and whether the user was not, at some time of a window.
    fn was(&self, user: usize, group: usize, from: Instant, until: Instant) -> (bool, bool) {
        let mut now = false;
        let (mut member, mut stranger) = (false, false);
        for (at, changed, of, joins) in &self.changes {
            if (*changed, *of) != (user, group) {
                continue;
            }
            if *at > until {
                break;
            }
            if *at > from {
                (member, stranger) = (member | now, stranger | !now);
            }
            now = *joins;
        }
        (member | now, stranger | !now)
    }

    fn was_cut_off(&self, machine: usize, from: Instant, until: Instant) -> bool {
        self.cuts.iter().any(|(cut, began, ended)| *cut == machine && *began <= until && from <= *ended)
    }
}

type Shared = Arc<Mutex<Truth>>;

/// One operation of a user, and whether it is explained.
async fn work(client: &Client, machine: usize, user: usize, group: usize, truth: &Shared) {
    let here = client.user(USERS[user].0);
    let began = here.env.now();
    let path = format!("d{group}/file");
    let done = match here.env.random_u64() % 3 {
        0 => here.get(&path).await.map(drop),
        1 => here.find(&path).await.map(drop),
        _ => here.names(&format!("d{group}")).await.map(drop),
    };
    let ended = here.env.now();
    let is_denied = done.as_ref().is_err_and(|error| error.errno() == 13);
    let truth = truth.lock().unwrap();
    let since = |time: Duration| Instant::ZERO + began.saturating_since(Instant::ZERO + time);
    if truth.was_cut_off(machine, since(NOTICED_AFTER_CUT), ended) {
        return;
    }
    let (member, stranger) = truth.was(user, group, since(NOTICED), ended);
    let who = USERS[user].1;
    assert!(done.is_ok() || is_denied, "{who} at d{group}: {done:?}");
    assert!(done.is_err() || member, "{who} was let in to d{group} at {ended:?} and was not in the group");
    assert!(!is_denied || stranger, "{who} was denied d{group} at {ended:?} and was in the group");
}

async fn pause(client: &Client, most: Duration) {
    let millis = client.env.random_u64() % (most.as_millis() as u64).max(1);
    client.env.sleep(Duration::from_millis(millis)).await;
}

async fn users(client: Client, machine: usize, truth: Shared) {
    let end = client.env.now() + RUN;
    join_all((0..2).map(|_| async {
        while client.env.now() < end {
            let (user, group) =
                (client.env.random_u64() as usize % USERS.len(), client.env.random_u64() as usize % GROUPS);
            work(&client, machine, user, group, &truth).await;
            pause(&client, Duration::from_millis(400)).await;
        }
    }))
    .await;
}

/// Changes memberships, one after the other.
async fn administrator(client: Client, directory: afs_testkit::UserDirectory, truth: Shared) {
    let end = client.env.now() + RUN;
    let mut members = [[false; GROUPS]; USERS.len()];
    while client.env.now() < end {
        let (user, group) =
            (client.env.random_u64() as usize % USERS.len(), client.env.random_u64() as usize % GROUPS);
        let member = &mut members[user][group];
        *member = !*member;
        truth.lock().unwrap().changes.push((client.env.now(), user, group, *member));
        let (name, of) = (USERS[user].1, format!("g{group}"));
        if *member {
            directory.join(name, &of)
        } else {
            directory.leave(name, &of)
        }
        pause(&client, Duration::from_secs(4)).await;
    }
}

/// Cuts a machine off from time to time.
async fn network(client: Client, machine: usize, server: afs_sim::NodeId, truth: Shared) {
    let end = client.env.now() + RUN;
    while client.env.now() < end {
        pause(&client, Duration::from_secs(60)).await;
        let began = client.env.now();
        for (from, to) in [(client.node, server), (server, client.node)] {
            client.world.cut(from, to);
        }
        truth.lock().unwrap().cuts.push((machine, began, began + Duration::from_secs(24 * 3600)));
        pause(&client, Duration::from_secs(20)).await;
        for (from, to) in [(client.node, server), (server, client.node)] {
            client.world.mend(from, to);
        }
        truth.lock().unwrap().cuts.last_mut().unwrap().2 = client.env.now();
        client.env.sleep(NOTICED_AFTER_CUT + Duration::from_secs(20)).await;
    }
}

fn history(seed: u64, cuts: bool) {
    let cell = Cell::new(seed);
    USERS.iter().zip(11..).for_each(|((_, name), id)| cell.users.add(name, id));
    (0..GROUPS).for_each(|group| cell.users.add(&format!("g{group}"), -300 - group as i32));
    let machines = [cell.client(1), cell.client(2)];
    let first = machines[0].clone();
    cell.on(&machines[0], async move {
        for group in 0..GROUPS {
            first.mkdir(&format!("d{group}")).await.unwrap();
            first.put(&format!("d{group}/file"), b"data").await.unwrap();
            first.set_acl(&format!("d{group}"), &[(&format!("g{group}"), "rl")]).await.unwrap();
        }
    });
    for machine in &machines {
        let here = machine.clone();
        cell.on(machine, async move {
            for (uid, name) in USERS {
                here.log_in(uid, name).await;
            }
        });
    }
    let truth = Shared::default();
    let [one, two] = machines;
    let (directory, server, told) = (cell.users.clone(), cell.server, truth.clone());
    let here = one.clone();
    cell.on(&one, async move {
        let env = here.env.clone();
        let network = network(two.clone(), 1, server, told.clone());
        let cutting = cuts.then(|| env.spawn_with_result(network));
        let all = [
            env.spawn_with_result(users(here.clone(), 0, told.clone())),
            env.spawn_with_result(users(two, 1, told.clone())),
            env.spawn_with_result(administrator(here, directory, told)),
        ];
        for done in join_all(all.into_iter().chain(cutting)).await {
            done.unwrap_or_else(|_| panic!("seed {seed}: a user saw what cannot be explained"));
        }
    });
    let changes = truth.lock().unwrap().changes.len();
    assert!(changes > 40, "{changes} changes");
}

#[test]
fn what_users_are_allowed_follows_their_groups_within_a_second() {
    seeds(2).for_each(|seed| history(seed, false));
}

#[test]
fn what_users_are_allowed_follows_their_groups_when_machines_are_cut_off() {
    seeds(2).for_each(|seed| history(seed, true));
}
