use std::net::IpAddr;
use std::time::Duration;

use afs_rpc::{Class, ConnKey, Credential, Identity, Level, Principal, Protection, Suspended};
use afs_sim::{NodeId, Sim};
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
        suspended: Suspended::default(),
    };
    let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
    let credential = Credential { principal, protection, expires: None, callback: None };
    Caller {
        peer: ([10, 0, 0, 7], 7001).into(),
        connection: ConnKey { epoch: 1, cid: 4 },
        security_index: 4,
        identity: Identity::Proven(Arc::new(credential)),
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
