//! The part alone: servers made by hand, no file server, no cache manager.

use afs_rpc::Security;
use afs_wire::error::AbortCode;
use afs_wire::fs::{CallBack, Status, VolSync};
use afs_wire::ids::{CellName, VolumeKind};

use super::rig::*;
use super::*;
use crate::api::{Token, TokenOwner};
use crate::identity::TokenId;
use crate::key::Key;
use crate::location::Volume;

const PATIENT: Asker = Asker { who: None, manner: Manner::Patient, process: 0 };
const AT_ONCE: Duration = Duration::from_millis(100);

#[test]
fn an_address_that_is_silent_is_passed_by() {
    let rig = rig(1);
    let fake = rig.fake(1);
    let server = rig.server(&[[10, 0, 1, 99].into(), fake.address]);
    // It is the nearest, and would always be asked first.
    server.addresses()[0].known_round_trip(Duration::from_nanos(1));
    let volume = rig.volume_at(VolumeKind::ReadWrite, vec![server.clone()]);
    let (answer, took) = rig.call(PATIENT, &volume);
    assert!(answer.is_ok() && took >= rig.asking.limits.server_dead);
    let silent: Vec<bool> = server.addresses().iter().map(|address| address.is_silent()).collect();
    assert_eq!(silent.iter().filter(|is_silent| **is_silent).count(), 1);
    let (answer, took) = rig.call(PATIENT, &volume);
    assert!(answer.is_ok() && took < AT_ONCE, "{took:?}");
    assert_eq!(fake.calls(), 2);
}

#[test]
fn a_silent_address_is_asked_by_one_until_it_is_back_and_that_is_told() {
    let rig = rig(2);
    let fake = rig.fake(1);
    let volume = rig.volume(VolumeKind::ReadWrite, &[&fake]);
    rig.call(PATIENT, &volume).0.unwrap();
    rig.sim.crash(fake.node);
    let asked: Vec<Asked> = (0..20).map(|_| rig.ask(PATIENT, &volume)).collect();
    rig.sim.run_for(Duration::from_secs(20));
    let probes = || rig.counters.values().calls["GetCapabilities"];
    let before = probes();
    rig.sim.run_for(Duration::from_secs(10));
    // Each of six seconds, and pauses of five.
    assert!(probes() - before <= 2, "{}", probes() - before);
    assert!(asked.iter().all(|asked| !asked.is_done()) && rig.returns.load(Ordering::SeqCst) == 0);
    rig.sim.restart(fake.node);
    rig.start(&fake);
    rig.sim.run_for(Duration::from_secs(10));
    assert!(asked.iter().all(|asked| asked.is_done() && asked.take().result.is_ok()));
    assert_eq!(rig.returns.load(Ordering::SeqCst), 1);
}

#[test]
fn a_busy_volume_is_paused_for_and_not_for_ever() {
    let rig = rig(3);
    let fake = rig.fake(1);
    let volume = rig.volume(VolumeKind::ReadWrite, &[&fake]);
    fake.says(|nth| if nth < 4 { Err(AbortCode::VBUSY) } else { Ok(Duration::ZERO) });
    let (answer, took) = rig.call(PATIENT, &volume);
    assert!(answer.is_ok());
    // 100, 200 and 400 ms.
    assert_eq!((fake.calls(), took >= Duration::from_millis(700)), (4, true), "{took:?}");
    fake.says(|_| Err(AbortCode::VBUSY));
    let (answer, took) = rig.call(PATIENT, &volume);
    assert_eq!(answer.err().unwrap().kind, ErrorKind::VolumeBusy);
    assert!(took <= rig.asking.limits.operation_max, "{took:?}");
}

#[test]
fn a_call_is_given_up_for_another_site_when_its_server_gives_no_sign_of_life() {
    let rig = rig(4);
    let fakes = [rig.fake(1), rig.fake(2)];
    let volume = rig.volume(VolumeKind::ReadOnly, &[&fakes[0], &fakes[1]]);
    rig.call(PATIENT, &volume).0.unwrap();
    let [near, other] = if fakes[0].calls() == 1 { [0, 1] } else { [1, 0] };
    // One that is slow but there is waited for.
    fakes[near].says(|_| Ok(Duration::from_secs(10)));
    let (answer, took) = rig.call(PATIENT, &volume);
    assert!(answer.is_ok() && took >= Duration::from_secs(10));
    assert_eq!((fakes[near].calls(), fakes[other].calls()), (2, 0));
    rig.sim.crash(fakes[near].node);
    let (answer, took) = rig.call(PATIENT, &volume);
    assert!(answer.is_ok() && took < rig.asking.limits.server_dead, "{took:?}");
    assert_eq!((fakes[near].calls(), fakes[other].calls()), (2, 1));
}

#[test]
fn a_site_where_the_volume_is_off_line_is_left_for_another() {
    let rig = rig(5);
    let fakes = [rig.fake(1), rig.fake(2)];
    let volume = rig.volume(VolumeKind::ReadOnly, &[&fakes[0], &fakes[1]]);
    rig.call(PATIENT, &volume).0.unwrap();
    let [near, other] = if fakes[0].calls() == 1 { [0, 1] } else { [1, 0] };
    fakes[near].says(|_| Err(AbortCode::VOFFLINE));
    assert!(rig.call(PATIENT, &volume).0.is_ok());
    assert_eq!((fakes[near].calls(), fakes[other].calls()), (2, 1));
}

#[test]
fn a_volume_that_moved_is_called_where_it_is_and_its_promises_end() {
    let rig = rig(6);
    let fakes = [rig.fake(1), rig.fake(2)];
    let volume = rig.volume(VolumeKind::ReadWrite, &[&fakes[0]]);
    let answered = rig.call(PATIENT, &volume).0.unwrap();
    assert!(is_relied_on(&rig, &volume, &answered));
    fakes[0].says(|_| Err(AbortCode::VMOVED));
    rig.locate(&[&fakes[1]]);
    assert!(rig.call(PATIENT, &volume).0.is_ok());
    assert_eq!((fakes[0].calls(), fakes[1].calls()), (2, 1));
    assert!(!is_relied_on(&rig, &volume, &answered));
}

#[test]
fn a_process_that_is_killed_waits_no_longer() {
    let rig = rig(7);
    let fake = rig.fake(1);
    let volume = rig.volume(VolumeKind::ReadWrite, &[&fake]);
    rig.asking.heed_kills(|process| process == 42);
    rig.call(PATIENT, &volume).0.unwrap();
    rig.sim.crash(fake.node);
    let (answer, _) = rig.call(Asker { process: 42, ..PATIENT }, &volume);
    assert_eq!(answer.err().unwrap().kind, ErrorKind::Interrupted);
    let waiting = rig.ask(Asker { process: 41, ..PATIENT }, &volume);
    rig.sim.run_for(Duration::from_secs(5));
    assert!(!waiting.is_done());
    let (answer, took) = rig.call(Asker { process: 42, ..PATIENT }, &volume);
    assert_eq!((answer.err().unwrap().kind, took < AT_ONCE), (ErrorKind::Interrupted, true), "{took:?}");
    let (answer, took) = rig.call(Asker::NOBODY, &volume);
    assert_eq!((answer.err().unwrap().kind, took < AT_ONCE), (ErrorKind::ServerAway, true), "{took:?}");
    rig.asking.close();
    rig.sim.run_for(AT_ONCE);
    assert_eq!(waiting.take().result.err().unwrap().kind, ErrorKind::ServerAway);
}

#[test]
fn the_serial_of_breaks_is_noted_before_the_call_begins() {
    let rig = rig(8);
    let fake = rig.fake(1);
    let volume = rig.volume(VolumeKind::ReadWrite, &[&fake]);
    let before = rig.promises.serial();
    let promises = rig.promises.clone();
    fake.says(move |nth| {
        if nth == 1 {
            promises.object(Key::new(CELL, fid()));
            promises.broken(fid());
        }
        Ok(Duration::ZERO)
    });
    let overtaken = rig.call(PATIENT, &volume).0.unwrap();
    assert_eq!((overtaken.serial, rig.promises.serial()), (before, before + 1));
    assert!(!is_relied_on(&rig, &volume, &overtaken));
    let answered = rig.call(PATIENT, &volume).0.unwrap();
    assert!(is_relied_on(&rig, &volume, &answered));
}

/// Whether a promise that came with an answer counts.
fn is_relied_on<T>(rig: &Rig, volume: &Volume, answered: &Answered<T>) -> bool {
    let vnode = rig.promises.object(Key::new(CELL, fid()));
    let (status, callback) = (Status::default(), CallBack::shared(1000));
    rig.promises.take(volume, &vnode, &status, &callback, &VolSync::default(), &answered.origin());
    vnode.fresh_status(volume, rig.promises.now()).is_some()
}

#[test]
fn a_call_to_be_made_once_is_not_made_again_after_a_silence() {
    let rig = rig(9);
    let fakes = [rig.fake(1), rig.fake(2)];
    let volume = rig.volume(VolumeKind::ReadOnly, &[&fakes[0], &fakes[1]]);
    rig.call(PATIENT, &volume).0.unwrap();
    let [near, other] = if fakes[0].calls() == 1 { [0, 1] } else { [1, 0] };
    rig.sim.crash(fakes[near].node);
    let (answer, _) = rig.call(Asker { manner: Manner::Once, ..PATIENT }, &volume);
    assert_eq!(answer.err().unwrap().kind, ErrorKind::ServerAway);
    assert_eq!(fakes[other].calls(), 0);
}

#[test]
fn whose_token_has_expired_is_served_as_nobody_in_particular() {
    let rig = rig(10);
    let fake = rig.fake(1);
    let volume = rig.volume(VolumeKind::ReadWrite, &[&fake]);
    let alice = TokenOwner::Uid(5);
    let cell = CellName::new("home.cell").unwrap();
    let token = Token { cell, security: Security::null(), expires: None, label: "alice".into() };
    rig.identity.give(alice, CELL, token).unwrap();
    let asker = Asker { who: Some(alice), ..PATIENT };
    assert_ne!(rig.call(asker, &volume).0.unwrap().token, TokenId::NONE);
    fake.says(|nth| if nth == 2 { Err(AbortCode::RXKADEXPIRED) } else { Ok(Duration::ZERO) });
    assert_eq!(rig.call(asker, &volume).0.unwrap().token, TokenId::NONE);
    assert!(rig.identity.has_expired(asker.who, CELL));
}
