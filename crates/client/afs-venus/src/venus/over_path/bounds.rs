//! Bounds of the data path: what is waited for and how long, failures in a row, transfers at a time; and wrong capabilities.

use std::time::Duration;

use afs_datapath::capability::Refusal;
use afs_datapath::session::Failure;
use afs_rpc::future::join_all;
use afs_wire::ids::DataVersion;

use super::conduct::Calls;
use super::kit::key;
use super::*;
use crate::transfer::{FETCH, MemorySink, Wanted};

/// A client with an open connection to such a drive.
fn opened(conduct: Conduct) -> Over {
    let over = over(1, conduct);
    over.read_new(1, "opening");
    over.kit.pass(OPENING);
    over
}

impl Over {
    fn requests(&self) -> usize {
        self.drive.requests.load(Ordering::SeqCst)
    }

    /// Milliseconds that work takes.
    fn millis(&self, work: impl FnOnce()) -> u128 {
        let began = self.kit.sim.now();
        work();
        self.kit.sim.now().saturating_since(began).as_millis()
    }
}

#[test]
fn bytes_are_not_waited_for_if_fewer_are_announced_than_the_version_has() {
    let over = opened(Conduct::FewerAndSilent);
    let took = over.millis(|| over.read_new(2, "by calls"));
    assert_eq!((over.requests(), over.reasons()), (1, vec!["protocol"]));
    assert!(took < 1000, "{took} ms");
}

#[test]
fn the_next_bytes_are_waited_for_ten_seconds() {
    for conduct in [Conduct::Silent, Conduct::Half] {
        let over = opened(conduct);
        let took = over.millis(|| over.read_new(2, "by calls"));
        assert_eq!((over.requests(), over.reasons()), (1, vec!["stalled"]), "{conduct:?}");
        assert!((10_000..11_000).contains(&took), "{conduct:?}: {took} ms");
    }
}

/// Each byte comes in time, and all of them would take three quarters of an hour.
#[test]
fn bytes_that_drip_are_waited_for_half_a_minute() {
    let over = opened(Conduct::Drips);
    let took = over.millis(|| over.read_new(2, "by calls"));
    assert_eq!((over.requests(), over.reasons()), (1, vec!["stalled"]));
    assert!((30_000..31_000).contains(&took), "{took} ms");
}

#[test]
fn eight_requests_in_a_row_that_are_declined_are_a_failure_and_seven_are_none() {
    for failure in [Failure::NoObject, Failure::Busy, Failure::Io] {
        let over = opened(Conduct::Fails(failure));
        (2..9).for_each(|seed| over.read_new(seed, "declined"));
        assert_eq!((over.requests(), over.reasons()), (7, vec!["declined"]), "{failure:?}");
        *over.drive.conduct.lock() = Conduct::Right;
        over.read_new(9, "by the path");
        assert_eq!(over.counters().path_bytes_fetched, LENGTH, "{failure:?}");
        *over.drive.conduct.lock() = Conduct::Fails(failure);
        (10..30).for_each(|seed| over.read_new(seed, "declined, then left alone"));
        assert_eq!((over.requests(), over.reasons()), (7 + 1 + 8, vec!["declined", "paused"]), "{failure:?}");
    }
}

#[test]
fn sixteen_transfers_use_a_connection_at_a_time_and_the_next_ones_are_made_by_calls() {
    let over = opened(Conduct::Silent);
    let (bytes, version) = over.kit.at_server();
    let (venus, fid) = (over.kit.venus.clone(), key().fid);
    let held = Some(DataVersion(version));
    let wanted = Wanted { held, ..Wanted::with_status(fid, 0..LENGTH) };
    let fetched = over.kit.sim.block_on(over.kit.client, Duration::from_secs(60), async move {
        let volume = venus.volume_of(key()).await.unwrap();
        let (venus, wanted, volume) = (&venus, &wanted, &volume);
        let one = || {
            venus.on_sites(volume, key(), FETCH, move |target| async move {
                let mut sink = MemorySink::new(LENGTH);
                venus.transfer.fetch(&target, wanted, &mut sink).await?;
                Ok(sink.into_bytes())
            })
        };
        let outcomes = join_all((0..20).map(|_| one())).await;
        outcomes.into_iter().map(|outcome| outcome.result.unwrap().value).collect::<Vec<_>>()
    });
    assert!(fetched.unwrap().iter().all(|fetched| *fetched == bytes));
    let fallbacks = over.counters().path_fallbacks;
    assert_eq!((over.requests(), fallbacks["full"], fallbacks["stalled"]), (16, 4, 16));
}

#[test]
fn a_capability_is_waited_for_half_a_second_and_asked_for_once_a_minute() {
    let over = opened(Conduct::Right);
    for (calls, first) in [(Calls::Delays, 500..600), (Calls::Denies, 0..100)] {
        *over.drive.calls.lock() = calls;
        over.kit.pass(Duration::from_secs(400));
        over.read_new(2, "opening again");
        over.kit.pass(OPENING);
        let before = over.call("GetCapability");
        let took = over.millis(|| over.read_new(3, "by calls"));
        assert!(first.contains(&took), "{calls:?}: {took} ms");
        // Until the call for it is given up.
        over.kit.pass(Duration::from_secs(15));
        for seed in 4..8 {
            let took = over.millis(|| over.read_new(seed, "by calls"));
            assert!(took < 100, "{calls:?}: {took} ms");
        }
        assert_eq!(over.call("GetCapability"), before + 1, "{calls:?}");
        assert_eq!((over.requests(), over.reasons()), (0, vec!["no_capability"]), "{calls:?}");
    }
}

#[test]
fn a_capability_for_something_else_is_not_presented() {
    for calls in [Calls::OtherFile, Calls::OtherUse] {
        let over = opened(Conduct::Right);
        *over.drive.calls.lock() = calls;
        over.read_new(2, "by calls");
        over.store_all(3, "by calls");
        assert_eq!((over.requests(), over.reasons()), (0, vec!["no_capability"]), "{calls:?}");
    }
}

/// A ticket that the file server does not have (ESTALE), or for which it has no call.
#[test]
fn bytes_for_which_the_file_server_has_no_ticket_are_stored_by_calls() {
    for (conduct, calls) in [(Conduct::WrongTicket, Calls::Right), (Conduct::Right, Calls::NoCommit)] {
        let over = opened(conduct);
        *over.drive.calls.lock() = calls;
        over.store_all(2, "by calls");
        assert_eq!((over.call("Commit"), over.reasons()), (1, vec!["ticket"]), "{conduct:?}");
        over.store_all(3, "left alone");
        assert_eq!((over.call("Commit"), over.reasons()), (1, vec!["paused", "ticket"]), "{conduct:?}");
        assert_eq!(over.counters().path_bytes_stored, 0, "{conduct:?}");
    }
}

#[test]
fn a_drive_that_is_not_the_one_that_was_told_gets_no_request_and_is_left_alone() {
    let over = opened(Conduct::OtherDrive);
    over.read_new(2, "left alone");
    over.store_all(3, "left alone");
    assert_eq!((over.requests(), over.reasons()), (0, vec!["paused", "wrong_key"]));
    assert_eq!((over.call("GetCapability"), over.counters().path_connections), (0, 0));
}

#[test]
fn in_the_place_of_a_capability_that_was_revoked_another_one_is_asked_for() {
    let over = opened(Conduct::Right);
    over.read_new(2, "by the path");
    over.kit.pass(Duration::from_secs(20));
    *over.drive.conduct.lock() = Conduct::Fails(Failure::Refused(Refusal::Revoked));
    over.read_new(3, "refused");
    *over.drive.conduct.lock() = Conduct::Right;
    over.read_new(4, "by the path");
    assert_eq!((over.reasons(), over.counters().path_bytes_fetched), (vec!["refused"], 2 * LENGTH));
    assert_eq!(over.call("GetCapability"), 2);
}
