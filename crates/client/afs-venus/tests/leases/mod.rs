//! Leases of directories: changes that this client decides and sends later, and that nobody else ever misses.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::common;
mod costs;
mod database;
mod decided;
mod full_disk;
mod lent;
mod liars;
mod losses;
mod lost_leases;
mod made_good;
mod names;
mod replies;
mod sent;
mod taken;

use std::collections::BTreeMap;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_venus::{Attr, ErrorKind, NewTime, Result, SetAttr};
use afs_wire::ids::{FileTime, Mode, UnixSeconds};
use common::{Cell, Client, LIMIT, pattern};

/// A cell whose clients take leases.
fn cell(seed: u64) -> Cell {
    let cell = Cell::new(seed);
    cell.set_limits(|limits| limits.leases = true);
    cell
}

/// Makes the changes after which a lease is asked for, and one more, so that it is taken.
async fn lease(client: &Client, dir: &str) {
    client.mkdir(dir).await.unwrap();
    let taken = client.venus.counters().leases_taken;
    for n in 0..4 {
        client.put(&format!("{dir}/first{n}"), b"x").await.unwrap();
    }
    assert_eq!(client.venus.counters().leases_taken, taken + 1);
}

/// The same, and a directory in it, by whose rights those of new ones are known. Nothing waits to be sent afterwards.
async fn lease_with_model(client: &Client) {
    lease(client, "dir").await;
    client.mkdir("dir/model").await.unwrap();
    client.env.sleep(Duration::from_secs(2)).await;
}

/// A cell in which the first of two machines has the lease of `dir`, and nothing that waits to be sent.
fn leased(seed: u64) -> (Cell, Client, Client) {
    let cell = cell(seed);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.env.sleep(Duration::from_secs(2)).await;
    });
    (cell, a, b)
}

/// Names and contents of a directory with files alone, as a machine sees them.
async fn contents(client: &Client, dir: &str) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for name in client.names(dir).await.unwrap() {
        if !matches!(name.as_str(), "." | "..") {
            let data = client.get(&format!("{dir}/{name}")).await;
            all.insert(name.clone(), data.unwrap_or_else(|error| panic!("{name}: {error}")));
        }
    }
    all
}

/// Small files, each at most once.
async fn put_all(client: &Client, dir: &str, files: std::ops::Range<u32>) {
    for n in files {
        client.put(&format!("{dir}/file{n}"), b"data").await.unwrap();
    }
}

/// Makes a file as git makes an object: under another name, with a second one, without the first.
async fn put_by_link(client: &Client, dir: &str, name: &str, data: &[u8]) -> Result<()> {
    client.put(&format!("{dir}/tmp"), data).await?;
    let file = client.find(&format!("{dir}/tmp")).await?;
    let at = client.find(dir).await?.node;
    client.venus.link(file.node, at, name.as_bytes()).await?;
    client.venus.unlink(at, b"tmp").await
}

/// Mode and time of an object, set as by `cp -a`.
async fn set(client: &Client, path: &str, mode: u32, seconds: u32) -> Attr {
    let node = client.find(path).await.unwrap().node;
    let mtime = Some(NewTime::At(UnixSeconds(seconds).into()));
    let set = SetAttr { mode: Some(Mode(mode)), mtime, ..SetAttr::default() };
    client.venus.setattr(node, None, set).await.unwrap()
}

async fn mode_and_time(client: &Client, path: &str) -> (u32, u32) {
    let attr = client.find(path).await.unwrap().attr;
    (attr.mode.0, attr.mtime.seconds().0)
}

#[test]
fn all_of_this_holds_with_data_on_drives_of_other_kinds() {
    // These four take most of the time.
    let long = [
        "a_recall_in_the_middle",
        "more_directories",
        "lists_whose_replies",
        "a_restart_of_the_server_loses",
    ];
    afs_testkit::run_again_over(&["copies/nasd"], module_path!(), &long);
}
