//! Interface of the protection database, independent of its store.

use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::Pin;

use afs_rpc::{BoxFuture, Terms, UnixTime};
use afs_wire::ids::ViceId;

use super::{After, Change, Fields, Kinds, NewEntry, Page, ProtectionError, Requester, Status};

/// A result that may have to wait for a disk or another machine.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ProtectionError>> + Send + 'a>>;

/// The users, groups and memberships of a cell.
///
/// Every change is durable when its future resolves, and is atomic; the caller's permission is checked in the
/// same transaction. The rules and the codes are those of docs/protocol ptserver.md.
pub trait ProtectionDb: Send + Sync + 'static {
    /// A number that increases with every change that a query can see. Costs no I/O. A cached result is valid
    /// as long as this equals its value before the query.
    fn version(&self) -> u64;

    /// Ready when the version is another than `since`.
    fn changed(&self, since: u64) -> BoxFuture<'_, ()>;

    /// Whether the version follows changes at once at present: else it does within a minute.
    fn follows_changes(&self) -> bool {
        true
    }

    /// The ids behind names, which are compared exactly.
    fn ids_of(&self, names: Vec<String>) -> Pending<'_, Vec<Option<ViceId>>>;

    /// The names of ids.
    fn names_of(&self, ids: Vec<ViceId>) -> Pending<'_, Vec<Option<String>>>;

    /// The current protection subdomain of an id, sorted, without a check of the caller: of a user, as the holder of
    /// a token with these terms. Suspended memberships are left out, with the groups that only follow from them; with a
    /// revoked token it is [`Refusal::Revoked`](super::Refusal::Revoked).
    fn cps(&self, id: ViceId, terms: Terms) -> Pending<'_, Vec<ViceId>>;

    /// The groups of a host, sorted.
    fn host_cps(&self, host: Ipv4Addr) -> Pending<'_, Vec<ViceId>>;

    /// The caller's own id.
    fn identify(&self, requester: Requester) -> Pending<'_, ViceId>;

    /// Creates a user or group and returns its id.
    fn create(&self, requester: Requester, new: NewEntry) -> Pending<'_, ViceId>;

    /// Removes a user or group. Tokens that a user had at this time count for no later holder of the name.
    fn delete(&self, requester: Requester, id: ViceId, now: UnixTime) -> Pending<'_, ()>;

    /// Changes an entry's name, owner or id. Tokens that a user had at this time under another name count for no later
    /// holder of that name.
    fn change(&self, requester: Requester, id: ViceId, change: Change, now: UnixTime) -> Pending<'_, ()>;

    /// Sets privacy and quotas.
    fn set_fields(&self, requester: Requester, id: ViceId, fields: Fields) -> Pending<'_, ()>;

    /// Adds a user or group to a group.
    fn add_member(&self, requester: Requester, member: ViceId, group: ViceId) -> Pending<'_, ()>;

    /// Removes a member from a group.
    fn remove_member(&self, requester: Requester, member: ViceId, group: ViceId) -> Pending<'_, ()>;

    /// An entry.
    fn status(&self, requester: Requester, id: ViceId) -> Pending<'_, Status>;

    /// As [`ProtectionDb::cps`] for callers that may see it, together with the groups of a host if one is
    /// given. With a host the id may be [`BAD_ID`](super::BAD_ID) for none.
    fn cps_of(&self, requester: Requester, id: ViceId, host: Option<Ipv4Addr>) -> Pending<'_, Vec<ViceId>>;

    /// The members of a group, or the groups of a user, sorted. At most [`MEMBERS_MAX`](super::MEMBERS_MAX).
    fn elements(&self, requester: Requester, id: ViceId) -> Pending<'_, Vec<ViceId>>;

    /// The groups a group is in directly, sorted.
    fn supergroups(&self, requester: Requester, id: ViceId) -> Pending<'_, Vec<ViceId>>;

    /// Whether a user or group is in a group, directly or through nested groups.
    fn is_member(&self, requester: Requester, member: ViceId, group: ViceId) -> Pending<'_, bool>;

    /// At most `limit` groups of an owner, ascending; owner 0 is for groups without one.
    fn owned(
        &self,
        requester: Requester,
        owner: ViceId,
        after: After,
        limit: usize,
    ) -> Pending<'_, Page<ViceId>>;

    /// At most `limit` entries.
    fn list(
        &self,
        requester: Requester,
        kinds: Kinds,
        after: After,
        limit: usize,
    ) -> Pending<'_, Page<Status>>;

    /// The largest user id and the smallest group id ever assigned.
    fn max_ids(&self) -> Pending<'_, (ViceId, ViceId)>;

    /// Sets the largest user id, or the smallest group id.
    fn set_max_id(&self, requester: Requester, id: ViceId, group: bool) -> Pending<'_, ()>;

    /// See [`bootstrap_protection`](super::bootstrap_protection).
    fn bootstrap(&self, administrator: String) -> Pending<'_, ()>;
}
