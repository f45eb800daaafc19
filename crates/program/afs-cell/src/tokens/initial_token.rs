//! Choice of a new mount's first token: the one that its user has kept from an earlier login.
//!
//! A mount can read the token files of the user who mounts. Other users of the machine hand in their tokens by a login:
//! a mount of root's that read their files would follow paths and environments that they control.

use super::kept::KeptToken;
use super::messages::CellLocation;
use super::store::TokenStore;
use crate::error::CellResult;
use afs_rpc::UnixTime;

/// The kept token of the user for a cell of a mount, if it has not expired. None for the home cell of the mount in the servers' own
/// process, which acts as the administrator until a user logs in there, unless the token is without some groups: that one
/// counts there too, and after its end the user is anonymous. None that was issued by another cell of the
/// same name.
pub(super) fn kept_for(
    (place, is_home): (&CellLocation, bool),
    store: &TokenStore,
    now: UnixTime,
) -> CellResult<Option<KeptToken>> {
    let Some(mount) = &place.mount else { return Ok(None) };
    let needs_none = mount.serves && is_home;
    let counts = |kept: &KeptToken| match needs_none {
        true => !kept.grant.without.is_empty(),
        false => kept.is_good_at(now),
    };
    let kept = store.get(&place.cell)?;
    Ok(kept.filter(|kept| counts(kept) && is_of(kept, place)))
}

/// Whether a token was issued by servers that the mount knows too: cell names are not unique.
fn is_of(kept: &KeptToken, place: &CellLocation) -> bool {
    kept.base_port == place.base_port && kept.servers.iter().any(|server| place.servers.contains(server))
}

#[cfg(test)]
mod tests {
    use super::super::messages::MountLocation;
    use super::super::samples::kept;
    use super::*;
    use std::net::Ipv4Addr;

    const END: u64 = 5_000_000_000;

    fn place(serves: bool) -> CellLocation {
        let kept = kept("example.org", END);
        let mount = MountLocation { directory: "/mnt".into(), device: String::new(), pid: 1, serves };
        CellLocation { cell: kept.cell, servers: kept.servers, base_port: kept.base_port, mount: Some(mount) }
    }

    #[test]
    fn a_mount_begins_with_the_token_of_its_cell_and_servers_while_it_counts() {
        let dir = tempfile::tempdir().unwrap();
        let store = TokenStore::Directory(dir.path().join("tokens"));
        let at = |secs| UnixTime { secs, nanos: 0 };
        let taken_of = |place: &CellLocation, is_home, now| {
            kept_for((place, is_home), &store, at(now)).unwrap().is_some()
        };
        let taken = |place: &CellLocation, now| taken_of(place, true, now);
        assert!(!taken(&place(false), 1), "nobody has logged in");
        store.put(&kept("example.org", END)).unwrap();
        assert!(taken(&place(false), 1) && !taken(&place(false), END), "it has ended then");
        assert!(!taken(&place(true), 1), "the administrator of his own cell");
        assert!(taken_of(&place(true), false, 1), "another cell beside it");
        let mut without = kept("example.org", END);
        without.grant.without = vec!["system:administrators".into()];
        store.put(&without).unwrap();
        assert!(
            taken(&place(true), 1) && taken(&place(true), END),
            "the rights of the owner do not come back by a start"
        );
        store.put(&kept("example.org", END)).unwrap();
        let elsewhere = CellLocation { servers: vec![Ipv4Addr::new(192, 0, 2, 7)], ..place(false) };
        let other_port = CellLocation { base_port: 7100, ..place(false) };
        let other_cell = CellLocation { cell: kept("example.net", END).cell, ..place(false) };
        for other in [elsewhere, other_port, other_cell] {
            assert!(!taken(&other, 1), "{other:?}");
        }
    }
}
