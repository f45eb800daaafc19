//! Calls that translate or list many users and groups.

use super::{Entry, NameChars, SERVICE};
use crate::ids::ViceId;
use crate::xdr::BoundedVec;
use std::net::Ipv4Addr;

/// Most elements of a list, by OpenAFS's bound.
pub const LIST_MAX: usize = 500_000;
/// Most ids in one answer to [`ListOwned`].
pub const OWNED_MAX: usize = 5000;
/// Most entries in one answer to [`ListEntries`].
pub const ENTRIES_MAX: usize = 500;

/// Names to translate, or translated.
pub type Names = BoundedVec<NameChars, LIST_MAX>;
/// Ids to translate, translated, or listed.
pub type Ids = BoundedVec<ViceId, LIST_MAX>;
/// Users and groups. Senders keep to [`ENTRIES_MAX`].
pub type Entries = BoundedVec<Entry, LIST_MAX>;

/// Bits of [`ListEntries::kinds`].
pub mod list_kinds {
    /// Users.
    pub const USERS: u32 = 1;
    /// Groups.
    pub const GROUPS: u32 = 2;
}

calls! {
    service SERVICE;

    /// Translates names; unknown ones into 32766.
    504 "NameToID" NameToId { names: Names } -> NameToIdReply { ids: Ids };

    /// Translates ids; unknown ones into their decimal text.
    505 "IDToName" IdToName { ids: Ids } -> IdToNameReply { names: Names };

    /// Lists an id's current protection subdomain, sorted.
    508 "GetCPS" GetCps { id: ViceId } -> IdsReply {
        ids: Ids,
        /// Not 0 when the list is incomplete; current servers always send 0.
        over: i32,
    };

    /// Lists the members of a group, or the groups of a user, sorted.
    514 "ListElements" ListElements { id: ViceId } -> IdsReply;

    /// Lists the groups of an owner, page by page.
    517 "ListOwned" ListOwned {
        /// The owner; 0 stands for groups without one.
        owner: ViceId,
        /// 0, or the previous reply's `last`.
        last: i32,
    } -> ListOwnedReply {
        ids: Ids,
        /// 0 at the end; else the next request's `last`.
        last: i32,
    };

    /// As [`GetCps`], together with the groups of a host.
    518 "GetCPS2" GetCps2 {
        /// An id, or 0x80000000 for the host's groups alone.
        id: ViceId,
        host: Ipv4Addr,
    } -> IdsReply;

    /// Lists the groups of a host.
    519 "GetHostCPS" GetHostCps { host: Ipv4Addr } -> IdsReply;

    /// Lists users and groups, page by page.
    521 "ListEntries" ListEntries {
        /// See [`list_kinds`].
        kinds: u32,
        /// 0, or the previous reply's `next`.
        start: i32,
    } -> ListEntriesReply {
        entries: Entries,
        /// -1 at the end; else the next request's `start`.
        next: i32,
    };

    /// Lists the groups that a group is a member of.
    530 "ListSuperGroups" ListSuperGroups { id: ViceId } -> IdsReply;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::encode_call;
    use crate::xdr::{Decode, DecodeError, Encode};

    #[test]
    fn a_name_in_a_list_takes_64_words() {
        let names = Names::first_of([NameChars::new(b"ab").unwrap()]);
        let call = encode_call(&NameToId { names });
        assert_eq!(call.len(), 4 + 4 + 256);
        assert_eq!(call[..16], [0, 0, 1, 0xf8, 0, 0, 0, 1, 0, 0, 0, b'a', 0, 0, 0, b'b']);
    }

    #[test]
    fn counts_are_checked_before_anything_is_reserved() {
        for count in [500_001u32, 0x8000_0000, u32::MAX] {
            let refused = NameToId::from_bytes(&count.to_bytes());
            assert!(matches!(refused, Err(DecodeError::TooLong { limit: LIST_MAX, .. })), "{count}");
        }
        let refused = IdToName::from_bytes(&500_000u32.to_bytes());
        assert!(matches!(refused, Err(DecodeError::Short { .. })));
    }

    #[test]
    fn the_cursor_follows_the_owner_and_the_list() {
        assert_eq!(ListOwned { owner: ViceId(1), last: -7 }.to_bytes(), [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf9]);
        let reply = ListOwnedReply { ids: Ids::first_of([ViceId(-2)]), last: 9 };
        assert_eq!(reply.to_bytes(), [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 9]);
    }
}
