//! Renames that replace nothing: of several machines that make one name, one succeeds, and no file is lost.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::common;

use afs_rpc::future::join_all;
use afs_sim::LinkConfig;
use afs_venus::{ErrorKind, Result};
use afs_wire::fs;
use afs_wire::rpc::Request;
use common::{Cell, Client};

const MACHINES: u8 = 3;
const ROUNDS: usize = 10;

#[test]
fn of_machines_that_make_one_name_one_succeeds() {
    (0..4).for_each(|seed| make_one_name(&Cell::new(seed), [1, 1]));
}

#[test]
fn of_machines_that_make_one_name_one_succeeds_with_leases() {
    for seed in 10..14 {
        let cell = Cell::new(seed);
        cell.set_limits(|limits| limits.leases = true);
        make_one_name(&cell, [1, 1]);
    }
}

#[test]
fn of_machines_that_make_one_name_one_succeeds_when_replies_are_lost() {
    for seed in 20..24 {
        let cell = Cell::new(seed);
        cell.sim.set_link(LinkConfig { loss_per_million: 100_000, ..LinkConfig::default() });
        make_one_name(&cell, [1, 1]);
    }
}

/// There a file gets the new name before it loses the old one. Into another directory it cannot be: that is said.
#[test]
fn of_machines_that_make_one_name_one_succeeds_at_a_server_without_the_call() {
    for seed in 30..34 {
        make_one_name(&Cell::with_older_server(seed, true, &[fs::RenameNew::OPCODE]), [1, 0]);
    }
}

/// Each round one name, in the directory of the files and in another one by turns. `winners`: how many succeed there.
fn make_one_name(cell: &Cell, winners: [usize; 2]) {
    let machines: Vec<Client> = (1..=MACHINES).map(|number| cell.client(number)).collect();
    let first = machines[0].clone();
    cell.on(&machines[0].clone(), async move {
        first.mkdir("here").await.unwrap();
        first.mkdir("there").await.unwrap();
        let mut made = 0;
        for round in 0..ROUNDS {
            let into = ["here", "there"][round % 2];
            for (number, machine) in machines.iter().enumerate() {
                machine.put(&old_name(number, round), &[number as u8]).await.unwrap();
            }
            let tries = machines.iter().enumerate().map(|(number, it)| try_one(it, number, round, into));
            let done: Vec<Result<()>> = join_all(tries).await;
            let won = done.iter().filter(|done| done.is_ok()).count();
            assert_eq!(won, winners[round % 2], "round {round}: {done:?}");
            let expected = if won == 0 { ErrorKind::Invalid } else { ErrorKind::Exists };
            let errors: Vec<ErrorKind> =
                done.iter().filter_map(|done| Some(done.as_ref().err()?.kind)).collect();
            assert!(errors.iter().all(|kind| *kind == expected), "round {round}: {errors:?}");
            made += won;
            if let Some(winner) = done.iter().position(Result::is_ok) {
                for machine in &machines {
                    let read = machine.get(&format!("{into}/new{round}")).await.unwrap();
                    assert_eq!(read, [winner as u8], "round {round}");
                }
            }
        }
        let named = async |path| {
            let names = first.names(path).await.unwrap();
            names.into_iter().filter(|name| !name.starts_with('.')).collect::<Vec<_>>()
        };
        let all = [named("here").await, named("there").await].concat();
        let new = all.iter().filter(|name| name.starts_with("new")).count();
        assert_eq!((all.len(), new), (usize::from(MACHINES) * ROUNDS, made), "{all:?}");
    });
}

fn old_name(number: usize, round: usize) -> String {
    format!("here/old{round}.{number}")
}

async fn try_one(machine: &Client, number: usize, round: usize, into: &str) -> Result<()> {
    let old = old_name(number, round);
    let from = machine.find("here").await.unwrap().node;
    let into = machine.find(into).await.unwrap().node;
    let (_, name) = old.split_once('/').unwrap();
    machine.venus.rename_new(from, name.as_bytes(), into, format!("new{round}").as_bytes()).await
}
