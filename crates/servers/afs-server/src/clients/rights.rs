//! Rights of users as clients keep them: the callers that each client made calls for, and the break when one of them is another
//! subject.
//!
//! A status tells the rights of the caller. They follow from the access list, of which the promise takes care, and from the
//! caller's groups, which the protection database may change. A client that understands the break of [`Fid::RIGHTS`] keeps
//! rights as long as promises: this server remembers whose calls it has decided, and as which subject. After each
//! change of the database it looks these callers up again. A client of which one is another subject is notified, as of
//! any break: one that does not reply is reset before its next call.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use afs_rpc::{Caller, Identity};
use afs_wire::error::AbortCode;

use super::Clients;
use crate::hosts::Host;
use crate::subject::{NameService, Subject};

/// Callers remembered for one client. A client with more is notified of every change.
const CALLERS_MAX: usize = 64;

/// The callers whose rights a client may keep.
#[derive(Default)]
pub(crate) struct KeptRights {
    callers: Vec<KnownCaller>,
    /// The client must be notified of the next change of the protection database, whichever user that changes.
    has_changed: bool,
}

struct KnownCaller {
    identity: Identity,
    address: IpAddr,
    subject: Subject,
}

impl KeptRights {
    fn note(&mut self, caller: &Caller, subject: &Subject) {
        let address = caller.peer.ip();
        let is_same = |known: &&KnownCaller| {
            known.address == address && is_same_principal(&known.identity, &caller.identity)
        };
        let found = self.callers.iter().find(is_same).map(|known| known.subject != *subject);
        let new = || KnownCaller { identity: caller.identity.clone(), address, subject: subject.clone() };
        self.note_found(found, new);
    }

    /// Notes a caller: whether it was found with another subject, or `new` if it was not found. Without room for it the client is notified of
    /// every change.
    fn note_found(&mut self, found: Option<bool>, new: impl FnOnce() -> KnownCaller) {
        match found {
            Some(is_other) => self.has_changed |= is_other,
            None if self.callers.len() < CALLERS_MAX => self.callers.push(new()),
            None => self.has_changed = true,
        }
    }

    /// Puts back what was taken out, behind callers that came meanwhile: the earlier subject is the one that counts.
    fn put_back(&mut self, taken: KeptRights) {
        let later = std::mem::replace(self, taken);
        self.has_changed |= later.has_changed;
        for new in later.callers {
            let is_same = |known: &&KnownCaller| {
                known.address == new.address && is_same_principal(&known.identity, &new.identity)
            };
            let found = self.callers.iter().find(is_same).map(|known| known.subject != new.subject);
            self.note_found(found, || new);
        }
    }
}

/// The subject follows from the principal and the address alone; a new token of the same user is the same caller.
fn is_same_principal(one: &Identity, other: &Identity) -> bool {
    one.principal() == other.principal() && (*one == Identity::Local) == (*other == Identity::Local)
}

impl Clients {
    /// The subject of a call, whose rights the client may keep until it is notified. A change of the database either comes
    /// before the look-up, or finds this caller.
    pub(crate) async fn subject(
        &self,
        host: &Host,
        caller: &Caller,
        names: &dyn NameService,
    ) -> Result<Subject, AbortCode> {
        loop {
            let version = names.version();
            let subject = names.subject(&caller.identity, caller.peer.ip()).await?;
            if host.keeps_rights() {
                host.kept_rights.lock().note(caller, &subject);
            }
            if names.version() == version || !host.keeps_rights() {
                return Ok(subject);
            }
        }
    }

    /// Notifies clients of changed rights after each change of the database, until the clients are dropped.
    pub(crate) fn start_breaking_rights(self: &Arc<Self>, names: Arc<dyn NameService>) {
        let (clients, mut seen) = (Arc::downgrade(self), names.version().unwrap_or_default());
        self.env.spawn(Box::pin(async move {
            while let Some(changed) = names.changed(seen) {
                changed.await;
                let Some(clients) = Weak::upgrade(&clients) else { return };
                // Read before the look-ups, which may miss a later change.
                seen = names.version().unwrap_or_default();
                clients.break_changed_rights(&*names).await;
            }
        }));
    }

    async fn break_changed_rights(self: &Arc<Self>, names: &dyn NameService) {
        for host in self.hosts.all() {
            let taken = std::mem::take(&mut *host.kept_rights.lock());
            match has_changed(&taken, names).await {
                true => self.break_rights(&host),
                false => host.kept_rights.lock().put_back(taken),
            }
        }
    }
}

/// Whether one of some callers is another subject now, as far as that can be looked up.
async fn has_changed(kept: &KeptRights, names: &dyn NameService) -> bool {
    if kept.has_changed {
        return true;
    }
    for known in &kept.callers {
        let subject = names.subject(&known.identity, known.address).await;
        if subject.as_ref() != Ok(&known.subject) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_rpc::ConnKey;
    use std::net::SocketAddr;

    fn kept(callers: std::ops::Range<u8>) -> KeptRights {
        let mut kept = KeptRights::default();
        for n in callers {
            let (peer, connection) = (SocketAddr::from(([10, 0, 0, n], 7001)), ConnKey { epoch: 1, cid: 4 });
            let caller = Caller { peer, connection, security_index: 0, identity: Identity::Anonymous };
            kept.note(&caller, &Subject::anonymous());
        }
        kept
    }

    #[test]
    fn callers_are_bounded_and_beyond_that_the_client_hears_of_every_change() {
        let full = kept(0..CALLERS_MAX as u8);
        assert!(full.callers.len() == CALLERS_MAX && !full.has_changed);
        let more = kept(0..CALLERS_MAX as u8 + 1);
        assert!(more.callers.len() == CALLERS_MAX && more.has_changed);
    }

    #[test]
    fn callers_that_come_during_a_look_up_do_not_add_up_beyond_the_bound() {
        let mut later = kept(100..100 + CALLERS_MAX as u8);
        later.put_back(kept(0..CALLERS_MAX as u8));
        assert!(later.callers.len() == CALLERS_MAX && later.has_changed);
    }
}
