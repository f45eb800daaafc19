//! Operations of programs in the cell that lies, and the data of which their programs have been told that it could not be stored.

use afs_rpc::EnvExt;
use afs_rpc::future::join_all;
use afs_sim::SimRng;
use afs_venus::{Access, ErrorKind, LockKind, LockRange, NewTime, OpenFlags, Result, SetAttr};
use afs_wire::ids::{Mode, UnixSeconds};
use bytes::Bytes;

use super::scene::LARGE;
use crate::common::Client;

const NAMES: [&str; 7] = ["large", "small", "dir/one", "dir/two", "dir/link", "proj/file", "new"];
const DIRECTORIES: [&str; 4] = ["", "/dir", "/proj", "/made"];
/// Number of kinds of operations.
pub const KINDS: u64 = 16;

/// An operation of one kind. Its outcome is the liar's to choose.
pub async fn operation(client: &Client, kind: u64, rng: &mut SimRng) {
    let name = format!("bad.cell/{}", rng.pick(&NAMES).unwrap());
    let dir = format!("bad.cell{}", rng.pick(&DIRECTORIES).unwrap());
    match kind {
        0 | 1 => drop(read(client, &name, rng).await),
        2 => drop(client.names(&dir).await),
        3 => drop(attributes(client, &name).await),
        4 => drop(list(client, &dir).await),
        5 => drop(change(client, &name, rng).await),
        6 => drop(make_and_remove(client, &dir, rng).await),
        7 => drop(rename(client, rng).await),
        8 => drop(client.put(&name, b"rewritten").await),
        9 => drop(lock(client, &name).await),
        10 => drop(properties(client, &name, &dir).await),
        11 => drop(client.set_acl(&dir, &[("system:anyuser", "rlidwka"), ("alice", "rl")]).await),
        12 => drop(links(client, rng).await),
        13 => drop(small_files(client, &dir, rng).await),
        14 => drop(many_at_once(client, &dir, rng).await),
        _ => client.env.sleep(std::time::Duration::from_secs(rng.between(1, 90))).await,
    }
}

/// At some offsets only: a file that claims to be long is not read to its end.
async fn read(client: &Client, name: &str, rng: &mut SimRng) -> Result<()> {
    let handle = client.open(name, OpenFlags::READ).await?;
    for at in [0, LARGE as u64 - 100, *rng.pick(&[4096, 1 << 31, 1 << 43, 1 << 62]).unwrap()] {
        drop(client.venus.read(handle, at, 1 << 17).await);
    }
    client.venus.release(handle).await
}

async fn attributes(client: &Client, name: &str) -> Result<()> {
    let node = client.find(name).await?.node;
    drop(client.venus.getattr(node).await);
    drop(client.venus.access(node, Access { read: true, ..Access::default() }).await);
    drop(client.venus.readlink(node).await);
    client.venus.statfs(node).await.map(drop)
}

async fn list(client: &Client, dir: &str) -> Result<()> {
    let node = client.venus.walk(dir.as_bytes(), true).await?.node;
    client.venus.readdirplus(node, 0, 100).await.map(drop)
}

async fn change(client: &Client, name: &str, rng: &mut SimRng) -> Result<()> {
    let handle = client.open(name, OpenFlags::READ_WRITE).await?;
    let at = *rng.pick(&[0, 100, 1 << 18]).unwrap();
    drop(client.venus.write(handle, at, Bytes::from_static(b"there")).await);
    drop(client.venus.read(handle, at.saturating_sub(100), 1 << 17).await);
    drop(client.venus.fsync(handle).await);
    client.venus.release(handle).await?;
    let node = client.find(name).await?.node;
    let mtime = Some(NewTime::At(UnixSeconds(rng.between(0, 1 << 31) as u32).into()));
    let size = rng.chance(500_000).then_some(10);
    client
        .venus
        .setattr(node, None, SetAttr { mode: Some(Mode(0o640)), mtime, size, ..SetAttr::default() })
        .await?;
    Ok(())
}

async fn make_and_remove(client: &Client, dir: &str, rng: &mut SimRng) -> Result<()> {
    let node = client.venus.walk(dir.as_bytes(), true).await?.node;
    drop(client.venus.mkdir(node, b"made", 0o755).await);
    drop(client.venus.mknod(node, b"new", 0o600).await);
    if rng.chance(500_000) {
        drop(client.venus.unlink(node, b"new").await);
        drop(client.venus.rmdir(node, b"made").await);
    }
    Ok(())
}

async fn rename(client: &Client, rng: &mut SimRng) -> Result<()> {
    let from = client.venus.walk(b"bad.cell", true).await?.node;
    let to = client.venus.walk(b"bad.cell/dir", true).await?.node;
    match rng.chance(500_000) {
        true => client.venus.rename(from, b"moved", to, b"moved").await,
        false => client.venus.rename(to, b"moved", from, b"moved").await,
    }
}

async fn lock(client: &Client, name: &str) -> Result<()> {
    let handle = client.open(name, OpenFlags::READ_WRITE).await?;
    drop(client.venus.lock(handle, 7, 1, LockRange::WHOLE, LockKind::Write, false).await);
    client.env.sleep(std::time::Duration::from_secs(200)).await;
    drop(client.venus.unlock(handle, 7, LockRange::WHOLE).await);
    client.venus.release(handle).await
}

async fn properties(client: &Client, name: &str, dir: &str) -> Result<()> {
    let file = client.venus.walk(name.as_bytes(), false).await?.node;
    let dir = client.venus.walk(dir.as_bytes(), true).await?.node;
    for property in ["afs.fid", "afs.acl", "afs.volstatus", "afs.whereis", "afs.access", "afs.past"] {
        drop(client.venus.property(file, property.as_bytes()).await);
        drop(client.venus.property(dir, property.as_bytes()).await);
    }
    drop(client.venus.property(dir, b"afs.lsmount.proj").await);
    drop(client.names("bad.cell/.snapshots").await);
    client.venus.check_servers().await;
    client.venus.set_property(file, b"afs.flush", b"volume").await?;
    client.venus.set_property(file, b"afs.flush", b"locations").await
}

async fn links(client: &Client, rng: &mut SimRng) -> Result<()> {
    let dir = client.venus.walk(b"bad.cell/dir", true).await?.node;
    let file = client.find("bad.cell/dir/one").await?.node;
    let name = format!("link{}", rng.between(0, 3));
    drop(client.venus.link(file, dir, name.as_bytes()).await);
    drop(client.venus.symlink(dir, b"text", b"two").await);
    drop(client.get("bad.cell/dir/text").await);
    client.venus.unlink(dir, if rng.chance(500_000) { name.as_bytes() } else { b"text" }).await
}

/// As many in a row as a lease is asked for.
async fn small_files(client: &Client, dir: &str, rng: &mut SimRng) -> Result<()> {
    for _ in 0..6 {
        client.put(&format!("{dir}/file{}", rng.between(0, 40)), b"small").await?;
    }
    Ok(())
}

/// Changes of one directory that go in one call.
async fn many_at_once(client: &Client, dir: &str, rng: &mut SimRng) -> Result<()> {
    let node = client.venus.walk(dir.as_bytes(), true).await?.node;
    let first = rng.between(0, 40);
    let names = (first..first + 10).map(|n| format!("many{n}").into_bytes());
    let make = async |name: Vec<u8>| client.venus.mknod(node, &name, 0o644).await.map(drop);
    join_all(names.map(make)).await.into_iter().collect()
}

/// What a program was told of a file that it has written and closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Everything is stored.
    Stored,
    /// All bytes were taken, and neither the close nor the release had them acknowledged.
    Kept,
    /// Something else. Data of a file of which the server says that it was removed goes with it; that is said by ESTALE.
    Other,
}

/// Writes a file that nothing else touches.
pub async fn write_kept(client: &Client, name: &str, data: &[u8]) -> Outcome {
    let Ok(handle) = client.open_new(&format!("bad.cell/{name}")).await else { return Outcome::Other };
    let written = client.write_all(handle, data).await.is_ok();
    let closed = client.venus.flush(handle, 0).await;
    let released = client.venus.release(handle).await;
    let is_kept = |done: &Result<()>| done.as_ref().is_err_and(|error| error.kind != ErrorKind::Stale);
    match written {
        true if is_kept(&closed) && is_kept(&released) => Outcome::Kept,
        true if closed.is_ok() && released.is_ok() => Outcome::Stored,
        _ => Outcome::Other,
    }
}
