//! Permissions of every call of the file, location and volume services, for every kind of caller.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

mod file_calls;
use crate::rig;
mod rows;
mod scene;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::rpc::ServiceId;
use afs_wire::xdr::Encode;
use afs_wire::{fs, pt, vl, vol};

use file_calls::{FILE_CALLS, REFUSED_FILE_CALLS};
use rig::people::TEAM;
use rig::{Claim, Client, FILES, LOCATIONS, VOLUMES, name};
use rows::{Row, UNKNOWN_LOCATION_CALLS, UNKNOWN_VOLUME_CALLS, location_rows, volume_rows};
use scene::{EVERYBODY, Scene};

#[test]
fn every_call_of_the_file_service_by_everybody() {
    let mut scene = Scene::new(81);
    for (call, allowed, attempt) in FILE_CALLS {
        let may: String = EVERYBODY.chars().filter(|who| attempt(&mut scene, *who)).collect();
        assert_eq!(may, *allowed, "{call}");
    }
    for call in REFUSED_FILE_CALLS {
        let opcode = fs::OPCODES.iter().find(|row| row.1 == *call).unwrap().0;
        let codes: BTreeSet<_> =
            scene.callers.iter().map(|(_, client)| raw(client, FILES, 1, opcode)).collect();
        assert_eq!(codes.len(), 1, "{call}");
    }
    let named = FILE_CALLS.iter().map(|row| row.0).chain(REFUSED_FILE_CALLS.iter().copied());
    complete(fs::OPCODES, named);
}

/// Dora without `system:administrators` may what bob may, who has no entry; carol without the team as well.
#[test]
fn callers_who_have_suspended_a_group_may_what_others_without_it_may() {
    let narrowed = |scene: &mut Scene| {
        scene.suspend('d', &Claim::of("dora").without(&[ViceId::ADMINISTRATORS.0]));
        scene.suspend('c', &Claim::of("carol").without(&[TEAM.0]));
    };
    let mut scene = Scene::new(85);
    narrowed(&mut scene);
    for (call, allowed, attempt) in FILE_CALLS {
        let expected = "bdc".chars().filter(|_| allowed.contains('b')).collect::<String>();
        let may: String = "bdc".chars().filter(|who| attempt(&mut scene, *who)).collect();
        assert_eq!(may, expected, "{call}");
    }
    let services = [
        (LOCATIONS, ServiceId::LOCATION, AbortCode::VL_PERM, location_rows()),
        (VOLUMES, ServiceId::VOLUME, AbortCode::VOLSERBAD_ACCESS, volume_rows()),
    ];
    for (to, service, refusal, mut rows) in services {
        let mut scene = Scene::new(86);
        narrowed(&mut scene);
        for row in &mut rows {
            let as_bob = |who: &char| !"dc".contains(*who) || row.allowed.contains('b');
            row.allowed = row.allowed.chars().filter(as_bob).collect::<String>().leak();
        }
        check_rows(&scene, to, service, refusal, &rows);
    }
}

fn raw(client: &Client, to: SocketAddr, service: u16, opcode: u32) -> AbortCode {
    match client.raw(to, ServiceId(service), opcode.to_bytes()) {
        Err(CallError::Abort(code)) => code,
        other => panic!("{other:?}"),
    }
}

/// Checks that every call of a service has its row.
fn complete<'a>(opcodes: &[(u32, &str)], named: impl Iterator<Item = &'a str>) {
    let named: BTreeSet<&str> = named.collect();
    let all: BTreeSet<&str> = opcodes.iter().map(|row| row.1).collect();
    assert_eq!(named.symmetric_difference(&all).collect::<Vec<_>>(), [&""; 0], "calls without a row");
}

/// Checks which callers pass. The further result does not matter: most of these calls are invalid.
fn check_rows(scene: &Scene, to: SocketAddr, service: ServiceId, refusal: AbortCode, rows: &[Row]) {
    for row in rows {
        let passes = |client: &Client| match client.raw(to, service, row.request.clone()) {
            Ok(_) => true,
            Err(CallError::Abort(code)) => {
                assert_ne!(code, AbortCode::RXGEN_SS_UNMARSHAL, "{}", row.call);
                assert_ne!(code, AbortCode::RXGEN_OPCODE, "{}", row.call);
                code != refusal
            }
            Err(error) => panic!("{}: {error}", row.call),
        };
        let passing = scene.callers.iter().filter(|(_, client)| passes(client));
        assert_eq!(passing.map(|caller| caller.0).collect::<String>(), row.allowed, "{}", row.call);
    }
}

#[test]
fn every_call_of_the_location_service_by_everybody() {
    let (scene, rows) = (Scene::new(82), location_rows());
    check_rows(&scene, LOCATIONS, ServiceId::LOCATION, AbortCode::VL_PERM, &rows);
    unknown(&scene, LOCATIONS, ServiceId::LOCATION, vl::OPCODES, UNKNOWN_LOCATION_CALLS);
    complete(vl::OPCODES, rows.iter().map(|row| row.call).chain(UNKNOWN_LOCATION_CALLS.iter().copied()));
}

fn unknown(scene: &Scene, to: SocketAddr, service: ServiceId, opcodes: &[(u32, &str)], calls: &[&str]) {
    for (opcode, call) in opcodes.iter().filter(|row| calls.contains(&row.1)) {
        for (_, client) in &scene.callers {
            assert_eq!(raw(client, to, service.0, *opcode), AbortCode::RXGEN_OPCODE, "{call}");
        }
    }
}

#[test]
fn every_call_of_the_volume_service_by_everybody() {
    let (scene, rows) = (Scene::new(83), volume_rows());
    check_rows(&scene, VOLUMES, ServiceId::VOLUME, AbortCode::VOLSERBAD_ACCESS, &rows);
    unknown(&scene, VOLUMES, ServiceId::VOLUME, vol::OPCODES, UNKNOWN_VOLUME_CALLS);
    complete(vol::OPCODES, rows.iter().map(|row| row.call).chain(UNKNOWN_VOLUME_CALLS.iter().copied()));
}

/// The calls of the protection service have their table in that service's tests; here it is only checked that
/// none is added unnoticed.
#[test]
fn the_calls_of_the_protection_service_are_those_that_were_thought_of() {
    assert_eq!(pt::OPCODES.len(), PROTECTION_CALLS, "add the call to the protection service's own table");
}

const PROTECTION_CALLS: usize = 24;

#[test]
fn proof_that_is_not_believed_reaches_no_handler() {
    let scene = Scene::new(84);
    scene.cell.recorded();
    let calls = || scene.caller('L').ask(fs::GetStatistics {}).unwrap().statistics.total_calls;
    let before = calls();
    let liar = scene.caller('-').acting_as(&Claim::of_key().with_word("guess"));
    let refused = CallError::Abort(AbortCode(rig::BAD_PROOF));
    assert_eq!(liar.fetch_status(scene.dir).unwrap_err(), refused);
    assert_eq!(liar.ask(vl::GetNewVolumeId { count: 1 }).unwrap_err(), refused);
    assert_eq!(liar.ask(vol::Monitor {}).unwrap_err(), refused);
    assert_eq!(
        liar.ask(fs::CreateFile { dir: scene.dir, name: name("x"), status: rig::mode(0o644) }).unwrap_err(),
        refused
    );
    assert_eq!(calls(), before, "no call was counted");
    assert_eq!(scene.cell.recorded(), [""; 0]);
}
