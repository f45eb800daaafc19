//! Tests of the text of `andrew top`.

use super::*;
use afs_venus::{ActivityCounts, CacheActivity};

fn activity() -> Activity {
    Activity {
        at_micros: 10_000_000,
        cache: CacheActivity {
            used_bytes: 3 << 20,
            limit_bytes: 1 << 30,
            statuses: 12,
            statuses_limit: 50_000,
            ..CacheActivity::default()
        },
        counts: ActivityCounts {
            calls: 40,
            status_hits: 982,
            status_misses: 18,
            fetched_bytes: 5 << 20,
            fetched_by_data_path_bytes: 4 << 20,
            stored_bytes: 1000,
            ..ActivityCounts::default()
        },
        servers: vec![
            ServerActivity {
                addresses: vec!["192.0.2.1:7000".into()],
                last_reply_seconds_ago: Some(3),
                round_trip_micros: Some(1250),
                data_path: "in use".into(),
                calls: 30,
                failed_calls: 1,
                calls_micros: 60_000,
                ..ServerActivity::default()
            },
            ServerActivity {
                addresses: vec!["192.0.2.2:7000".into()],
                unreachable_seconds: Some(30),
                data_path: "idle".into(),
                ..ServerActivity::default()
            },
        ],
        slowest: vec![SlowCall {
            operation: "StoreData64".into(),
            server: "192.0.2.1:7000".into(),
            micros: 2_310_000,
            has_failed: true,
            ended_seconds_ago: 61,
        }],
        ..Activity::default()
    }
}

fn report(told: Activity) -> MountReport {
    MountReport { directory: "/afs".into(), cell: "example.org".into(), pid: 71, told, before: None }
}

#[test]
fn the_text_has_caches_servers_and_slow_calls() {
    let text = Reports(vec![report(activity())]).to_string();
    assert_eq!(
        text,
        "\
/afs (cell example.org, process 71)
  cache   3.0 MiB of 1.0 GiB used; 12 of 50000 statuses
  hits    status 98.2 % of 1000; data not used yet; 0 promises broken
  fetched 5.0 MiB, 4.0 MiB of it by the data path
  stored  1000 bytes; 40 calls in all

  SERVER                STATE               ROUND TRIP     CALLS  FAILED  MEAN TIME  DATA PATH
  192.0.2.1:7000        replied 3 s ago         1.2 ms        30       1     2.0 ms  in use
  192.0.2.2:7000        silent for 30 s              -         0       0          -  idle

  No call is in progress.

  SLOWEST OF 5 MINUTES  SERVER                      TOOK     ENDED
  StoreData64           192.0.2.1:7000             2.3 s  61 s ago  failed
"
    );
}

#[test]
fn rates_are_those_since_the_refresh_before_of_the_same_process() {
    let mut later = activity();
    later.at_micros += 2_000_000;
    later.counts.fetched_bytes += 2 << 20;
    later.counts.calls += 7;
    later.in_progress =
        vec![OngoingCall { operation: "FetchData64".into(), server: "192.0.2.1:7000".into(), micros: 900 }];
    let mut now = Reports(vec![report(later)]);
    now.compare(&Reports(vec![report(activity())]));
    let text = now.to_string();
    assert!(text.contains("  now     fetched 1.0 MiB/s, stored 0 bytes/s, 3 calls/s\n"), "{text}");
    assert!(text.contains("  FetchData64           192.0.2.1:7000            900 us\n"), "{text}");
    let restarted = MountReport { pid: 72, ..report(activity()) };
    now.compare(&Reports(vec![restarted]));
    assert!(!now.to_string().contains("  now "));
}

#[test]
fn what_was_read_at_drives_is_told_with_what_they_did_not_give() {
    let mut told = activity();
    assert!(!report(told.clone()).to_string().contains("at drives"));
    (told.counts.fetched_at_drives_bytes, told.counts.drive_fallbacks) = (1 << 20, 3);
    let line =
        "4.0 MiB of it by the data path, 1.0 MiB of it at drives (3 reads and stores at drives failed)\n";
    assert!(report(told.clone()).to_string().contains(line));
    told.counts.stored_at_drives_bytes = 2 << 20;
    let shown = report(told).to_string();
    assert!(shown.contains(", 2.0 MiB of it at drives; "), "{shown}");
}

#[test]
fn stores_to_be_tried_again_are_told() {
    let mut told = activity();
    told.cache.store_retries = 2;
    assert!(report(told).to_string().contains("the last store of 2 files failed"));
}

#[test]
fn leases_are_told_once_one_was_taken() {
    let mut told = activity();
    assert!(!report(told.clone()).to_string().contains("leases"));
    told.leases =
        LeaseActivity { held: 1, waiting_changes: 12, taken: 3, recalled: 2, lost: 0, decided_changes: 640 };
    let line = "  leases  1 held, 12 changes not sent yet; 3 taken, 2 recalled, 0 lost; 640 changes in all\n";
    assert!(report(told).to_string().contains(line));
}
