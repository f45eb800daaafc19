//! Tokens without the rights of some groups, at a server of ours and as others read them.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::cell;

use afs_auth::crypto::EncType;
use afs_auth::rxgk::{Minting, RxgkToken, Variant, code, mint, open_token};
use afs_rpc::{Level, Principal, Suspended, UnixTime};
use afs_wire::ids::ViceId;
use cell::support::Weather;
use cell::{Cell, NOW};

fn suspended() -> Suspended {
    Suspended::new([ViceId::ADMINISTRATORS, ViceId(-300)]).unwrap()
}

fn token_without_groups(cell: &Cell) -> RxgkToken {
    let (name, expires) = ("alice".to_owned(), UnixTime { secs: NOW + 3600, nanos: 0 });
    let (level, enctype) = (Level::Crypt, EncType::DEFAULT);
    mint(&cell.keys, &Minting { name, level, expires, enctype, terms: suspended().into() }, &cell.env)
        .unwrap()
}

#[test]
fn a_server_knows_the_holder_of_a_token_without_groups_as_one() {
    let mut cell = Cell::new(71, Variant::OpenAfs, Weather::FAIR);
    let token = token_without_groups(&cell);
    let connection = cell.connect(&token);
    assert_eq!(cell.call(connection, 10, 10), Ok(()));
    let found = cell.credentials[0].principal.clone();
    assert_eq!((found.suspended(), found.to_string()), (suspended(), "alice".into()));
    assert_ne!(found, Principal::local("alice"), "another caller than the user with all groups");
}

/// More than one identity is refused by servers that do not know ours: `docs/protocol/rxgk.md`, "4. Tokens".
#[test]
fn a_token_without_groups_has_two_identities_and_no_change_of_it_is_accepted() {
    let mut cell = Cell::new(72, Variant::OpenAfs, Weather::FAIR);
    let token = token_without_groups(&cell);
    let contents = open_token(token.variant, &token.sealed, &cell.keys).unwrap();
    assert_eq!(contents.identities.len(), 2);
    // Without the cell's key.
    for at in 12..token.sealed.len() - 3 {
        let mut forged = token.clone();
        forged.sealed[at] ^= 4;
        assert_eq!(cell.refusal(&forged), code::SEALED_INCONSISTENT.code, "{at}");
    }
    // As a server that does not know the kind reads it, and one that knows more kinds than this one.
    let changes: [fn(&mut afs_auth::rxgk::TokenContents); 4] = [
        |contents| contents.identities[1].kind += 1,
        |contents| contents.identities[1].data.truncate(8),
        |contents| contents.identities.swap(0, 1),
        |contents| contents.identities.push(contents.identities[1].clone()),
    ];
    for change in changes {
        let changed = cell.changed(&token, token.variant, change);
        assert_eq!(cell.refusal(&changed), code::INCONSISTENCY.code);
    }
}
