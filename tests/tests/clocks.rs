//! A server whose clock is wrong, in a simulated cell with rxgk tokens.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use afs_rpc::Level;
use afs_venus::{NodeId, VenusError};
use afs_wire::ids::Rights;
use andrew_tests::sim::cell::Cell;
use andrew_tests::sim::history::History;
use andrew_tests::sim::settings::CellSettings;
use andrew_tests::sim::user::User;

/// Longer than a token of the cell lasts.
const WRONG_BY: Duration = Duration::from_secs(11 * 365 * 86_400);
const LIMIT: Duration = Duration::from_secs(300);

/// Makes a file, which takes the rights of the user's token.
fn make(cell: &Cell, user: &User, name: &'static [u8]) -> Result<(), VenusError> {
    let venus = user.venus.clone();
    let made = async move { venus.mknod(NodeId::ROOT, name, 0o644).await.map(drop) };
    cell.sim.block_on(user.node, LIMIT, made).unwrap()
}

/// The time of the server as the mount has it, in seconds ahead of its own.
fn clock(cell: &Cell, user: &User) -> i64 {
    let venus = user.venus.clone();
    let told = async move { venus.property(NodeId::ROOT, b"afs.clocks".as_slice()).await.unwrap() };
    let told = cell.sim.block_on(user.node, LIMIT, told).unwrap();
    let text = String::from_utf8_lossy(&told).into_owned();
    text.trim().rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn a_token_is_good_again_when_the_clock_of_the_server_is_right() {
    let proofs = vec![Some(Level::Crypt)];
    let cell = Cell::with(7, CellSettings { proofs, anyuser: Rights::NONE, ..CellSettings::default() });
    cell.start();
    let user = cell.user(1, &History::new(cell.sim.world())).unwrap();
    make(&cell, &user, b"before").unwrap();
    cell.sim.jump_wall(cell.server, WRONG_BY, true);
    let refused = make(&cell, &user, b"meanwhile").unwrap_err();
    assert_eq!(refused.errno(), 13, "{refused}");
    assert!(user.venus.tokens().iter().all(|token| !token.is_expired));
    cell.sim.run_for(Duration::from_secs(1));
    assert!(clock(&cell, &user) > 10 * 365 * 86_400);
    cell.sim.jump_wall(cell.server, WRONG_BY, false);
    cell.sim.run_for(Duration::from_secs(11));
    make(&cell, &user, b"after").unwrap();
    cell.sim.run_for(Duration::from_secs(120));
    assert!(clock(&cell, &user).abs() <= 1);
}
