//! Tokens of the real classes at real services: a valid one gives the caller its identity, and an invalid one
//! is refused.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::time::Duration;

use afs_auth::rxgk::RxgkToken;
use afs_auth::rxkad::RxkadToken;
use afs_rpc::{CallError, Security};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, AclText};
use afs_wire::{vl, vol};
use rig::{Cell, Client, Tokens};

const HOUR: u64 = 3600;

#[test]
fn a_good_token_says_who_calls() {
    let cell = Cell::with(121, Default::default(), "none");
    let (client, owner) = (cell.client(1), cell.owner());
    let acl = AclText::new("1\n0\nadmin:staff\t63\n\0").unwrap();
    owner.ask(fs::StoreAcl { fid: cell.root(), acl }).unwrap();
    let tokens = &cell.tokens;
    let both =
        |name: &str| [tokens.by_rxkad(&tokens.rxkad(name, HOUR)), tokens.by_rxgk(&tokens.rxgk(name, HOUR))];
    for (place, security) in both("carol").iter().enumerate() {
        let carol = client.acting_with(security);
        let fid = carol.create(cell.root(), &format!("f{place}")).unwrap().fid;
        carol.store(fid, 0, &[7; 100_000]).unwrap();
        assert_eq!(carol.read(fid), [7; 100_000]);
        assert_eq!(carol.refusal(vl::GetNewVolumeId { count: 1 }), AbortCode::VL_PERM);
    }
    for security in &both("dora") {
        client.acting_with(security).ask(vl::GetNewVolumeId { count: 1 }).unwrap();
    }
    let strangers = both("frank2");
    for security in strangers.iter().chain(&both("afs2")) {
        assert!(client.acting_with(security).create(cell.root(), "x").is_err(), "a name that nobody has");
    }
}

/// Invalid tokens, by name.
fn bad_tokens(cell: &Cell) -> Vec<(&'static str, Security)> {
    let (ours, theirs) = (&cell.tokens, Tokens::new(cell.sim.env(cell.server)));
    let (kad, gk) = (ours.rxkad("dora", HOUR), ours.rxgk("dora", HOUR));
    let mut forged = kad.ticket().to_vec();
    let last = forged.len() - 5;
    forged[last] ^= 1;
    let changed = RxkadToken::new(kad.format(), &forged, kad.key().clone(), kad.expires()).unwrap();
    let made_up = RxkadToken::new(kad.format(), &[7; 200], kad.key().clone(), kad.expires()).unwrap();
    // The ticket of one and the key of another: as stolen from the network, without the session key.
    let other_key =
        RxkadToken::new(kad.format(), kad.ticket(), ours.rxkad("dora", HOUR).key().clone(), kad.expires());
    let mut broken = gk.clone();
    let last = broken.sealed.len() - 5;
    broken.sealed[last] ^= 1;
    let stolen = RxgkToken { key: ours.rxgk("dora", HOUR).key, ..gk.clone() };
    vec![
        ("rxkad, expired", ours.standing_still().by_rxkad(&ours.rxkad("dora", 60))),
        ("rxkad, of another cell", ours.by_rxkad(&theirs.rxkad("dora", HOUR))),
        ("rxkad, changed", ours.by_rxkad(&changed)),
        ("rxkad, made up", ours.by_rxkad(&made_up)),
        ("rxkad, with another key", ours.by_rxkad(&other_key.unwrap())),
        ("rxgk, expired", ours.standing_still().by_rxgk(&ours.rxgk("dora", 60))),
        ("rxgk, of another cell", ours.by_rxgk(&theirs.rxgk("dora", HOUR))),
        ("rxgk, changed", ours.by_rxgk(&broken)),
        ("rxgk, with another key", ours.by_rxgk(&stolen)),
    ]
}

#[test]
fn a_bad_token_reaches_no_handler() {
    let cell = Cell::new(122);
    let owner = cell.owner();
    let client = cell.client(1);
    let bad = bad_tokens(&cell);
    cell.sim.run_for(Duration::from_secs(1000));
    cell.recorded();
    let calls = || owner.ask(fs::GetStatistics {}).unwrap().statistics.total_calls;
    let before = calls();
    for (what, security) in &bad {
        let caller: Client = client.acting_with(security);
        let refused = caller.fetch_status(cell.root()).unwrap_err();
        assert!(matches!(refused, CallError::Abort(_)), "{what}: {refused}");
        assert!(caller.create(cell.root(), "x").is_err(), "{what}");
        assert!(caller.ask(vl::GetNewVolumeId { count: 1 }).is_err(), "{what}");
        assert!(caller.ask(vol::Monitor {}).is_err(), "{what}");
    }
    assert_eq!(calls(), before, "no call was counted");
    assert_eq!(cell.recorded(), [""; 0]);
    assert_eq!(client.heard(), [], "nobody was asked who he is");
}
