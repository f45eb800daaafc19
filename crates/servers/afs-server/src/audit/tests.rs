use std::net::IpAddr;
use std::time::Duration;

use afs_rpc::{Class, ConnKey, Credential, Identity, Level, Person, Principal, Protection, Terms, UnixTime};
use afs_sim::{NodeId, Sim};
use afs_wire::error::Errno;
use afs_wire::ids::{Fid, VolumeId};
use parking_lot::Mutex;

use super::*;

/// A sink that keeps lines, unless it is broken.
#[derive(Default)]
struct Lines {
    kept: Mutex<Vec<String>>,
    broken: Mutex<bool>,
}

impl AuditSink for Lines {
    fn write(&self, records: &[AuditRecord]) -> io::Result<()> {
        if *self.broken.lock() {
            return Err(io::Error::other("no room"));
        }
        self.kept.lock().extend(records.iter().map(AuditRecord::to_json));
        Ok(())
    }
}

struct Rig {
    sim: Sim,
    node: NodeId,
    sink: Arc<Lines>,
    audit: Audit,
}

impl Rig {
    fn new(options: AuditOptions) -> Self {
        let sim = Sim::new(1);
        let node = sim.node("server", IpAddr::from([10, 0, 0, 1]));
        let sink = Arc::new(Lines::default());
        let audit = Audit::new(sim.env(node), sink.clone(), options);
        Rig { sim, node, sink, audit }
    }

    fn record(&self, kind: CallKind, code: AbortCode) {
        self.audit.record(&alice(), "StoreACL", kind, Fid::root(VolumeId(7)).into(), code);
    }

    fn flushed(&self) -> Vec<String> {
        let audit = self.audit.clone();
        let patience = Duration::from_secs(60);
        self.sim.block_on(self.node, patience, async move { audit.flush().await }).unwrap();
        std::mem::take(&mut self.sink.kept.lock())
    }
}

fn alice() -> Caller {
    let principal = Principal::Named {
        name: "alice".into(),
        cell: Some("else\n\"where\u{1f600}".into()),
        terms: Terms::default(),
    };
    named(principal)
}

fn named(principal: Principal) -> Caller {
    let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
    let credential = Credential::new(principal, protection);
    Caller { identity: Identity::Proven(Arc::new(credential)), ..anybody([10, 0, 0, 7]) }
}

fn anybody(address: impl Into<IpAddr>) -> Caller {
    Caller {
        peer: (address.into(), 7001).into(),
        connection: ConnKey { epoch: 1, cid: 4 },
        security_index: 4,
        identity: Identity::Anonymous,
    }
}

#[test]
fn a_record_is_a_line_of_ascii_whatever_names_are_like() {
    let rig = Rig::new(AuditOptions::default());
    rig.record(CallKind::Change, AbortCode::OK);
    let lines = rig.flushed();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let tail = "\"who\":\"alice@else\\u000a\\\"where\\ud83d\\ude00\",\"by\":\"rxgk/crypt\",\
                \"peer\":\"10.0.0.7:7001\",\"call\":\"StoreACL\",\"object\":\"7.1.1\",\"code\":0}";
    assert!(line.starts_with("{\"time\":") && line.ends_with(tail), "{line}");
}

/// What a person is like besides is decided where it is taken from a client: `Person::claimed`.
#[test]
fn a_record_has_the_person_behind_the_cells_key_quoted_and_bounded() {
    let rig = Rig::new(AuditOptions::default());
    let said = |text: &[u8]| {
        let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
        let person = Person::claimed(text);
        let principal = Principal::CellKey;
        let credential = Credential { principal, protection, expires: None, callback: None, person };
        let caller = Caller { identity: Identity::Proven(Arc::new(credential)), ..anybody([10, 0, 0, 7]) };
        let object = AuditObject::Nothing;
        rig.audit.record(&caller, "CreateVolume", CallKind::Change, object, AbortCode::OK);
        let lines = rig.flushed();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        line.split_once("\"who\":\"(cell key)\"").unwrap().1.split_once(",\"by\":").unwrap().0.to_owned()
    };
    assert_eq!(said(b"1000 alice"), ",\"person\":\"1000 alice\"");
    assert_eq!(said(b"1\n\"},\x1b[2J\\"), ",\"person\":\"1?\\\"},?[2J\\\\\"");
    assert_eq!(said(&[b'"'; 4096]), format!(",\"person\":\"{}\"", "\\\"".repeat(64)));
    assert_eq!(said(b""), "");
}

#[test]
fn changes_and_refusals_are_recorded_and_everything_if_wanted() {
    let outcomes = [
        (CallKind::Read, AbortCode::OK, false),
        (CallKind::Read, AbortCode::VNOVOL, false),
        (CallKind::Read, Errno::ENOENT.to_uae(), false),
        (CallKind::Read, Errno::EACCES.to_uae(), true),
        (CallKind::Read, AbortCode(13), true),
        (CallKind::Read, AbortCode::VL_PERM, true),
        (CallKind::Read, AbortCode::VOLSERBAD_ACCESS, true),
        (CallKind::Read, AbortCode::PRPERM, true),
        (CallKind::Read, AbortCode::VICETOKENDEAD, true),
        (CallKind::Probe, AbortCode::OK, false),
        (CallKind::Change, AbortCode::OK, true),
        (CallKind::Change, AbortCode::VNOVOL, true),
    ];
    let (usual, all) = (Rig::new(AuditOptions::default()), AuditOptions { everything: true, queue: 100 });
    let all = Rig::new(all);
    for (kind, code, recorded) in outcomes {
        usual.record(kind, code);
        all.record(kind, code);
        assert_eq!(usual.flushed().len(), usize::from(recorded), "{kind:?} {code:?}");
        assert_eq!(all.flushed().len(), 1);
    }
}

#[test]
fn records_that_find_no_room_are_counted_and_the_loss_is_recorded_in_its_place() {
    let rig = Rig::new(AuditOptions { everything: false, queue: 3 });
    for _ in 0..10 {
        rig.record(CallKind::Change, AbortCode::OK);
    }
    let lines = rig.flushed();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[3], "{\"lost\":7}");
    rig.record(CallKind::Change, AbortCode::OK);
    assert_eq!(rig.flushed().len(), 1);
}

#[test]
fn a_sink_that_fails_loses_records_and_no_call_waits() {
    let rig = Rig::new(AuditOptions::default());
    *rig.sink.broken.lock() = true;
    rig.record(CallKind::Change, AbortCode::OK);
    rig.record(CallKind::Change, AbortCode::OK);
    assert_eq!(rig.flushed().len(), 0);
    *rig.sink.broken.lock() = false;
    rig.sim.run_for(Duration::from_secs(5));
    rig.record(CallKind::Change, AbortCode::OK);
    let lines = rig.flushed();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], "{\"lost\":2}");
}

#[test]
fn no_record_is_made_without_a_receiver() {
    let audit = Audit::off();
    audit.record(&alice(), "StoreACL", CallKind::Change, AuditObject::Nothing, AbortCode::OK);
    assert!(!audit.is_on());
}

/// Refusals of a call by the callers, one after the other, as often as there are callers in the list.
fn refuse(rig: &Rig, callers: impl IntoIterator<Item = Caller>) {
    for caller in callers {
        let object = Fid::root(VolumeId(7)).into();
        rig.audit.record(&caller, "FetchData", CallKind::Read, object, Errno::EACCES.to_uae());
    }
}

/// The address of a host of an attacker who has many.
fn address(n: u32) -> IpAddr {
    IpAddr::from((0x0a01_0000 + n).to_be_bytes())
}

/// The sum of the refusals in these lines: records, and what is counted.
fn sum(lines: &[String]) -> u64 {
    let more = |line: &String| match line.split_once("\"more\":") {
        Some((_, count)) => count.trim_end_matches('}').parse().unwrap(),
        None => 1,
    };
    lines.iter().map(more).sum()
}

#[test]
fn refusals_of_a_caller_and_call_are_counted_after_the_first_and_told_when_their_window_ends() {
    let rig = Rig::new(AuditOptions::default());
    refuse(&rig, (0..500).map(|_| anybody([10, 0, 0, 9])));
    rig.sim.run_for(Duration::from_secs(599));
    assert_eq!(std::mem::take(&mut *rig.sink.kept.lock()).len(), 64);
    rig.sim.run_for(Duration::from_secs(2));
    let told = std::mem::take(&mut *rig.sink.kept.lock());
    let [told] = &told[..] else { panic!("{told:?}") };
    let tail = "\"who\":\"(anybody)\",\"peer\":\"10.0.0.9\",\"call\":\"FetchData\",\"more\":436}";
    assert!(told.starts_with("{\"time\":") && told.ends_with(tail), "{told}");
    refuse(&rig, (0..65).map(|_| anybody([10, 0, 0, 9])));
    assert_eq!(rig.flushed().len(), 65, "a new window, and what it counted so far");
    assert_eq!(rig.flushed(), [""; 0]);
}

#[test]
fn refusals_from_any_number_of_addresses_have_a_bound_for_all_and_add_up() {
    let rig = Rig::new(AuditOptions::default());
    let mut lines = Vec::new();
    for _ in 0..100 {
        refuse(&rig, (0..700).map(|n| anybody(address(n))));
        lines.extend(rig.flushed());
    }
    let records = lines.iter().filter(|line| line.contains("\"code\":")).count();
    assert_eq!(records, 128 * 64, "of the callers that have a place");
    assert_eq!(sum(&lines), 70_000);
    assert!(lines.iter().any(|line| line.contains("\"peer\":\"(others)\"")));
}

#[test]
fn the_addresses_of_one_network_are_one_caller() {
    let rig = Rig::new(AuditOptions::default());
    let host = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 7, 7, 7, n]);
    refuse(&rig, (0..1000).map(|n| anybody(host(n))));
    let mapped = |n: u16| IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0x0a00, n]);
    refuse(&rig, (0..10).map(|n| anybody(mapped(n))));
    let lines = rig.flushed();
    assert_eq!((lines.len(), sum(&lines)), (64 + 10 + 1, 1010));
    assert!(lines.iter().any(|line| line.contains("\"peer\":\"2001:db8:0:1::/64\"")), "{lines:?}");
}

#[test]
fn refusals_of_users_are_recorded_while_others_flood() {
    let rig = Rig::new(AuditOptions::default());
    let bob = || named(Principal::local("bob"));
    let mut lines = Vec::new();
    for round in 0..64 {
        refuse(&rig, (0..500).map(|n| anybody(address(round * 500 + n))));
        refuse(&rig, [alice(), bob()]);
        lines.extend(rig.flushed());
    }
    refuse(&rig, (0..30).map(|_| bob()));
    lines.extend(rig.flushed());
    let of = |who: &str| lines.iter().filter(|line| line.contains(who)).cloned().collect::<Vec<_>>();
    assert_eq!((of("\"bob\"").len(), sum(&of("\"bob\""))), (65, 94));
    assert_eq!((of("alice@").len(), sum(&of("alice@"))), (64, 64));
}

/// A flood in one step, before the writer has its turn.
#[test]
fn a_flood_takes_no_room_of_changes_in_the_queue_and_is_counted_there() {
    let rig = Rig::new(AuditOptions { everything: true, queue: 100 });
    refuse(&rig, (0..60).map(|n| anybody(address(n))));
    (0..20).for_each(|_| rig.record(CallKind::Read, AbortCode::OK));
    (0..50).for_each(|_| rig.record(CallKind::Change, AbortCode::OK));
    let lines = rig.flushed();
    let of = |what: &str| lines.iter().filter(|line| line.contains(what)).cloned().collect::<Vec<_>>();
    assert_eq!(of("StoreACL").len(), 50, "all changes, and no read");
    assert_eq!(of("lost"), ["{\"lost\":20}"]);
    assert_eq!((of("FetchData").len(), sum(&of("FetchData"))), (60, 60), "of 10 the count");
}

#[test]
fn each_record_has_its_part() {
    let part = |caller: Caller, kind, code| {
        let identity = caller.identity;
        let (time, call, object) = (UnixTime::default(), "call", AuditObject::Nothing);
        AuditedCall { time, identity, peer: caller.peer, call, kind, object, code }.part()
    };
    let (anybody, refused) = (|| anybody([10, 0, 0, 9]), Errno::EACCES.to_uae());
    assert_eq!(part(anybody(), CallKind::Change, AbortCode::OK), AuditPart::Changes);
    assert_eq!(part(alice(), CallKind::Change, AbortCode::OK), AuditPart::Changes);
    for code in [refused, AbortCode::VNOVOL] {
        assert_eq!(part(anybody(), CallKind::Change, code), AuditPart::AnonymousRefusals);
        assert_eq!(part(alice(), CallKind::Change, code), AuditPart::Refusals);
    }
    assert_eq!(part(anybody(), CallKind::Read, refused), AuditPart::AnonymousRefusals);
    assert_eq!(part(alice(), CallKind::Probe, refused), AuditPart::Refusals);
    assert_eq!(part(alice(), CallKind::Read, AbortCode::VNOVOL), AuditPart::Reads);
}
