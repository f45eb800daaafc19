//! Text of explanations.

use super::*;
use afs_venus::{
    ExplainedBypass, ExplainedDrive, ExplainedError, ExplainedFid, ExplainedLock, ExplainedStatus,
    ExplainedVolume,
};

fn server() -> ExplainedServer {
    ExplainedServer {
        addresses: vec!["192.0.2.1:7000".into()],
        is_used: true,
        reason: "the only one".into(),
        unreachable_seconds: Some(30),
        last_reply_seconds_ago: Some(50),
        round_trip_micros: Some(1250),
        data_path: "failed: unreachable".into(),
        drives: vec![
            ExplainedDrive { address: "192.0.2.8:7010".into(), state: "in use".into(), paused_seconds: None },
            ExplainedDrive {
                address: "192.0.2.9:7010".into(),
                state: "failed: unreachable".into(),
                paused_seconds: Some(50),
            },
        ],
        errors: vec![ExplainedError {
            seconds_ago: 12,
            operation: "FetchData64".into(),
            error: "no reply".into(),
            times: 3,
        }],
    }
}

fn told() -> Explanation {
    Explanation {
        known_path: "film".into(),
        unknown: None,
        cell: Some("example.org".into()),
        fid: Some(ExplainedFid { volume: 536_870_915, vnode: 4, unique: 7 }),
        kind: Some("file".into()),
        volume: Some(ExplainedVolume {
            id: 536_870_915,
            name: "video".into(),
            kind: "read-write".into(),
            located_seconds_ago: 600,
        }),
        servers: vec![server()],
        promise: Some(ExplainedPromise {
            state: "held".into(),
            is_of_volume: false,
            seconds_left: Some(7200),
            unpromised: None,
        }),
        status: Some(ExplainedStatus {
            is_current: true,
            data_version: 5,
            length_bytes: 3000,
            mode: "600".into(),
        }),
        data: Some(ExplainedData {
            length_bytes: 3000,
            cached_bytes: Some(2000),
            dirty_bytes: 10,
            fetching_bytes: 0,
            open_handles: 1,
            failed_stores: 0,
        }),
        bypass: Some(ExplainedBypass { is_bypassed: false, reason: "none".into(), request: "auto".into() }),
        rights: Some(ExplainedRights {
            rights: Some("rl".into()),
            everybody: Some("l".into()),
            seconds_ago: Some(3),
            source: "token".into(),
            user: Some("alice".into()),
            token_seconds_left: Some(36_000),
        }),
        locks: Some(ExplainedLocks {
            at_server: Some("write".into()),
            is_lost: false,
            here: vec![ExplainedLock { kind: "write".into(), first: 0, last: None, pid: 71 }],
        }),
    }
}

#[test]
fn people_read_what_is_known_of_a_file_and_its_server() {
    let answer = Answer(vec![Explained { path: "/afs/film".into(), told: told() }]);
    assert_eq!(
        answer.to_string(),
        "/afs/film\n  \
         file 536870915.4.7 in cell example.org\n  \
         volume: video (536870915, read-write), located 10 min ago\n  \
         server 192.0.2.1:7000: used, the only one; has not answered for 30 s; last reply 50 s ago; \
         round trip 1.250 ms; data path: failed: unreachable\n    \
         drive 192.0.2.8:7010: in use\n    \
         drive 192.0.2.9:7010: failed: unreachable, left alone for 50 s; the server is read\n    \
         error 12 s ago: FetchData64: no reply (3 times)\n  \
         promise: held, for 2 h more\n  \
         status: cached and current; version 5, 3000 bytes\n  \
         data: 2000 of 3000 bytes cached, 10 not stored yet; open handles: 1\n  \
         cache: is cached (request: auto)\n  \
         rights: rl, with the token of alice, valid for 10 h, as reported 3 s ago\n  \
         others: everybody has l here by the access list; mode 600 keeps nobody out. `andrew fs setacl DIR system:anyuser none` does\n  \
         locks: write lock held at the server, write lock of process 71 on bytes 0 to the end\n"
    );
}

#[test]
fn a_mode_that_keeps_nobody_out_is_said_where_somebody_is_let_in() {
    let with = |mode: &str, everybody: Option<&str>| {
        let mut told = told();
        told.status.as_mut().unwrap().mode = mode.into();
        told.rights.as_mut().unwrap().everybody = everybody.map(Into::into);
        open_in_spite_of_mode(&told).is_some()
    };
    assert!(with("600", Some("rl")) && with("700", Some("l")));
    assert!(
        !with("600", Some("")) && !with("600", None) && !with("644", Some("rl")) && !with("", Some("rl"))
    );
}

#[test]
fn what_is_not_known_is_said_to_be_unknown() {
    let told = Explanation {
        known_path: "a".into(),
        unknown: Some("'b': the directory is not cached".into()),
        ..Explanation::default()
    };
    let answer = Answer(vec![Explained { path: "/afs/a/b".into(), told }]);
    assert_eq!(
        answer.to_string(),
        "/afs/a/b\n  \
         not known: 'b': the directory is not cached\n  \
         what follows is of '/a' in the mount\n  \
         object of unknown type\n  \
         volume: not known\n  \
         promise: not known\n  \
         status: not cached, or not for this user\n"
    );
}

#[test]
fn what_is_read_without_a_promise_is_said_to_be_so() {
    let unpromised = Some(Unpromised { since_seconds_ago: 600, as_of_seconds_ago: 7200 });
    let promise =
        ExplainedPromise { state: "none".into(), is_of_volume: false, seconds_left: None, unpromised };
    assert_eq!(promise_text(&promise), "none; read without promise since 10 min ago, as it was 2 h ago");
}

#[test]
fn json_has_the_same_fields_whatever_is_known() {
    let fields = |told: Explanation| {
        let shown = serde_json::to_value(Explained { path: "a".into(), told }).unwrap();
        shown.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(fields(told()), fields(Explanation::default()));
    assert_eq!(fields(told()).len(), 14);
}

#[test]
fn rights_say_where_they_come_from() {
    let text = |source: &str, rights: Option<&str>, everybody: Option<&str>| {
        rights_text(&ExplainedRights {
            rights: rights.map(Into::into),
            everybody: everybody.map(Into::into),
            seconds_ago: None,
            source: source.into(),
            user: None,
            token_seconds_left: None,
        })
    };
    assert_eq!(text("anonymous", Some(""), Some("")), "none, anonymous");
    assert_eq!(text("mount", Some("rlidwka"), None), "rlidwka, as the owner of the mount");
    assert_eq!(
        text("expired token", None, Some("l")),
        "not reported yet to this user, anonymous, since the token has expired; everybody has: l"
    );
    assert_eq!(text("anonymous", None, None), "not known, anonymous");
}
