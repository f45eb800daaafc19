//! Regression tests for classes of vulnerabilities that servers of this protocol have had.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::SocketAddr;

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, AclText};
use afs_wire::ids::{Fid, PartitionNumber, Rights};
use afs_wire::rpc::{ServiceId, encode_call};
use afs_wire::vl;
use afs_wire::vol;
use afs_wire::xdr::Encode;
use rig::{Cell, Claim, Client, FILES, LOCATIONS, VOLUMES};

const FILE: (SocketAddr, ServiceId) = (FILES, ServiceId::FILE);
const LOCATION: (SocketAddr, ServiceId) = (LOCATIONS, ServiceId::LOCATION);
const VOLUME: (SocketAddr, ServiceId) = (VOLUMES, ServiceId::VOLUME);

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn refusal(client: &Client, to: (SocketAddr, ServiceId), request: Vec<u8>) -> AbortCode {
    match client.raw(to.0, to.1, request) {
        Err(CallError::Abort(code)) => code,
        other => panic!("{other:?}"),
    }
}

/// A count in a request made the server allocate as much memory as it said.
#[test]
fn counts_in_requests_take_no_memory_before_they_are_checked() {
    let cell = Cell::new(111);
    let client = cell.client(1);
    let too_many = [51, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    for count in too_many {
        for (opcode, before) in [(155, &[][..]), (65536, &[]), (147, &[]), (147, &[1, 1, 1, 1]), (162, &[])] {
            let request = words(&[&[opcode], before, &[count]].concat());
            assert_eq!(refusal(&client, FILE, request), AbortCode::RXGEN_SS_UNMARSHAL, "{opcode} {count}");
        }
        let count = count.max(501);
        let register = words(&[&[532][..], &[0; 12], &[count]].concat());
        assert_eq!(refusal(&client, LOCATION, register), AbortCode::RXGEN_SS_UNMARSHAL, "{count}");
    }
    client.fetch_status(cell.root()).unwrap();
}

#[test]
fn names_that_are_too_long_are_no_names() {
    let cell = Cell::new(112);
    let client = cell.client(1);
    let named = |head: &[u32], length: u32| {
        let mut request = words(&[head, &[length]].concat());
        request.resize(request.len() + 8192, b'x');
        request
    };
    let root = [cell.root().volume.0, 1, 1];
    let calls: [(_, &[u32], u32); 6] = [
        (FILE, &[137], 257),
        (FILE, &[142], u32::MAX),
        (FILE, &[164], 1025),
        (LOCATION, &[527], 66),
        (VOLUME, &[100, 0], 33),
        (VOLUME, &[119], 4097),
    ];
    for (to, head, length) in calls {
        let fid = if to == FILE { &root[..] } else { &[] };
        for length in [length, 0x7fff_ffff, u32::MAX] {
            let code = refusal(&client, to, named(&[head, fid].concat(), length));
            assert_eq!(code, AbortCode::RXGEN_SS_UNMARSHAL, "{head:?} {length}");
        }
    }
}

/// A client chose how many counters the server wrote into a fixed array.
#[test]
fn no_client_chooses_how_many_counters_are_written() {
    let cell = Cell::new(113);
    for version in [0, 15, 17, 1 << 20, i32::MAX, i32::MIN, -1] {
        let code = cell.client(1).refusal(fs::GetStatistics64 { version });
        assert_eq!(code, Errno::EINVAL.to_uae(), "{version}");
    }
}

/// Uninitialised words of replies showed earlier content of the server's memory.
#[test]
fn replies_show_nothing_that_was_in_memory_before() {
    let cell = Cell::new(114);
    let (client, owner) = (cell.client(1), cell.owner());
    // Names, data and requests full of one byte have gone through the server.
    let fid = owner.create(cell.root(), &"Z".repeat(200)).unwrap().fid;
    owner.store(fid, 0, &[b'Z'; 9000]).unwrap();
    client.read(fid);
    for to in [FILE, LOCATION, VOLUME] {
        let _ = client.raw(to.0, to.1, vec![b'Z'; 8000]);
    }
    let plain = owner.create(cell.root(), "plain").unwrap().fid;
    let volume = cell.volumes.root_cell;
    let name = || vl::NameText::new(b"root.cell".as_slice()).unwrap();
    let (partition, flags) = (PartitionNumber(0), 1);
    let attributes = vl::Attributes::default;
    let calls = [
        (FILE, encode_call(&fs::FetchStatus { fid: plain })),
        (FILE, encode_call(&fs::InlineBulkStatus { fids: fs::Fids::first_of([plain, Fid::default()]) })),
        (FILE, encode_call(&fs::FetchAcl { fid: plain })),
        (FILE, encode_call(&fs::GetVolumeStatus { volume })),
        (FILE, encode_call(&fs::GetStatistics {})),
        (FILE, encode_call(&fs::GetXStats { client_version: 2, collection: 3 })),
        (FILE, encode_call(&fs::GetCapabilities {})),
        (LOCATION, encode_call(&vl::GetEntryByNameO { name: name() })),
        (LOCATION, encode_call(&vl::GetEntryByNameN { name: name() })),
        (LOCATION, encode_call(&vl::GetEntryByNameU { name: name() })),
        (LOCATION, encode_call(&vl::ListEntryN { previous: 0 })),
        (LOCATION, encode_call(&vl::ListEntry { previous: 999 })),
        (LOCATION, encode_call(&vl::ListAttributesN { attributes: attributes() })),
        (LOCATION, encode_call(&vl::GetAddrs { handle: 0, spare: 0 })),
        (LOCATION, encode_call(&vl::GetStats {})),
        (VOLUME, encode_call(&vol::ListVolumes { partition, flags })),
        (VOLUME, encode_call(&vol::ListVolumes { partition, flags: 0 })),
        (VOLUME, encode_call(&vol::XListVolumes { partition, flags })),
        (VOLUME, encode_call(&vol::XListVolumes { partition, flags: 0 })),
        (VOLUME, encode_call(&vol::PartitionInfo { name: vol::PartitionText::truncated(b"/vicepa") })),
        (VOLUME, encode_call(&vol::PartitionInfo64 { name: vol::PartitionText::truncated(b"/vicepa") })),
        (VOLUME, encode_call(&vol::Monitor {})),
    ];
    for (to, request) in calls {
        let reply = client.raw(to.0, to.1, request.clone()).unwrap();
        assert!(!reply.windows(3).any(|bytes| bytes == b"ZZZ"), "{:?}", &request[..4]);
    }
}

#[test]
fn words_that_mean_nothing_are_zero() {
    let cell = Cell::new(115);
    let client = cell.client(1);
    let reply = |to: (SocketAddr, ServiceId), request| client.raw(to.0, to.1, request).unwrap();
    let zeros = |reply: &[u8], from_end: usize, count: usize| {
        let start = reply.len() - 4 * from_end;
        reply[start..start + 4 * count].iter().all(|byte| *byte == 0)
    };
    let status = reply(FILE, encode_call(&fs::FetchStatus { fid: cell.root() }));
    assert!(zeros(&status, 5, 5), "five words after the volume's date");
    let statistics = reply(FILE, encode_call(&fs::GetStatistics {}));
    assert!(zeros(&statistics, 8, 8), "the spares at the end of ViceStatistics");
    let name = vl::NameText::new(b"root.cell".as_slice()).unwrap();
    let entry = reply(LOCATION, encode_call(&vl::GetEntryByNameN { name: name.clone() }));
    assert_eq!(entry.len(), 476);
    assert!(zeros(&entry, 8, 8), "eight spares");
    assert!(zeros(&entry, 119 - 9, 65 - 9), "what follows the name");
    assert!(zeros(&entry, 119 - 67, 12), "servers after the last");
    let entry = reply(LOCATION, encode_call(&vl::GetEntryByNameU { name }));
    assert!(zeros(&entry, 8, 8));
    let list = vol::ListOneVolume { partition: PartitionNumber(0), volume: cell.volumes.root_cell };
    let info = reply(VOLUME, encode_call(&list));
    assert!(zeros(&info, 1, 1), "the last spare");
}

/// Calls that change the cell were accepted from callers that had not authenticated, or not as an
/// administrator.
#[test]
fn only_who_has_proven_it_is_an_administrator() {
    let cell = Cell::new(116);
    let client = cell.client(1);
    let claims = [
        Claim::of("system:administrators"),
        Claim::of("-204"),
        Claim::of("afs"),
        Claim::of("(cell key)"),
        Claim::of("system:anyuser"),
        Claim::of_cell("dora", "else.where"),
        Claim::of_cell("admin", "test.cell.else.where"),
        Claim::of("dora ").with_word(rig::WORD),
        Claim::of("alice"),
    ];
    for caller in claims.iter().map(|claim| client.acting_as(claim)).chain([client.clone()]) {
        assert_eq!(caller.refusal(vl::GetNewVolumeId { count: 1 }), AbortCode::VL_PERM);
        let nuke = vol::NukeVolume { partition: PartitionNumber(0), volume: cell.volumes.root_cell };
        assert_eq!(caller.refusal(nuke), AbortCode::VOLSERBAD_ACCESS);
        let (ids, addresses) = Default::default();
        assert_eq!(caller.refusal(fs::FlushCps { ids, addresses, spare: 0 }), Errno::EPERM.to_uae());
    }
    client.acting_as(&Claim::of("dora")).ask(vl::GetNewVolumeId { count: 1 }).unwrap();
}

fn text(text: &[u8]) -> AclText {
    AclText::new(text).unwrap()
}

fn listed(client: &Client, fid: Fid) -> String {
    client.ask(fs::FetchAcl { fid }).unwrap().acl.to_text()
}

/// CVE-2018-7168: the older call to store an access list was sent by tools that had mixed up the halves of a
/// list.
#[test]
fn both_calls_that_store_a_list_store_the_same() {
    let cell = Cell::new(117);
    let (owner, client) = (cell.owner(), cell.client(1));
    let list = text(b"1\n2\nsystem:anyuser\t11\nalice\t2\nsystem:anyuser\t8\n\0");
    let mut results = Vec::new();
    for old in [true, false] {
        let dir = owner.make_dir(cell.root(), if old { "old" } else { "new" }).unwrap().fid;
        if old {
            owner.ask(fs::OldStoreAcl { fid: dir, acl: list.clone() }).unwrap();
        } else {
            owner.ask(fs::StoreAcl { fid: dir, acl: list.clone() }).unwrap();
        }
        let status = client.fetch_status(dir).unwrap().status;
        let alice = client.acting_as(&Claim::of("alice")).fetch_status(dir).unwrap().status;
        assert_eq!((status.caller_access, alice.caller_access), ("rw".parse().unwrap(), Rights::READ));
        results.push(listed(&owner, dir));
    }
    assert_eq!(results[0], results[1]);
    assert!(results[0].starts_with("1\n2\nsystem:anyuser\t11\n"), "{results:?}");
}

/// Invalid texts of access lists crashed servers, or made them store uninitialised memory.
#[test]
fn texts_that_are_no_access_lists_change_nothing() {
    let cell = Cell::new(118);
    let owner = cell.owner();
    let root = cell.root();
    let before = listed(&owner, root);
    let (long, spaces) = (format!("1\n0\n{}\t1\n\0", "x".repeat(900)), vec![b' '; 1024]);
    let texts: &[&[u8]] = &[
        b"",
        b"\0",
        b"\n\0",
        b"1",
        b"1\n0\nalice\t1\n",
        b"1\0\n0\nalice\t1\n\0",
        b"1 0 alice 1\0",
        b"1\n0\n\0",
        b"1\n0\nalice\0",
        b"1\n0\nalice\t\n\0",
        b"1\n0\n\t1\n\0",
        b"1\n0\nalice\t1 2\n\0",
        b"1\n0\nalice\tx\n\0",
        b"2\n0\nalice\t1\n\0",
        b"1\n1\nalice\t1\n\0",
        b"-1\n0\nalice\t1\n\0",
        b"0\n-1\nalice\t1\n\0",
        b"-1\n2\nalice\t1\nbob\t1\n\0",
        b"21\n0\n\0",
        b"2147483647\n2147483647\nalice\t1\n\0",
        b"4294967297\n0\nalice\t1\n\0",
        b"18446744073709551615\n1\nalice\t1\n\0",
        b"99999999999999999999999\n0\nalice\t1\n\0",
        b"1\n0\nalice\t99999999999\n\0",
        b"1\n0\nalice\t-99999999999\n\0",
        b"0x1\n0\nalice\t1\n\0",
        b"1e0\n0\nalice\t1\n\0",
        b"dfs:1\n0\nalice\t1\n\0",
        b"1\n0\n\xff\xfe\t1\n\0",
        long.as_bytes(),
        &spaces,
    ];
    for bad in texts {
        for old in [true, false] {
            let request = if old {
                encode_call(&fs::OldStoreAcl { fid: root, acl: text(bad) })
            } else {
                encode_call(&fs::StoreAcl { fid: root, acl: text(bad) })
            };
            let shown = String::from_utf8_lossy(bad);
            assert_eq!(refusal(&owner, FILE, request), Errno::EINVAL.to_uae(), "{shown:?}");
        }
    }
    assert_eq!(listed(&owner, root), before);
    // Lines beyond the counts grant nothing.
    owner.ask(fs::StoreAcl { fid: root, acl: text(b"0\n0\nalice\t127\n\0alice\t127\n") }).unwrap();
    assert_eq!(listed(&owner, root), "0\n0\n\0");
}

/// Clients have had such vulnerabilities in what they read; here, requests that end anywhere are refused
/// without any other effect.
#[test]
fn requests_that_end_in_the_middle_are_refused() {
    let cell = Cell::new(119);
    let client = cell.client(1);
    let whole = [
        (FILE, encode_call(&fs::StoreAcl { fid: cell.root(), acl: text(b"0\n0\n\0") })),
        (FILE, encode_call(&fs::CreateFile { dir: cell.root(), name: rig::name("x"), status: rig::mode(0) })),
        (LOCATION, encode_call(&vl::CreateEntryN { entry: vl::Entry::default() })),
        (VOLUME, encode_call(&vol::SetInfo { transaction: vol::TransactionId(1), info: Default::default() })),
    ];
    for (to, request) in whole {
        for end in (0..request.len()).step_by(if request.len() > 100 { 24 } else { 1 }) {
            let code = refusal(&client, to, request[..end].to_vec());
            assert_eq!(code, AbortCode::RXGEN_SS_UNMARSHAL, "{} of {}", end, request.len());
        }
    }
    assert_eq!(links(&client, cell.root()), 2, "nothing was made");
    let opcodes: Vec<u8> = 9999u32.to_bytes();
    assert_eq!(refusal(&client, FILE, opcodes), AbortCode::RXGEN_OPCODE);
}

/// Link count of the root directory: one more for each subdirectory.
fn links(client: &Client, root: Fid) -> u32 {
    client.fetch_status(root).unwrap().status.link_count
}
