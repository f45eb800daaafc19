//! AddressMisses with overdue breaks: while one client leaves a break unanswered, neither it nor other clients
//! without a token at its address are granted promises, so that the next change does not have to wait for
//! them too. When one client of an address is given up, the others there that are late are given up with it:
//! names and ports cost nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::sync::{Notify, OwnedNotified};
use parking_lot::Mutex;

use super::Clients;
use crate::hosts::Host;

/// Time after which an unanswered break is late.
pub(super) const LATE: Duration = Duration::from_secs(1);

/// LateBreak breaks of hosts without a token, by address: as many as are being waited for.
#[derive(Default)]
pub(super) struct LateAddresses(Mutex<BTreeMap<IpAddr, LateAddress>>);

#[derive(Default)]
struct LateAddress {
    breaks: usize,
    given_up: Arc<Notify>,
}

impl LateAddresses {
    fn add(&self, address: IpAddr) -> OwnedNotified {
        let mut late = self.0.lock();
        let here = late.entry(address).or_default();
        here.breaks += 1;
        here.given_up.clone().notified_owned()
    }

    fn remove(&self, address: IpAddr) {
        let mut late = self.0.lock();
        if let Some(here) = late.get_mut(&address) {
            here.breaks -= 1;
            if here.breaks == 0 {
                late.remove(&address);
            }
        }
    }

    fn give_up(&self, address: IpAddr) {
        let waiting = self.0.lock().get(&address).map(|here| here.given_up.clone());
        waiting.iter().for_each(|given_up| given_up.notify_waiters());
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.0.lock().contains_key(&address)
    }
}

/// A late break, until the wait for it ends.
pub(super) struct LateBreak<'a> {
    clients: &'a Clients,
    host: &'a Host,
    address: Option<IpAddr>,
}

impl<'a> LateBreak<'a> {
    /// Registers a late break. The notification fires when another host at the same address that may be the
    /// same is given up.
    pub(super) fn new(clients: &'a Clients, host: &'a Host) -> (Self, Option<OwnedNotified>) {
        host.with(|state| state.late += 1);
        let address = (!host.is_authenticated()).then(|| host.destination().ip());
        let given_up = address.map(|address| clients.late.add(address));
        (LateBreak { clients, host, address }, given_up)
    }
}

impl Drop for LateBreak<'_> {
    fn drop(&mut self) {
        self.host.with(|state| state.late -= 1);
        if let Some(address) = self.address {
            self.clients.late.remove(address);
        }
    }
}

impl Clients {
    /// Ends the waits for late hosts that may be the same as a host that was found dead.
    pub(super) fn give_up_same_address(&self, host: &Host) {
        if !host.is_authenticated() {
            self.late.give_up(host.destination().ip());
        }
    }

    /// Whether a break of this host, or of another that may be the same, is late.
    pub(super) fn is_late(&self, host: &Host) -> bool {
        host.with(|state| state.late > 0)
            || !host.is_authenticated() && self.late.contains(host.destination().ip())
    }
}
