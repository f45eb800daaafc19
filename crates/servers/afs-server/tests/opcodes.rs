//! Every opcode: served, refused with its own code, or unknown.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, capability, statistic64};
use afs_wire::ids::Fid;
use afs_wire::rpc::{Opcode, Request, ServiceId, encode_call, opcode_name};
use afs_wire::xdr::Encode;
use rig::{Cell, FILES, LOCATIONS, VOLUMES};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn code(answer: Result<Vec<u8>, CallError>) -> AbortCode {
    match answer {
        Err(CallError::Abort(code)) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn refused_and_unknown_calls_have_their_codes() {
    let cell = Cell::new(51);
    let client = cell.client(1);
    let call = |opcode: u32| code(client.raw(FILES, ServiceId::FILE, opcode.to_bytes()));
    for (opcode, expected) in [
        (148, AbortCode::VNOVOL),
        (154, AbortCode::VNOVOL),
        (151, AbortCode(122)),
        (152, AbortCode(130)),
        (161, Errno::EINVAL.to_uae()),
        (163, Errno::EINVAL.to_uae()),
        (220, Errno::EINVAL.to_uae()),
        (65541, AbortCode(1)),
    ] {
        assert_eq!(call(opcode), expected, "{opcode}");
    }
    for opcode in [0, 1, 129, 165, 64204, 65543, 65551, 65562, u32::MAX] {
        assert_eq!(call(opcode), AbortCode::RXGEN_OPCODE, "{opcode}");
    }
    assert_eq!(client.heard(), [], "none of these makes the caller a client");
}

#[test]
fn every_known_call_is_served_or_refused_on_purpose() {
    let cell = Cell::new(52);
    cell.open_data_path();
    let client = cell.client(1);
    for (opcode, name) in fs::OPCODES {
        // Without arguments a served call cannot be decoded; those without arguments just answer.
        match client.raw(FILES, ServiceId::FILE, opcode.to_bytes()) {
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => panic!("{name} is unknown"),
            Err(CallError::Abort(_)) | Ok(_) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(opcode_name(fs::OPCODES, Opcode(137)), Some("CreateFile"));
}

#[test]
fn arguments_that_cannot_be_read_are_refused() {
    let cell = Cell::new(53);
    let client = cell.client(1);
    let unreadable = AbortCode::RXGEN_SS_UNMARSHAL;
    let name = fs::Name::new(b"f".to_vec()).unwrap();
    let whole = encode_call(&fs::CreateFile { dir: cell.root(), name, status: fs::SetStatus::default() });
    for len in 4..whole.len() {
        assert_eq!(code(client.raw(FILES, ServiceId::FILE, whole[..len].to_vec())), unreadable, "{len}");
    }
    let mut long_name = encode_call(&fs::RemoveFile { dir: cell.root(), name: fs::Name::default() });
    let at = long_name.len() - 4;
    long_name[at..].copy_from_slice(&300u32.to_be_bytes());
    long_name.extend([b'x'; 300]);
    assert_eq!(code(client.raw(FILES, ServiceId::FILE, long_name)), unreadable);
    let mut many = fs::InlineBulkStatus::OPCODE.to_bytes();
    51u32.encode(&mut many);
    (0..51).for_each(|_| Fid::default().encode(&mut many));
    assert_eq!(code(client.raw(FILES, ServiceId::FILE, many)), unreadable);
    assert_eq!(code(client.raw(FILES, ServiceId::FILE, vec![])), unreadable);
    assert_eq!(code(client.raw(FILES, ServiceId::FILE, vec![0, 0, 0])), unreadable);
}

#[test]
fn unknown_operations_of_the_other_services_are_refused() {
    let cell = Cell::new(54);
    let client = cell.client(1);
    for opcode in [500u32, 525, 526, 531, 535, 64002, 64014, 65537] {
        assert_eq!(
            code(client.raw(LOCATIONS, ServiceId::LOCATION, opcode.to_bytes())),
            AbortCode::RXGEN_OPCODE
        );
    }
    for opcode in [99u32, 129, 65540, 65546, 65547, 0x414E_4400, 0x414E_4405] {
        assert_eq!(code(client.raw(VOLUMES, ServiceId::VOLUME, opcode.to_bytes())), AbortCode::RXGEN_OPCODE);
    }
}

#[test]
fn the_server_tells_its_time_and_what_it_can() {
    let cell = Cell::new(55);
    let client = cell.client(1);
    assert!(client.ask(fs::GetTime {}).unwrap().seconds > 1_767_000_000);
    let told = client.ask(fs::GetCapabilities {}).unwrap().capabilities.to_vec();
    assert_eq!(told, [7 | capability::FINE_TIMES], "one word: Linux's client fails a mount for a second one");
    assert!(!client.heard().is_empty(), "these two make the caller known");
}

#[test]
fn monitors_read_counters_without_becoming_clients() {
    let cell = Cell::new(56);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "f").unwrap().fid;
    client.store(fid, 0, b"0123456789").unwrap();
    client.read(fid);
    let monitor = cell.client(2);
    let told = monitor.ask(fs::GetStatistics {}).unwrap().statistics;
    assert_eq!((told.fetch_datas, told.fetched_bytes, told.store_datas, told.stored_bytes), (1, 10, 1, 10));
    assert_eq!((told.workstations, told.active_workstations), (1, 1));
    assert!(told.disks[0].blocks > 0 && told.disks[1].blocks == -1);
    assert_eq!(&told.disks[0].name.0[..8], b"/vicepa\0");
    assert!(
        told.current_connections >= 2 && told.rpc_packets_sent > 4 && told.rpc_packets_received > 4,
        "{told:?}"
    );
    assert_eq!(told.process_size, 0, "nobody has said how to read it");
    let wide = monitor.ask(fs::GetStatistics64 { version: 16 }).unwrap().counters;
    assert_eq!(wide[statistic64::STORED_BYTES], 10);
    assert_eq!(monitor.refusal(fs::GetStatistics64 { version: 15 }), Errno::EINVAL.to_uae());
    assert_eq!(monitor.ask(fs::XStatsVersion {}).unwrap().version, 2);
    let counters = |collection| fs::GetXStats { client_version: 2, collection };
    let callbacks = monitor.ask(counters(3)).unwrap();
    assert_eq!((callbacks.data.len(), callbacks.data[7]), (16, 1), "one promise is held");
    assert_eq!(monitor.ask(counters(0)).unwrap().data.len(), 0);
    assert_eq!(monitor.refusal(counters(9)), AbortCode(1));
    assert_eq!(monitor.heard(), []);
    assert_eq!(cell.files().clients().hosts().len(), 1);
}

#[test]
fn the_size_of_the_process_is_read_at_most_once_a_second() {
    let cell = Cell::new(59);
    let (monitor, reads) = (cell.client(1), Arc::new(AtomicU64::new(0)));
    let counted = reads.clone();
    cell.files().tell_process_size(move || (counted.fetch_add(1, Ordering::Relaxed) + 5) << 20);
    let size = || monitor.ask(fs::GetStatistics {}).unwrap().statistics.process_size;
    let wide =
        || monitor.ask(fs::GetStatistics64 { version: 16 }).unwrap().counters[statistic64::PROCESS_SIZE];
    assert_eq!((size(), wide(), size()), (5 << 10, 5 << 10, 5 << 10));
    cell.sim.run_for(Duration::from_secs(1));
    assert_eq!((wide(), size()), (6 << 10, 6 << 10));
    assert_eq!(reads.load(Ordering::Relaxed), 2);
}

#[test]
fn obsolete_locks_still_lock() {
    let cell = Cell::new(57);
    let (a, b) = (cell.client(1), cell.client(2));
    let (fid, sync) = (a.create(cell.root(), "f").unwrap().fid, fs::VolSync::default());
    a.ask(fs::OldSetLock { fid, kind: fs::LockKind::WRITE, sync }).unwrap();
    assert_eq!(b.refusal(fs::SetLock { fid, kind: fs::LockKind::READ }), Errno::EAGAIN.to_uae());
    a.ask(fs::OldExtendLock { fid, sync }).unwrap();
    a.ask(fs::OldReleaseLock { fid, sync }).unwrap();
    b.ask(fs::SetLock { fid, kind: fs::LockKind::READ }).unwrap();
}

#[test]
fn only_the_owner_flushes_memberships() {
    let cell = Cell::new(58);
    let empty = || fs::FlushCps { ids: Default::default(), addresses: Default::default(), spare: 0 };
    assert_eq!(cell.client(1).refusal(empty()), Errno::EPERM.to_uae());
    cell.owner().ask(empty()).unwrap();
}
