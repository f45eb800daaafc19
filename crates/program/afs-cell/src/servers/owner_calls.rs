//! Connections for the calls that come through the control socket, in the name of the cell and for the person at the socket.

use crate::person;
use crate::servers::security::CellSecurity;
use afs_rpc::{Connection, EnvRef, Instant, Person, Rx};
use afs_wire::rpc::ServiceId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a person's name is kept.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The services that the owner may call. Their connections are encrypted with the cell's key, so that no address and no
/// connection number has to be trusted.
#[derive(Clone)]
pub(super) struct OwnerCalls {
    pub(super) env: EnvRef,
    pub(super) rx: Rx,
    /// Where they come from.
    pub(super) address: SocketAddr,
    /// Addresses of the services of this host, by service number.
    pub(super) services: BTreeMap<u16, SocketAddr>,
    pub(super) security: CellSecurity,
    /// The owner of the cell, root, and who logged in behind root: nobody else may connect to the socket.
    pub(super) people: Arc<Mutex<BTreeMap<u32, (Person, Instant)>>>,
}

impl OwnerCalls {
    /// A connection to a service for the user with this id. Takes as long as the machine's name service, once a minute.
    pub(super) fn connection(&self, service: u16, uid: u32) -> Option<Connection> {
        let peer = *self.services.get(&service)?;
        let security = self.security.of_person(self.person(uid));
        Some(self.rx.connection(peer, ServiceId(service), security))
    }

    pub(super) fn person(&self, uid: u32) -> Person {
        let now = self.env.now();
        let kept = self.people.lock().get(&uid).cloned();
        if let Some((person, _)) = kept.filter(|(_, until)| now < *until) {
            return person;
        }
        let person = person::of_uid(uid);
        self.people.lock().insert(uid, (person.clone(), now + GOOD_FOR));
        person
    }
}
