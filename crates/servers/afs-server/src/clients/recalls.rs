//! Recall of a lease at the client that holds it, in the time of a broken promise (docs/protocol extensions.md "Leases of
//! directories").

use std::sync::Arc;

use super::Clients;
use crate::leases::Lease;

impl Clients {
    /// Recalls a lease. False if the client does not say in time that it has sent all that it holds: it then counts as
    /// unreachable, and its promises on the directories of the lease are broken before its next call.
    pub(crate) async fn recall(self: &Arc<Self>, lease: &Lease) -> bool {
        let (host, full, since) = (&lease.host, self.timeouts.break_reply, self.env.now());
        let timeout = host.with(|state| state.misses.timeout(full, self.now()));
        if host.is_removed() {
            return false;
        }
        let answered = self.in_time(host, timeout, self.ask_back(lease, timeout)).await
            || (!host.is_down()
                && self.reach(host).await
                && self.in_time(host, timeout, self.ask_back(lease, timeout)).await);
        if !answered {
            self.give_up(host);
            lease.directories().for_each(|dir| self.break_to(dir, host));
        } else if self.env.now() - since > full / 2 {
            self.note_miss(host);
        }
        answered
    }
}
