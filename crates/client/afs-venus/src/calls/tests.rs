//! Tests of the calls alone: scripted servers, no file server, no cache manager.

use afs_rpc::Security;
use afs_wire::error::AbortCode;
use afs_wire::fs::{CallBack, Status, VolSync};
use afs_wire::ids::{CellName, VolumeKind};

use super::test_kit::*;
use super::*;
use crate::api::{Token, TokenOwner};
use crate::identity::TokenId;
use crate::key::Key;
use crate::location::Volume;

const PATIENT: CallContext = CallContext::waiting(None);
const AT_ONCE: Duration = Duration::from_millis(100);

#[test]
fn a_silent_address_is_skipped() {
    let kit = test_kit(1);
    let fake = kit.fake(1);
    let server = kit.server(&[[10, 0, 1, 99].into(), fake.address]);
    // It is the nearest, and would always be tried first.
    server.addresses()[0].known_round_trip(Duration::from_nanos(1));
    let volume = kit.volume_at(VolumeKind::ReadWrite, vec![server.clone()]);
    let (answer, took) = kit.call(PATIENT, &volume);
    assert!(answer.is_ok() && took >= kit.calls.limits.server_dead);
    let silent: Vec<bool> = server.addresses().iter().map(|address| address.is_unreachable()).collect();
    assert_eq!(silent.iter().filter(|is_unreachable| **is_unreachable).count(), 1);
    let (answer, took) = kit.call(PATIENT, &volume);
    assert!(answer.is_ok() && took < AT_ONCE, "{took:?}");
    assert_eq!(fake.calls(), 2);
}

#[test]
fn one_task_probes_a_silent_address_and_its_return_is_reported_once() {
    let kit = test_kit_with(2, Limits { server_wait: Limits::FOR_EVER, ..Limits::default() });
    let fake = kit.fake(1);
    let volume = kit.volume(VolumeKind::ReadWrite, &[&fake]);
    kit.call(PATIENT, &volume).0.unwrap();
    kit.sim.crash(fake.node);
    let asked: Vec<PendingCall> = (0..20).map(|_| kit.ask(PATIENT, &volume)).collect();
    kit.sim.run_for(Duration::from_secs(20));
    let probes = || kit.counters.values().calls["GetTime"];
    let before = probes();
    kit.sim.run_for(Duration::from_secs(10));
    // One each second, however many programs wait.
    assert!((7..=14).contains(&(probes() - before)), "{}", probes() - before);
    assert!(asked.iter().all(|asked| !asked.is_done()) && kit.returns.load(Ordering::SeqCst) == 0);
    kit.sim.restart(fake.node);
    kit.start(&fake);
    kit.sim.run_for(Duration::from_secs(10));
    assert!(asked.iter().all(|asked| asked.is_done() && asked.take().result.is_ok()));
    assert_eq!(kit.returns.load(Ordering::SeqCst), 1);
}

#[test]
fn retries_of_a_busy_volume_are_bounded() {
    let kit = test_kit(3);
    let fake = kit.fake(1);
    let volume = kit.volume(VolumeKind::ReadWrite, &[&fake]);
    fake.script(|nth| if nth < 4 { Err(AbortCode::VBUSY) } else { Ok(Duration::ZERO) });
    let (answer, took) = kit.call(PATIENT, &volume);
    assert!(answer.is_ok());
    // 100, 200 and 400 ms.
    assert_eq!((fake.calls(), took >= Duration::from_millis(700)), (4, true), "{took:?}");
    fake.script(|_| Err(AbortCode::VBUSY));
    let (answer, took) = kit.call(PATIENT, &volume);
    assert_eq!(answer.err().unwrap().kind, ErrorKind::VolumeBusy);
    assert!(took <= kit.calls.limits.operation_max, "{took:?}");
}

#[test]
fn a_call_moves_to_another_site_when_its_server_answers_no_probe() {
    let kit = test_kit(4);
    let fakes = [kit.fake(1), kit.fake(2)];
    let volume = kit.volume(VolumeKind::ReadOnly, &[&fakes[0], &fakes[1]]);
    kit.call(PATIENT, &volume).0.unwrap();
    let [near, other] = if fakes[0].calls() == 1 { [0, 1] } else { [1, 0] };
    // A slow but reachable server is waited for.
    fakes[near].script(|_| Ok(Duration::from_secs(10)));
    let (answer, took) = kit.call(PATIENT, &volume);
    assert!(answer.is_ok() && took >= Duration::from_secs(10));
    assert_eq!((fakes[near].calls(), fakes[other].calls()), (2, 0));
    kit.sim.crash(fakes[near].node);
    let (answer, took) = kit.call(PATIENT, &volume);
    assert!(answer.is_ok() && took < kit.calls.limits.server_dead, "{took:?}");
    assert_eq!((fakes[near].calls(), fakes[other].calls()), (2, 1));
}

#[test]
fn a_volume_off_line_at_one_site_is_called_at_another() {
    let kit = test_kit(5);
    let fakes = [kit.fake(1), kit.fake(2)];
    let volume = kit.volume(VolumeKind::ReadOnly, &[&fakes[0], &fakes[1]]);
    kit.call(PATIENT, &volume).0.unwrap();
    let [near, other] = if fakes[0].calls() == 1 { [0, 1] } else { [1, 0] };
    fakes[near].script(|_| Err(AbortCode::VOFFLINE));
    assert!(kit.call(PATIENT, &volume).0.is_ok());
    assert_eq!((fakes[near].calls(), fakes[other].calls()), (2, 1));
}

#[test]
fn a_moved_volume_is_called_at_its_new_site_and_its_promises_end() {
    let kit = test_kit(6);
    let fakes = [kit.fake(1), kit.fake(2)];
    let volume = kit.volume(VolumeKind::ReadWrite, &[&fakes[0]]);
    let reply = kit.call(PATIENT, &volume).0.unwrap();
    assert!(is_relied_on(&kit, &volume, &reply));
    fakes[0].script(|_| Err(AbortCode::VMOVED));
    kit.locate(&[&fakes[1]]);
    assert!(kit.call(PATIENT, &volume).0.is_ok());
    assert_eq!((fakes[0].calls(), fakes[1].calls()), (2, 1));
    assert!(!is_relied_on(&kit, &volume, &reply));
}

#[test]
fn a_process_that_is_killed_waits_no_longer() {
    let kit = test_kit_with(7, Limits { server_wait: Limits::FOR_EVER, ..Limits::default() });
    let fake = kit.fake(1);
    let volume = kit.volume(VolumeKind::ReadWrite, &[&fake]);
    kit.calls.set_kill_check(|process| process == 42);
    kit.call(PATIENT, &volume).0.unwrap();
    kit.sim.crash(fake.node);
    let (answer, _) = kit.call(CallContext { process: 42, ..PATIENT }, &volume);
    assert_eq!(answer.err().unwrap().kind, ErrorKind::Interrupted);
    let waiting = kit.ask(CallContext { process: 41, ..PATIENT }, &volume);
    kit.sim.run_for(Duration::from_secs(5));
    assert!(!waiting.is_done());
    let (answer, took) = kit.call(CallContext { process: 42, ..PATIENT }, &volume);
    assert_eq!((answer.err().unwrap().kind, took < AT_ONCE), (ErrorKind::Interrupted, true), "{took:?}");
    let (answer, took) = kit.call(CallContext::ANONYMOUS, &volume);
    assert_eq!(
        (answer.err().unwrap().kind, took < AT_ONCE),
        (ErrorKind::ServerUnreachable, true),
        "{took:?}"
    );
    kit.calls.close();
    kit.sim.run_for(AT_ONCE);
    assert_eq!(waiting.take().result.err().unwrap().kind, ErrorKind::ServerUnreachable);
}

#[test]
fn the_serial_of_breaks_is_noted_before_the_call_begins() {
    let kit = test_kit(8);
    let fake = kit.fake(1);
    let volume = kit.volume(VolumeKind::ReadWrite, &[&fake]);
    let before = kit.promises.serial();
    let promises = kit.promises.clone();
    fake.script(move |nth| {
        if nth == 1 {
            promises.object(Key::new(CELL, fid()));
            promises.broken(fid());
        }
        Ok(Duration::ZERO)
    });
    let superseded = kit.call(PATIENT, &volume).0.unwrap();
    assert_eq!((superseded.serial, kit.promises.serial()), (before, before + 1));
    assert!(!is_relied_on(&kit, &volume, &superseded));
    let reply = kit.call(PATIENT, &volume).0.unwrap();
    assert!(is_relied_on(&kit, &volume, &reply));
}

/// True if a promise that came with a reply is valid.
fn is_relied_on<T>(kit: &TestKit, volume: &Volume, reply: &CallReply<T>) -> bool {
    let vnode = kit.promises.object(Key::new(CELL, fid()));
    let (status, callback) = (Status::default(), CallBack::shared(1000));
    kit.promises.record_reply(volume, &vnode, &status, &callback, &VolSync::default(), &reply.origin());
    vnode.fresh_status(volume, kit.promises.now()).is_some()
}

#[test]
fn a_call_without_retry_is_not_repeated_after_silence() {
    let kit = test_kit(9);
    let fakes = [kit.fake(1), kit.fake(2)];
    let volume = kit.volume(VolumeKind::ReadOnly, &[&fakes[0], &fakes[1]]);
    kit.call(PATIENT, &volume).0.unwrap();
    let [near, other] = if fakes[0].calls() == 1 { [0, 1] } else { [1, 0] };
    kit.sim.crash(fakes[near].node);
    let (answer, _) = kit.call(CallContext { wait: WaitPolicy::NoRetry, ..PATIENT }, &volume);
    assert_eq!(answer.err().unwrap().kind, ErrorKind::ServerUnreachable);
    assert_eq!(fakes[other].calls(), 0);
}

/// A server and its volume, and calls of a user with a token.
fn with_a_token(kit: &TestKit) -> (Fake, Arc<Volume>, CallContext) {
    let fake = kit.fake(1);
    let volume = kit.volume(VolumeKind::ReadWrite, &[&fake]);
    let alice = TokenOwner::Uid(5);
    let cell = CellName::new("home.cell").unwrap();
    let label = "alice".into();
    let token = Token { cell, security: Security::null(), expires: None, label, is_narrowed: false };
    kit.identity.set_token(alice, CELL, token).unwrap();
    let context = CallContext { user: Some(alice), ..PATIENT };
    assert_ne!(kit.call(context, &volume).0.unwrap().token, TokenId::NONE);
    (fake, volume, context)
}

#[test]
fn a_call_with_an_expired_token_is_repeated_without_one() {
    let kit = test_kit(10);
    let (fake, volume, context) = with_a_token(&kit);
    fake.script(|nth| if nth == 2 { Err(AbortCode::RXKADEXPIRED) } else { Ok(Duration::ZERO) });
    assert_eq!(kit.call(context, &volume).0.unwrap().token, TokenId::NONE);
    // The server's clock may be wrong: its word is for itself, and for some seconds.
    assert_ne!(kit.identity.credentials(context.user, CELL).id, TokenId::NONE, "for other servers");
    assert!(!kit.identity.has_expired(context.user, CELL));
    assert_eq!(kit.call(context, &volume).0.unwrap().token, TokenId::NONE);
    kit.sim.run_for(Duration::from_secs(11));
    assert_ne!(kit.call(context, &volume).0.unwrap().token, TokenId::NONE);
}

#[test]
fn a_proof_that_is_refused_once_is_repeated_and_twice_the_call_is_made_without_the_token() {
    for code in [AbortCode::RXGKBADCHALLENGE, AbortCode::RXKADSEALEDINCON, AbortCode::AFSCONF_NOTFOUND] {
        let kit = test_kit(11);
        let (fake, volume, context) = with_a_token(&kit);
        // A server that was restarted between its challenge and the response.
        fake.script(move |nth| if nth == 2 { Err(code) } else { Ok(Duration::ZERO) });
        assert_ne!(kit.call(context, &volume).0.unwrap().token, TokenId::NONE);
        // One that does not have the key.
        fake.script(move |nth| if (4..=5).contains(&nth) { Err(code) } else { Ok(Duration::ZERO) });
        assert_eq!(kit.call(context, &volume).0.unwrap().token, TokenId::NONE);
        kit.sim.run_for(Duration::from_secs(11));
        assert_ne!(kit.call(context, &volume).0.unwrap().token, TokenId::NONE);
        // A server that refuses everything has its word.
        fake.script(move |_| Err(code));
        assert_eq!(kit.call(context, &volume).0.err().unwrap().code, Some(code));
    }
}
