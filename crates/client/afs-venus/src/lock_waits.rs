//! Lock waits: which process of this machine waits for a lock on which file, to find processes that wait for each other.
//!
//! An edge leads from an owner who waits to each owner whose lock is in its way, and is read from the tables of the files at the moment
//! of the search. Owners begin to wait one after another, and who waits keeps its locks: what the search finds is a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::lock_queue::Claim;
use crate::vnode::Vnode;

/// What each owner waits for. An entry belongs to a request of the kernel that has no reply yet.
#[derive(Default)]
pub(crate) struct LockWaits {
    by_owner: Mutex<BTreeMap<u64, Vec<Wait>>>,
}

struct Wait {
    vnode: Arc<Vnode>,
    claim: Claim,
}

impl LockWaits {
    /// An owner begins to wait for a lock. `false`, and no entry, if someone whose lock is in the way waits for a lock of this owner,
    /// directly or by others.
    pub fn begin(&self, vnode: &Arc<Vnode>, claim: &Claim) -> bool {
        let mut by_owner = self.by_owner.lock();
        if leads_back(&by_owner, vnode, claim) {
            return false;
        }
        let wait = Wait { vnode: vnode.clone(), claim: claim.clone() };
        by_owner.entry(claim.owner).or_default().push(wait);
        true
    }

    /// A wait begun for this lock is over.
    pub fn end(&self, vnode: &Arc<Vnode>, claim: &Claim) {
        let mut by_owner = self.by_owner.lock();
        let Some(waits) = by_owner.get_mut(&claim.owner) else { return };
        let is_it = |wait: &Wait| Arc::ptr_eq(&wait.vnode, vnode) && wait.claim == *claim;
        if let Some(at) = waits.iter().position(is_it) {
            waits.swap_remove(at);
        }
        if waits.is_empty() {
            by_owner.remove(&claim.owner);
        }
    }
}

fn leads_back(waits: &BTreeMap<u64, Vec<Wait>>, vnode: &Vnode, claim: &Claim) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vnode.state().locks.owners_in_the_way(claim);
    while let Some(owner) = next.pop() {
        if owner == claim.owner {
            return true;
        }
        if seen.insert(owner) {
            for wait in waits.get(&owner).into_iter().flatten() {
                next.extend(wait.vnode.state().locks.owners_in_the_way(&wait.claim));
            }
        }
    }
    false
}
