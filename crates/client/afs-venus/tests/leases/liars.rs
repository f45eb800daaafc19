//! Servers that lend, refuse and recall what they like.

use std::sync::{Arc, Mutex};

use afs_venus::NodeId;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::xdr::BoundedVec;

use super::*;
use crate::common::fakes::{Fakes, Image, RW};

fn fakes(seed: u64) -> Fakes {
    let mut fakes = Fakes::new(seed, 1, 1);
    fakes.set_limits(|limits| limits.leases = true);
    fakes.servers[0].host(RW, &Arc::new(Mutex::new(Image::new(1).with("old", b"old"))), true);
    fakes.locate(&[(0, afs_wire::vl::SiteFlags::RW_VOLUME)]);
    fakes
}

/// Fids of all kinds: the directory, its file, another volume's, and free ones, each twice.
fn all_kinds(dir: Fid) -> Vec<Fid> {
    let free = (0..40).map(|n| Fid { vnode: VnodeId(2 * n + 5000), unique: Uniquifier(n), ..dir });
    let other = Fid { volume: VolumeId(9), ..dir };
    let file_of_other = Fid { vnode: VnodeId(4), ..other };
    let old = Fid { vnode: VnodeId(2), unique: Uniquifier(2), ..dir };
    let odd = Fid { vnode: VnodeId(0), unique: Uniquifier(0), ..dir };
    let all: Vec<Fid> = [dir, other, file_of_other, old, odd].into_iter().chain(free).collect();
    [all.clone(), all].concat()
}

fn makes_sixty_files(fakes: &Fakes) {
    let a = fakes.client(1);
    let client = a.clone();
    fakes.on(&a, async move {
        assert_eq!(client.get("old").await.unwrap(), b"old");
        for n in 0..60 {
            client.put(&format!("file{n}"), format!("data {n}").as_bytes()).await.unwrap();
            client.env.sleep(Duration::from_millis(100)).await;
        }
        client.env.sleep(Duration::from_secs(5)).await;
        assert_eq!(client.get("old").await.unwrap(), b"old");
        for n in 0..60 {
            assert_eq!(client.get(&format!("file{n}")).await.unwrap(), format!("data {n}").as_bytes());
        }
        assert!(client.venus.counters().leases_taken > 0, "nothing was tried");
    });
    let b = fakes.client(2);
    let other = b.clone();
    fakes.on(&b, async move {
        for n in 0..60 {
            assert_eq!(other.get(&format!("file{n}")).await.unwrap(), format!("data {n}").as_bytes());
        }
    });
}

#[test]
fn a_server_that_refuses_every_list_costs_calls_and_no_data() {
    let fakes = fakes(1);
    fakes.servers[0].lend(all_kinds, |_| Err(Errno::EINVAL.to_uae()));
    makes_sixty_files(&fakes);
    assert!(fakes.servers[0].calls("TakeLease") <= 3, "it is asked again and again");
}

#[test]
fn what_is_lent_later_is_checked_as_what_was_lent_at_first() {
    let mut fakes = Fakes::new(5, 1, 1);
    fakes.set_limits(|limits| limits.leases = true);
    let image = Arc::new(Mutex::new(Image::new(1).with("old", b"old")));
    fakes.servers[0].host(RW, &image, true);
    fakes.locate(&[(0, afs_wire::vl::SiteFlags::RW_VOLUME)]);
    let old = image.lock().unwrap().find(RW, b"old").unwrap();
    // Five good ones; then those again with the directory, a file that is there, another volume's, and five more, each twice.
    let free = |n: u32| Fid { volume: RW, vnode: VnodeId(2 * n + 5000), unique: Uniquifier(n) };
    let lent = Mutex::new(0);
    let lend = move |dir: Fid| {
        let mut lent = lent.lock().unwrap();
        let before = (0..*lent).map(free).chain([dir, old, Fid { volume: VolumeId(9), ..free(500) }]);
        let more = (*lent..*lent + 5).map(free);
        let all: Vec<Fid> = before.chain(more).skip(if *lent == 0 { 3 } else { 0 }).collect();
        *lent += 5;
        [all.clone(), all].concat()
    };
    fakes.servers[0].lend(lend, move |list| Ok(makes_files(&image, list)));
    makes_sixty_files(&fakes);
    assert!(fakes.servers[0].calls("LendMore") > 5, "{} calls", fakes.servers[0].calls("LendMore"));
}

/// Makes what a list of creations with data says, with the numbers that it says.
fn makes_files(image: &Mutex<Image>, list: &fs::ChangeList) -> fs::ChangeListReply {
    let mut image = image.lock().unwrap();
    let mut done = Vec::new();
    for change in list.changes.iter() {
        let fs::Change::CreateFile(small) = &change.change else { continue };
        let (fid, data) = (change.object, small.data.as_bytes());
        image.create_as(small.create.name.as_bytes(), fid);
        image.store(fid.vnode, 0, data, data.len() as u64).unwrap();
        let [status, dir_status] =
            [fid, list.changes[0].change.fids()[0]].map(|fid| image.status(fid).unwrap());
        let (callback, sync) = (fs::CallBack::shared(3600), fs::VolSync { creation: image.creation });
        done.push(fs::ChangeReply::CreateFile(fs::CreateReply { fid, status, dir_status, callback, sync }));
    }
    fs::ChangeListReply { done: BoundedVec::first_of(done), code: AbortCode::OK }
}

#[test]
fn a_server_that_lends_nothing_more_is_not_asked_again_and_again() {
    let fakes = fakes(6);
    fakes.servers[0].lend(|dir| vec![dir], |_| Err(Errno::EINVAL.to_uae()));
    makes_sixty_files(&fakes);
    assert!(fakes.servers[0].calls("LendMore") <= 3, "it is asked again and again");
}

#[test]
fn a_server_that_lends_no_new_directories_is_asked_for_one_of_them() {
    let refuses = |table: afs_rpc::Table<afs_server::FileServer>| {
        table.call(
            |_, _, _: fs::TakeLease| async move { Err::<fs::TakeLeaseReply, _>(Errno::EAGAIN.to_uae()) },
        )
    };
    let cell = Cell::with_calls(7, true, Arc::new(refuses));
    cell.set_limits(|limits| limits.leases = true);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        for n in 0..20 {
            client.mkdir(&format!("dir{n}")).await.unwrap();
            client.put(&format!("dir{n}/file"), b"data").await.unwrap();
        }
        // One for the first new directory, and one for the top directory after some changes.
        assert_eq!(client.calls("TakeLease"), 2);
    });
}

#[test]
fn replies_that_fit_no_change_are_not_believed() {
    let fakes = fakes(2);
    fakes.servers[0].lend(all_kinds, |list| {
        let (status, dir_status) = (fs::Status::default(), fs::Status::default());
        let sync = fs::VolSync::default();
        let of_other = Fid { volume: VolumeId(9), ..list.changes[0].change.fids()[0] };
        let reply = fs::CreateReply { fid: of_other, status, dir_status, callback: fs::CallBack::NONE, sync };
        let done = std::iter::repeat_n(fs::ChangeReply::CreateFile(reply), 64);
        Ok(fs::ChangeListReply { done: BoundedVec::first_of(done), code: AbortCode::OK })
    });
    makes_sixty_files(&fakes);
}

#[test]
fn a_server_that_recalls_what_it_likes_is_answered() {
    let fakes = fakes(3);
    fakes.servers[0].lend(all_kinds, |_| Err(Errno::ESTALE.to_uae()));
    let a = fakes.client(1);
    let (client, server) = (a.clone(), fakes.servers[0].clone());
    fakes.on(&a, async move {
        let recalls = async {
            for n in 0..300 {
                let dir = Fid::root(if n % 3 == 0 { VolumeId(9) } else { RW });
                server.recall(dir, fs::LeaseId(n % 5 + 4)).await;
                server.recall(dir, fs::LeaseId(n % 5 + 4)).await;
            }
        };
        let work = async {
            for n in 0..60 {
                client.venus.mknod(NodeId::ROOT, format!("file{n}").as_bytes(), 0o644).await.unwrap();
            }
        };
        afs_rpc::future::join(work, recalls).await;
        client.env.sleep(Duration::from_secs(5)).await;
        assert_eq!(client.names("").await.unwrap().len(), 63);
    });
}

#[test]
fn a_server_without_leases_is_asked_once() {
    let fakes = fakes(4);
    let a = fakes.client(1);
    let client = a.clone();
    fakes.on(&a, async move {
        for n in 0..60 {
            client.put(&format!("file{n}"), b"x").await.unwrap();
        }
        assert_eq!(
            (client.calls("TakeLease"), client.calls("ChangeList")),
            (0, 1),
            "it knows none of our calls"
        );
        assert_eq!(client.calls("CreateFile"), 60);
    });
}
