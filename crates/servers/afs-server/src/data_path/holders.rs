//! Bounded table of the holders of capabilities: for each the client, the user, and the rights it was given
//! capabilities for.
//!
//! A holder whose groups have changed is removed; the user gets another id with the next capability. So a
//! capability that was decided on earlier groups has a holder that is in no table, and is refused.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use afs_datapath::capability::HolderId;
use afs_rpc::admission::{Admission, Bounds, Origin, Slot};
use afs_rpc::{Identity, Principal, Protection};
use afs_wire::error::AbortCode;
use parking_lot::Mutex;

use crate::call_context::CallContext;
use crate::hosts::{Host, HostId};
use crate::subject::{NameService, Subject};

/// Most holders, and most whose client calls from one address. A further one takes the place of the one that
/// has not been given a capability for longest, of its own address or of the one with most: that one's next use of one is refused,
/// and it asks for another.
const HOLDERS_MAX: usize = 16_384;
const ADDRESS_HOLDERS_MAX: usize = 512;

/// The holder of capabilities.
pub(crate) struct Holder {
    pub(crate) id: HolderId,
    host_id: HostId,
    /// Ids of hosts are reused.
    host: Weak<Host>,
    /// As it was when it was given the first capability. Its expiry is in each capability.
    pub(crate) identity: Identity,
    /// The address from which it called.
    pub(crate) address: IpAddr,
    subject: Subject,
    /// Version of the name service at which the subject was as it is.
    seen: Mutex<Option<u64>>,
}

/// The holders.
#[derive(Default)]
pub(crate) struct Holders(Mutex<Table>);

struct Table {
    holders: BTreeMap<HolderId, Entry>,
    by_host: BTreeMap<HostId, Vec<HolderId>>,
    /// A holder enters anew whenever it is given a capability.
    admission: Admission<HolderId>,
}

struct Entry {
    holder: Arc<Holder>,
    slot: Slot,
}

impl Default for Table {
    fn default() -> Self {
        let admission = Admission::new(Bounds::of(HOLDERS_MAX, ADDRESS_HOLDERS_MAX));
        Table { holders: BTreeMap::new(), by_host: BTreeMap::new(), admission }
    }
}

impl Holder {
    /// Whether a call is by the same user of the same client, from the same address.
    fn is(&self, context: &CallContext) -> bool {
        std::ptr::eq(self.host.as_ptr(), Arc::as_ptr(&context.host))
            && user(&self.identity) == user(&context.identity)
            && self.address == context.address
    }

    /// The client. Its id may be another's by now if the client is gone.
    pub(crate) fn host_id(&self) -> HostId {
        self.host_id
    }

    /// Whether its user still has the groups for which it was given its capabilities, and its token counts. Costs a comparison while
    /// the name service has not changed.
    ///
    /// # Errors
    /// As [`NameService::subject`].
    pub(crate) async fn has_its_groups(&self, names: &dyn NameService) -> Result<bool, AbortCode> {
        // Read before the look-up: its result may be newer than this version, never older.
        let version = names.version();
        if version.is_some() && *self.seen.lock() == version {
            return Ok(true);
        }
        let same = match names.subject(&self.identity, self.address).await {
            Ok(subject) => subject == self.subject,
            Err(code) if code.says_expired() => false,
            Err(code) => return Err(code),
        };
        if same {
            *self.seen.lock() = version;
        }
        Ok(same)
    }

    /// Whether the address of a connection has the rights of the holder: those of a host's groups are for the
    /// host alone.
    pub(crate) fn may_come_from(&self, address: IpAddr) -> bool {
        self.subject.host_groups().is_empty() || address.to_canonical() == self.address.to_canonical()
    }
}

impl Holders {
    /// The holder that a caller is, with the groups that the call has. `random` is the id of a new one.
    pub(crate) fn enter(&self, context: &CallContext, random: u128) -> Arc<Holder> {
        let mut table = self.0.lock();
        if let Some(known) = table.find(context) {
            table.remove(known.id);
            if known.subject == context.subject {
                table.insert(known.clone());
                return known;
            }
        }
        let holder = Arc::new(Holder {
            id: HolderId(random),
            host_id: context.host.id(),
            host: Arc::downgrade(&context.host),
            identity: context.identity.clone(),
            address: context.address,
            subject: context.subject.clone(),
            // The version at which the call found its groups is not known any more.
            seen: Mutex::new(None),
        });
        table.insert(holder.clone());
        holder
    }

    /// The id of a caller that is a holder.
    pub(crate) fn of(&self, context: &CallContext) -> Option<HolderId> {
        self.0.lock().find(context).map(|holder| holder.id)
    }

    /// The holder of a capability; `None` if it was removed.
    pub(crate) fn get(&self, id: HolderId) -> Option<Arc<Holder>> {
        self.0.lock().holders.get(&id).map(|entry| entry.holder.clone())
    }

    /// Removes a holder: its capabilities are refused.
    pub(crate) fn remove(&self, id: HolderId) {
        self.0.lock().remove(id);
    }
}

impl Table {
    fn find(&self, context: &CallContext) -> Option<Arc<Holder>> {
        let ids = self.by_host.get(&context.host.id())?;
        let mut holders = ids.iter().filter_map(|id| self.holders.get(id)).map(|entry| &entry.holder);
        holders.find(|holder| holder.is(context)).cloned()
    }

    fn insert(&mut self, holder: Arc<Holder>) {
        let id = holder.id;
        let Some(entered) = self.admission.enter(Origin::of(holder.address), id) else { return };
        self.by_host.entry(holder.host_id).or_default().push(id);
        self.holders.insert(id, Entry { holder, slot: entered.slot });
        entered.instead.into_iter().for_each(|oldest| self.remove(oldest));
    }

    fn remove(&mut self, id: HolderId) {
        let Some(Entry { holder, slot }) = self.holders.remove(&id) else { return };
        self.admission.leave(slot);
        if let Some(of_host) = self.by_host.get_mut(&holder.host_id) {
            of_host.retain(|other| *other != id);
            if of_host.is_empty() {
                self.by_host.remove(&holder.host_id);
            }
        }
    }
}

/// What makes an identity the same user with the same protection, whichever token or connection it is of.
fn user(identity: &Identity) -> (bool, Option<&Principal>, Protection) {
    (*identity == Identity::Local, identity.principal(), identity.protection())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(table: &mut Table, id: u128, host: u32, address: [u8; 4]) {
        let holder = Holder {
            id: HolderId(id),
            host_id: HostId(host),
            host: Weak::new(),
            identity: Identity::Anonymous,
            address: address.into(),
            subject: Subject::anonymous(),
            seen: Mutex::new(None),
        };
        table.insert(Arc::new(holder));
    }

    #[test]
    fn holders_are_bounded_for_each_address_and_in_all_and_the_oldest_go() {
        let mut table = Table::default();
        enter(&mut table, 0, 0, [10, 0, 0, 1]);
        for id in 1..=ADDRESS_HOLDERS_MAX as u128 + 10 {
            enter(&mut table, id, 1, [10, 0, 0, 2]);
        }
        assert_eq!(table.holders.len(), ADDRESS_HOLDERS_MAX + 1);
        assert!(table.holders.contains_key(&HolderId(0)), "that of another address stays");
        assert!(!table.holders.contains_key(&HolderId(10)) && table.holders.contains_key(&HolderId(11)));
        for id in 0..HOLDERS_MAX as u128 {
            enter(&mut table, 100_000 + id, id as u32 + 5, [11, 0, 0, (id % 100) as u8]);
        }
        assert!(
            table.holders.contains_key(&HolderId(0)),
            "an address with one keeps it, while another has more"
        );
        let listed: usize = table.by_host.values().map(Vec::len).sum();
        assert_eq!(
            (table.holders.len(), listed, table.admission.tally().count()),
            (HOLDERS_MAX, HOLDERS_MAX, HOLDERS_MAX)
        );
    }
}
