//! Users of the cell: a protection database in memory, and a security class that trusts any name.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use afs_rpc::{Class, Credential, Identity, Level, Principal, Protection, Security, SecuritySource};
use afs_rx::{
    Challenge, ClientSecurity, Instant, PacketContext, PacketSecurity, Proof, Response, SecurityError,
    ServerSecurity, ServerSession, Verified,
};
use afs_server::subject::{NameService, Pending, Subject};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use bytes::Bytes;

/// Names and group members. Clones share them.
#[derive(Clone, Default)]
pub struct UserTable(Arc<Mutex<Names>>);

#[derive(Default)]
struct Names {
    ids: BTreeMap<String, ViceId>,
    groups: BTreeMap<ViceId, BTreeSet<ViceId>>,
}

impl UserTable {
    pub fn add(&self, name: &str, id: i32) {
        self.0.lock().unwrap().ids.insert(name.to_owned(), ViceId(id));
    }

    pub fn join(&self, member: &str, group: &str) {
        let mut known = self.0.lock().unwrap();
        let (member, group) = (known.ids[member], known.ids[group]);
        known.groups.entry(group).or_default().insert(member);
    }

    pub fn leave(&self, member: &str, group: &str) {
        let mut known = self.0.lock().unwrap();
        let (member, group) = (known.ids[member], known.ids[group]);
        known.groups.entry(group).or_default().remove(&member);
    }

    fn named(&self, name: &str) -> Subject {
        let known = self.0.lock().unwrap();
        let Some(id) = known.ids.get(name) else { return Subject::anonymous() };
        let of = known.groups.iter().filter(|(_, members)| members.contains(id)).map(|(group, _)| *group);
        Subject::new(*id, of.chain([ViceId::AUTHUSER, ViceId::ANYUSER]))
    }
}

impl NameService for UserTable {
    fn subject<'a>(&'a self, identity: &'a Identity, _: IpAddr) -> Pending<'a, Subject> {
        let subject = match identity.principal() {
            Some(Principal::Named { name, .. }) => self.named(name),
            Some(Principal::CellKey) => Subject::administrator(),
            None => Subject::anonymous(),
        };
        Box::pin(ready(Ok(subject)))
    }

    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>> {
        let known = self.0.lock().unwrap();
        let id = |name: &String| known.ids.get(name).copied().or(ViceId::from_well_known_name(name));
        Box::pin(ready(Ok(names.iter().map(id).collect())))
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>> {
        let known = self.0.lock().unwrap();
        let own =
            |id: &ViceId| known.ids.iter().find(|(_, known)| *known == id).map(|(name, _)| name.clone());
        let name = |id: &ViceId| own(id).or(id.well_known_name().map(Into::into));
        Box::pin(ready(Ok(ids.iter().map(name).collect())))
    }
}

/// Security with which calls of a user authenticate.
pub fn trusted_name(name: &str) -> Security {
    Security::new(Arc::new(TrustedName(name.to_owned())))
}

/// The name of a token that the server reports as expired.
pub const EXPIRED: &str = "late";
/// The name of a user whose client gives servers credentials for callbacks.
pub const AUTHENTICATES_CALLBACKS: &str = "careful";

struct TrustedName(String);

impl SecuritySource for TrustedName {
    fn name(&self) -> String {
        format!("plate {}", self.0)
    }

    fn session(&self) -> Box<dyn ClientSecurity> {
        Box::new(TrustingEndpoint(self.0.clone()))
    }
}

/// Either end of a connection: the name is sent, and trusted.
struct TrustingEndpoint(String);

impl PacketSecurity for TrustingEndpoint {
    fn index(&self) -> u8 {
        2
    }

    fn seal(&mut self, _: &PacketContext, _: &mut Vec<u8>) -> Result<u16, SecurityError> {
        Ok(0)
    }

    fn open(&mut self, _: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        Ok(payload)
    }
}

impl ClientSecurity for TrustingEndpoint {
    fn respond(&mut self, _: &Challenge<'_>) -> Result<Response, SecurityError> {
        Ok(Response { payload: self.0.clone().into_bytes(), checksum: 0 })
    }
}

/// The class as offered by a server.
pub struct TrustedNames;

impl ServerSecurity for TrustedNames {
    fn index(&self) -> u8 {
        2
    }

    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(TrustingEndpoint(String::new()))
    }
}

impl ServerSession for TrustingEndpoint {
    fn is_authenticated(&self, _: Instant) -> bool {
        !self.0.is_empty()
    }

    fn challenge(&mut self, _: Instant, _: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        b"who?".to_vec()
    }

    fn verify(&mut self, proof: &Proof<'_>) -> Result<Verified, SecurityError> {
        let name = String::from_utf8_lossy(proof.payload).into_owned();
        if name == EXPIRED {
            return Err(SecurityError { code: AbortCode::RXKADEXPIRED.0 });
        }
        self.0 = name;
        Ok(Verified::default())
    }

    fn identity(&self) -> Option<afs_rx::Identity> {
        let principal = Principal::Named { name: self.0.as_str().into(), cell: None };
        let protection = Protection { class: Class::Rxkad, level: Level::Clear };
        let callback = (self.0 == AUTHENTICATES_CALLBACKS).then(|| trusted_name("server"));
        let credential = Credential { principal, protection, expires: None, callback };
        (!self.0.is_empty()).then(|| Arc::new(credential) as afs_rx::Identity)
    }
}
