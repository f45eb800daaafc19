//! Servers that lie: their statements are believed at most about their own volumes, and a lie causes at most an error.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::future::join_all;
use afs_rpc::{EnvExt, Table};
use afs_sim::SimRng;
use afs_venus::{ErrorKind, NodeId, OpenFlags, RootKind};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, FileKind, Status};
use afs_wire::ids::{DataVersion, Fid, Mode, PartitionNumber, UnixSeconds, Uuid, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{self, EntryFlags, NameChars, SiteFlags, UuidEntry, UuidSite};
use afs_wire::xdr::BoundedVec;
use common::fakes::{Fakes, Image, RW};
use common::{Client, pattern};

const MASTER: SiteFlags = SiteFlags::RW_VOLUME;
/// Longer than any operation takes with a server that replies at once.
const LIMIT: Duration = Duration::from_secs(100);
/// The permanent name of a file server.
const SERVER: Uuid = Uuid([7; 16]);
/// Another volume, on an honest server.
const HONEST: VolumeId = VolumeId(2000);

/// A cell whose first server has the root volume with these contents.
fn cell(seed: u64, image: Image) -> Fakes {
    let cell = Fakes::new(seed, 2, 1);
    cell.servers[0].host(RW, &Arc::new(Mutex::new(image)), true);
    cell.locate(&[(0, MASTER)]);
    cell
}

fn image() -> Image {
    Image::new(100)
        .with("file", &pattern(200_000, 1))
        .with("empty", b"")
        .with_link("link", b"file", Mode(0o755))
        .with_link("loop", b"#proj.", Mode(0o644))
}

#[test]
fn a_server_whose_data_is_older_than_it_said_ends_the_read_with_an_error() {
    let cell = cell(1, image());
    let newer = |fid: Fid, status: &mut Status| {
        if !fid.is_directory() {
            status.data_version = DataVersion(90);
        }
    };
    cell.servers[0].falsify("FetchStatus", newer);
    cell.servers[0].falsify("InlineBulkStatus", newer);
    let client = cell.client(0);
    let one = client.clone();
    let read = cell.on(&client, async move { one.env.timeout(LIMIT, one.get("file")).await });
    assert_eq!(read.unwrap().unwrap_err().kind, ErrorKind::Stale);
}

#[test]
fn a_reply_to_a_list_that_fits_no_change_is_an_error_for_its_program_alone() {
    let cell = cell(8, image());
    // Three replies, of which one is of the right kind, and that all have been made.
    cell.servers[0].answer_lists(|list| {
        let (status, dir_status) = (Status::default(), Status::default());
        let (callback, sync) = (fs::CallBack::NONE, fs::VolSync { creation: UnixSeconds(100) });
        let create =
            |fid| fs::ChangeReply::CreateFile(fs::CreateReply { fid, status, dir_status, callback, sync });
        let remove = || fs::ChangeReply::RemoveFile(fs::RemoveReply { dir_status, sync });
        let made = create(Fid { volume: HONEST, ..list.changes[0].change.fids()[0] });
        // One by itself is replied to as it should be.
        let done = if list.changes.len() == 1 { vec![made] } else { vec![remove(), made, remove()] };
        fs::ChangeListReply { done: BoundedVec::first_of(done), code: AbortCode::OK }
    });
    let client = cell.client(0);
    let one = client.clone();
    let failed = cell.on(&client, async move {
        let name = |n: u32| format!("new{n}").into_bytes();
        let work = (0..10).map(async |n| one.venus.mknod(NodeId::ROOT, &name(n), 0o644).await);
        let done = one.env.timeout(LIMIT, join_all(work)).await.unwrap();
        done.into_iter().map(|done| done.err().map(|error| error.kind)).collect::<Vec<_>>()
    });
    let lied_to = Some(ErrorKind::Protocol);
    assert_eq!(failed[..4], [None, lied_to, None, lied_to]);
    assert!(failed[4..].iter().all(Option::is_none), "{failed:?}");
    assert_eq!((cell.servers[0].calls("ChangeList"), cell.servers[0].calls("CreateFile")), (8, 0));
}

#[test]
fn no_promise_is_relied_on_for_longer_than_any_server_gives() {
    let cell = cell(7, image());
    cell.servers[0].promise_for(u32::MAX);
    let client = cell.client(0);
    let size = |client: &Client| {
        let one = client.clone();
        cell.on(client, async move { one.find("empty").await.unwrap().attr.size })
    };
    assert_eq!(size(&client), 0);
    // The server loses its promises, and gets another release: no break is sent.
    cell.servers[0].forget_callers();
    cell.servers[0].host(RW, &Arc::new(Mutex::new(image().released(&[("empty", vec![1; 3])]))), true);
    assert_eq!(size(&client), 0, "it was promised");
    cell.sim.run_for(Duration::from_secs(4 * 3600));
    assert_eq!(size(&client), 3);
}

/// Two cells; the location service of the second claims the file server of the first one, at another address.
#[test]
fn a_cell_does_not_say_where_the_servers_of_another_cell_are() {
    let cells = Fakes::new(6, 2, 2);
    for (n, unique) in [(0, 1), (1, 2)] {
        let image = Image::new(100).with("first", &[n; 9]).with("second", &[n; 9]);
        cells.servers[usize::from(n)].host(RW, &Arc::new(Mutex::new(image)), true);
        cells.sim.crash(cells.locations[usize::from(n)]);
        cells.sim.restart(cells.locations[usize::from(n)]);
        let table = location_service(SERVER, unique, cells.servers[usize::from(n)].address);
        cells.start_location_with(n.into(), table);
    }
    let two = [("good.cell", vec![0]), ("bad.cell", vec![1])];
    let client = cells.client_with(0, RootKind::Cells, &two);
    let one = client.clone();
    cells.on(&client, async move {
        assert_eq!(one.get("good.cell/first").await.unwrap(), [0; 9]);
        assert_eq!(one.get("bad.cell/first").await.unwrap(), [1; 9]);
        assert_eq!(one.get("good.cell/second").await.unwrap(), [0; 9]);
    });
}

/// A location service that has an entry for `root.cell`, on a server with a UUID.
fn location_service(server: Uuid, unique: u32, address: Ipv4Addr) -> Table<()> {
    location_service_that_says(server, unique, move || (server, address))
}

/// The same, which says of which server the addresses are that it tells, and what they are.
fn location_service_that_says(
    server: Uuid,
    unique: u32,
    says: impl Fn() -> (Uuid, Ipv4Addr) + Send + Sync + 'static,
) -> Table<()> {
    let site = UuidSite {
        server,
        unique,
        partition: PartitionNumber(0),
        flags: SiteFlags::RW_VOLUME | SiteFlags::UUID,
    };
    let entry = UuidEntry {
        name: NameChars::new(b"root.cell").unwrap(),
        sites: BoundedVec::first_of([site]),
        ids: [RW, VolumeId(0), VolumeId(0)],
        flags: EntryFlags::RW_EXISTS,
        ..UuidEntry::default()
    };
    Table::new(ServiceId::LOCATION, Arc::new(()))
        .call(move |_, _, _: vl::GetEntryByNameU| {
            let entry = entry.clone();
            async move { Ok::<_, AbortCode>(vl::UuidEntryReply { entry }) }
        })
        .call(move |_, _, _: vl::GetAddrsU| {
            let (uuid, address) = says();
            let addresses = BoundedVec::first_of([address]);
            async move { Ok::<_, AbortCode>(vl::GetAddrsUReply { uuid, unique, count: 1, addresses }) }
        })
}

/// What a location server says.
type Says = Box<dyn Fn(&Fakes) -> Table<()>>;

/// A cell whose location servers say these things of where its file server is.
fn located(seed: u64, says: Vec<Says>) -> Fakes {
    let cell = Fakes::new(seed, 2, says.len() as u8);
    cell.servers[0].host(RW, &Arc::new(Mutex::new(image())), true);
    for (n, says) in says.iter().enumerate() {
        cell.sim.crash(cell.locations[n]);
        cell.sim.restart(cell.locations[n]);
        cell.start_location_with(n, says(&cell));
    }
    cell
}

#[test]
fn addresses_at_which_nothing_replies_are_asked_for_again() {
    const NOWHERE: Ipv4Addr = Ipv4Addr::new(10, 0, 9, 9);
    let is_honest = Arc::new(AtomicBool::new(false));
    let told = is_honest.clone();
    let says = move |cell: &Fakes| {
        let (told, address) = (told.clone(), cell.servers[0].address);
        let says = move || (SERVER, if told.load(Ordering::SeqCst) { address } else { NOWHERE });
        location_service_that_says(SERVER, 1, says)
    };
    let cell = located(11, vec![Box::new(says)]);
    let client = cell.client_with(0, RootKind::Cells, &[("test.cell", vec![0])]);
    let one = client.clone();
    cell.on(&client, async move {
        let failed = one.get("test.cell/empty").await.unwrap_err();
        assert_eq!(failed.kind, ErrorKind::ServerUnreachable);
        is_honest.store(true, Ordering::SeqCst);
        one.env.sleep(Duration::from_secs(60)).await;
        assert_eq!(one.get("test.cell/empty").await.unwrap(), b"");
    });
}

/// One of two location servers tells the addresses of the server that it was asked about last, as it seems.
#[test]
fn addresses_of_another_server_are_not_taken_for_those_of_this_one() {
    for seed in 20..26 {
        let right = |cell: &Fakes| location_service(SERVER, 1, cell.servers[0].address);
        let wrong = |cell: &Fakes| {
            let other = cell.servers[1].address;
            location_service_that_says(SERVER, 1, move || (Uuid([8; 16]), other))
        };
        let cell = located(seed, vec![Box::new(right), Box::new(wrong)]);
        let client = cell.client_of(0, "root.cell");
        let one = client.clone();
        assert_eq!(cell.on(&client, async move { one.get("empty").await.unwrap() }), b"");
        assert_eq!(cell.servers[1].calls("FetchStatus"), 0, "seed {seed}");
    }
}

#[test]
fn names_that_lead_elsewhere_make_a_directory_unreadable() {
    for (from, to) in [
        (&b"file"[..], &b"fi/e"[..]),
        (b"link\0", b"..\0k\0"),
        (b"empty", b"link\0"),
        (b"loop\0", b"\0oop\0"),
    ] {
        let spoilt = image().with_root(|bytes| {
            let at = bytes.windows(from.len()).position(|place| place == from).unwrap();
            bytes[at..at + to.len()].copy_from_slice(to);
        });
        let cell = cell(2, spoilt);
        let client = cell.client(0);
        let one = client.clone();
        cell.on(&client, async move {
            assert_eq!(one.names("").await.unwrap_err().kind, ErrorKind::Protocol, "{to:?}");
            assert_eq!(one.find("empty").await.unwrap_err().kind, ErrorKind::Protocol, "{to:?}");
        });
    }
}

#[test]
fn links_whose_text_no_path_can_be_are_an_error() {
    let long = [b'x'; 5000];
    for text in [&b"file\0../secret"[..], b"", &long] {
        let cell = cell(3, Image::new(1).with_link("link", text, Mode(0o755)));
        let client = cell.client(0);
        let one = client.clone();
        let kind = cell.on(&client, async move {
            let node = one.find("link").await.unwrap().node;
            one.venus.readlink(node).await.unwrap_err().kind
        });
        assert_eq!(kind, ErrorKind::Protocol, "{} bytes", text.len());
    }
}

#[test]
fn a_mount_point_of_its_own_volume_leads_nowhere_new() {
    let cell = cell(4, image());
    let client = cell.client(0);
    let one = client.clone();
    cell.on(&client, async move {
        let root = one.venus.walk(b"", true).await.unwrap().node;
        let deep = "loop/".repeat(300);
        assert_eq!(one.venus.walk(deep.as_bytes(), true).await.unwrap().node, root);
        assert_eq!(one.venus.walk(b"loop/loop/../../../..", true).await.unwrap().node, root);
    });
}

/// Two of its entries are the directory itself: who asks for the statuses of neighbours asks for that of the directory too.
#[test]
fn a_directory_that_names_itself_is_walked_and_listed() {
    let itself = image().with_root(|bytes| {
        for name in [&b"file\0"[..], b"link\0"] {
            let at = bytes.windows(name.len()).position(|place| place == name).unwrap();
            // Vnode and uniquifier are before the name.
            bytes[at - 8..at].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
        }
    });
    let cell = cell(10, itself);
    let client = cell.client(0);
    let one = client.clone();
    cell.on(&client, async move {
        for name in ["empty", "loop", "file", "link", "empty"] {
            one.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
            drop(one.env.timeout(LIMIT, one.find(name)).await.unwrap());
        }
        let deep = "file/link/".repeat(300);
        drop(one.venus.walk(deep.as_bytes(), true).await);
        drop(one.venus.readdirplus(NodeId::ROOT, 0, 100).await);
        assert_eq!(one.get("empty").await.unwrap(), b"");
    });
}

#[test]
fn a_reply_that_never_ends_delays_no_other_request() {
    let image = image();
    let endless = image.find(RW, b"file").unwrap();
    let cell = cell(5, image);
    cell.servers[1].host(HONEST, &Arc::new(Mutex::new(Image::new(7).with("here", b"at once"))), true);
    cell.locate_alone("honest", HONEST, 1);
    cell.servers[0].never_finish(endless);
    let client = cell.client(0);
    let (one, other) = (client.clone(), client.clone());
    cell.on(&client, async move {
        let env = one.env.clone();
        let waiting = one.clone();
        env.spawn(Box::pin(async move { drop(waiting.get("file").await) }));
        env.sleep(Duration::from_secs(2)).await;
        let others = async {
            assert_eq!(other.get("empty").await.unwrap(), b"");
            assert_eq!(other.names("").await.unwrap().len(), 6);
        };
        assert!(env.timeout(Duration::from_secs(1), others).await.is_ok(), "another file of the same server");
    });
    let honest = cell.client_of(1, "honest");
    let one = honest.clone();
    cell.on(&honest, async move { assert_eq!(one.get("here").await.unwrap(), b"at once") });
}

/// Worlds by the thousand run in the memory of one.
#[test]
fn a_world_is_gone_with_its_test() {
    let image = Arc::new(Mutex::new(image()));
    let cell = Fakes::new(9, 2, 1);
    cell.servers[0].host(RW, &image, true);
    cell.locate(&[(0, MASTER)]);
    let client = cell.client(0);
    let one = client.clone();
    cell.on(&client, async move { drop(one.get("file").await) });
    let (venus, served) = (Arc::downgrade(&client.venus), Arc::downgrade(&image));
    drop((client, image, cell));
    assert_eq!((venus.strong_count(), served.strong_count()), (0, 0));
}

/// Whatever the statuses are, every operation ends, with an error or not, and nothing panics.
#[test]
fn every_operation_ends_whatever_statuses_a_server_returns() {
    afs_sim::crash::seeds(60).for_each(operations_end);
}

fn operations_end(seed: u64) {
    let mut rng = SimRng::new(seed);
    let cell = cell(seed, image());
    for call in ["FetchStatus", "InlineBulkStatus", "FetchData", "StoreData", "CreateFile"] {
        // A constant falsification, or one that differs each time.
        let (seed, steady) = (rng.between(0, u64::MAX >> 1), rng.chance(500_000));
        let told = Arc::new(Mutex::new(SimRng::new(seed)));
        cell.servers[0].falsify(call, move |fid, status| match steady {
            true => falsify(&mut SimRng::new(seed ^ u64::from(fid.vnode.0)), status),
            false => falsify(&mut told.lock().unwrap(), status),
        });
    }
    let client = cell.client(0);
    let one = client.clone();
    cell.on(&client, async move {
        for turn in 0..30 {
            let kind = rng.between(0, 10);
            let done = one.env.timeout(LIMIT, operation(&one, kind, &mut rng)).await;
            assert!(done.is_ok(), "seed {seed}: turn {turn} with operation {kind} does not end");
        }
    });
    let stopping = client.clone();
    let _ = cell.on(&client, async move { stopping.venus.shut_down().await });
}

/// A file of two gibibytes, then of one byte, in the same version: the client sent two gibibytes of zeros.
#[test]
fn a_file_that_the_server_says_is_shorter_now_is_not_stored_at_its_former_length() {
    operations_end(637);
}

async fn operation(client: &Client, kind: u64, rng: &mut SimRng) {
    let names = ["file", "empty", "link", "loop", "new", "loop/file", "file/x"];
    let name = *rng.pick(&names).unwrap();
    let venus = &client.venus;
    match kind {
        0 => drop(read_at_offsets(client, name, &[0, 1 << 17, 200_000]).await),
        1 => drop(client.put(name, b"something").await),
        2 => drop(client.names("").await),
        3 => {
            let Ok(entry) = client.find(name).await else { return };
            drop(venus.getattr(entry.node).await);
            drop(venus.readlink(entry.node).await);
        }
        4 => {
            let root = venus.walk(b"", true).await.map(|entry| entry.node);
            let Ok(root) = root else { return };
            drop(venus.readdirplus(root, 0, 100).await);
        }
        5 => drop(venus.walk(b"loop/link", true).await),
        6 => {
            let Ok(handle) = client.open(name, OpenFlags::READ_WRITE).await else { return };
            let at = [0, 100, 1 << 18][rng.between(0, 2) as usize];
            drop(venus.write(handle, at, bytes::Bytes::from_static(b"there")).await);
            drop(venus.read(handle, at.saturating_sub(100), 1 << 17).await);
            drop(venus.fsync(handle).await);
            drop(venus.release(handle).await);
        }
        7 => drop(read_at_offsets(client, name, &[0, 1 << 30, 1 << 43, 1 << 62]).await),
        8 => {
            let Ok(entry) = client.find(name).await else { return };
            drop(venus.property(entry.node, b"afs.fid").await);
            drop(venus.statfs(entry.node).await);
        }
        9 => {
            let Ok((dir, last)) = client.split(name).await else { return };
            drop(venus.mknod(dir, last, 0o600).await);
        }
        _ => client.env.sleep(Duration::from_secs(rng.between(1, 90))).await,
    }
}

/// Reads at some offsets only: a file that claims to be long is not read to its end.
async fn read_at_offsets(client: &Client, name: &str, places: &[u64]) -> afs_venus::Result<()> {
    let handle = client.open(name, OpenFlags::READ).await?;
    for at in places {
        drop(client.venus.read(handle, *at, 1 << 17).await);
    }
    client.venus.release(handle).await
}

/// Falsifies a status at random, with extreme values.
fn falsify(rng: &mut SimRng, status: &mut Status) {
    const LENGTHS: [u64; 9] = [0, 1, 4095, 200_001, 1 << 31, 1 << 44, i64::MAX as u64, 1 << 63, u64::MAX];
    const KINDS: [FileKind; 4] = [FileKind::File, FileKind::Directory, FileKind::Symlink, FileKind::Invalid];
    if rng.chance(300_000) {
        status.length = *rng.pick(&LENGTHS).unwrap();
    }
    if rng.chance(200_000) {
        status.kind = *rng.pick(&KINDS).unwrap();
    }
    if rng.chance(300_000) {
        status.data_version = DataVersion([0, 1, 2, 90, u64::MAX][rng.between(0, 4) as usize]);
    }
    if rng.chance(200_000) {
        status.server_mod_time = UnixSeconds([0, 1, u32::MAX][rng.between(0, 2) as usize]).into();
        status.client_mod_time = status.server_mod_time;
    }
    if rng.chance(100_000) {
        let Fid { vnode, unique, .. } = Fid::root(RW);
        (status.parent, status.parent_unique) = (vnode, unique);
    }
    if rng.chance(100_000) {
        status.error = AbortCode([38, -1, 110, 103][rng.between(0, 3) as usize]);
    }
    if rng.chance(100_000) {
        status.mode = Mode(rng.between(0, 0o7777) as u32);
    }
    if rng.chance(100_000) {
        status.link_count = [0, u32::MAX][rng.between(0, 1) as usize];
    }
}
