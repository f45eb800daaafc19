//! Requirements on the protection of connections, by service and by volume.
//!
//! Access lists say who may do what; a requirement says how the caller must have authenticated, and whether
//! the connection must be encrypted. It binds administrators too. The cell's own process is exempt: its calls
//! do not leave the host.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use afs_rpc::{Class, Identity, Level};
use afs_wire::rpc::ServiceId;
use afs_wire::volname;
use parking_lot::RwLock;

/// Protection of a connection, in order of strength. Each contains the ones before it, except that
/// `rxgk-auth`, whose packets are readable on the network, does not contain `crypt`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Requirement {
    /// Any connection: an unauthenticated caller has the rights of `system:anyuser`.
    #[default]
    None,
    /// Authenticated, by any class at any level.
    Clear,
    /// Integrity: packets cannot be changed unnoticed, as far as the class is worth anything.
    Auth,
    /// Confidentiality as well; rxkad's old cipher is enough.
    Crypt,
    /// As `Auth`, by rxgk.
    RxgkAuth,
    /// As `Crypt`, by rxgk.
    RxgkCrypt,
}

impl Requirement {
    /// All of them, weakest first.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Clear, Self::Auth, Self::Crypt, Self::RxgkAuth, Self::RxgkCrypt];

    /// Its name in configuration files and commands.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Clear => "clear",
            Self::Auth => "auth",
            Self::Crypt => "crypt",
            Self::RxgkAuth => "rxgk-auth",
            Self::RxgkCrypt => "rxgk-crypt",
        }
    }

    /// Whether a caller's connection meets it.
    pub fn is_met_by(self, identity: &Identity) -> bool {
        let credential = match identity {
            Identity::Local => return true,
            Identity::Proven(credential) => Some(credential),
            _ => None,
        };
        let protection = credential.map(|credential| credential.protection);
        let at_least = |level| protection.is_some_and(|has| has.class != Class::Null && has.level >= level);
        let by_rxgk = || protection.is_some_and(|has| has.class == Class::Rxgk);
        match self {
            Self::None => true,
            Self::Clear => at_least(Level::Clear),
            Self::Auth => at_least(Level::Auth),
            Self::Crypt => at_least(Level::Crypt),
            Self::RxgkAuth => by_rxgk() && at_least(Level::Auth),
            Self::RxgkCrypt => by_rxgk() && at_least(Level::Crypt),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A word that names no requirement.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no requirement: say none, clear, auth, crypt, rxgk-auth or rxgk-crypt")]
pub struct NoRequirement(String);

impl FromStr for Requirement {
    type Err = NoRequirement;

    fn from_str(word: &str) -> Result<Self, NoRequirement> {
        let found = Self::ALL.into_iter().find(|requirement| requirement.word() == word);
        found.ok_or_else(|| NoRequirement(word.chars().take(40).collect()))
    }
}

/// Requirements by service and volume. Default: none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    services: BTreeMap<ServiceId, Requirement>,
    volumes: BTreeMap<String, Requirement>,
}

impl Policy {
    /// Sets the requirement of a service, for all calls except liveness probes.
    ///
    /// Clients of other makers call the location service unauthenticated: a requirement there keeps them out.
    #[must_use]
    pub fn of_service(mut self, service: ServiceId, requirement: Requirement) -> Self {
        self.services.insert(service, requirement);
        self
    }

    /// Sets the requirement of a volume, its read-only copies and its backup: `name` is the name of any of
    /// them. The requirement of the service that is called applies as well.
    #[must_use]
    pub fn of_volume(mut self, name: &str, requirement: Requirement) -> Self {
        self.volumes.insert(volname::split(name).0.to_owned(), requirement);
        self
    }

    /// Whether a service admits a caller.
    pub fn service_hears(&self, service: ServiceId, identity: &Identity) -> bool {
        self.services.get(&service).is_none_or(|requirement| requirement.is_met_by(identity))
    }

    /// Whether a volume is open to a caller.
    pub fn volume_is_open(&self, name: &str, identity: &Identity) -> bool {
        self.volumes.is_empty()
            || self.volumes.get(volname::split(name).0).is_none_or(|required| required.is_met_by(identity))
    }

    /// Whether the file service and a volume are open to callers of every kind: nothing is required of the way
    /// that their bytes travel.
    pub fn is_open_to_all(&self, volume: &str) -> bool {
        self.service_hears(ServiceId::FILE, &Identity::Anonymous)
            && self.volume_is_open(volume, &Identity::Anonymous)
    }

    /// Whether every volume is open to a caller: for calls that concern all of them.
    pub fn all_volumes_are_open(&self, identity: &Identity) -> bool {
        self.volumes.values().all(|required| required.is_met_by(identity))
    }
}

/// The policy of running servers, replaceable while they run. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SharedPolicy(Arc<RwLock<Arc<Policy>>>);

impl SharedPolicy {
    /// Starts with this policy.
    pub fn new(policy: Policy) -> Self {
        SharedPolicy(Arc::new(RwLock::new(Arc::new(policy))))
    }

    /// The current policy.
    pub fn get(&self) -> Arc<Policy> {
        self.0.read().clone()
    }

    /// Replaces the policy; every call from the next one on is bound by the new one.
    pub fn set(&self, policy: Policy) {
        *self.0.write() = Arc::new(policy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_rpc::{Credential, Principal, Protection};

    fn by(class: Class, level: Level) -> Identity {
        let principal = Principal::local("alice");
        let protection = Protection { class, level };
        Identity::Proven(Arc::new(Credential::new(principal, protection)))
    }

    #[test]
    fn the_requirements_that_each_identity_meets() {
        use Requirement::{Auth, Clear, Crypt, None, RxgkAuth, RxgkCrypt};
        let table: [(Identity, &[Requirement]); 8] = [
            (Identity::Anonymous, &[None]),
            (Identity::Local, &Requirement::ALL),
            (by(Class::Rxkad, Level::Clear), &[None, Clear]),
            (by(Class::Rxkad, Level::Auth), &[None, Clear, Auth]),
            (by(Class::Rxkad, Level::Crypt), &[None, Clear, Auth, Crypt]),
            (by(Class::Rxgk, Level::Clear), &[None, Clear]),
            (by(Class::Rxgk, Level::Auth), &[None, Clear, Auth, RxgkAuth]),
            (by(Class::Rxgk, Level::Crypt), &[None, Clear, Auth, Crypt, RxgkAuth, RxgkCrypt]),
        ];
        for (identity, met) in table {
            for requirement in Requirement::ALL {
                assert_eq!(requirement.is_met_by(&identity), met.contains(&requirement), "{requirement}");
            }
        }
    }

    #[test]
    fn words_are_read_as_written() {
        for requirement in Requirement::ALL {
            assert_eq!(requirement.to_string().parse(), Ok(requirement));
        }
        assert!("".parse::<Requirement>().is_err() && "Crypt".parse::<Requirement>().is_err());
    }

    #[test]
    fn a_volume_stands_for_its_copies() {
        let policy = Policy::default().of_volume("home.readonly", Requirement::Crypt);
        for name in ["home", "home.readonly", "home.backup"] {
            assert!(!policy.volume_is_open(name, &Identity::Anonymous), "{name}");
            assert!(policy.volume_is_open(name, &by(Class::Rxkad, Level::Crypt)), "{name}");
        }
        assert!(policy.volume_is_open("home.alice", &Identity::Anonymous));
        assert!(!policy.all_volumes_are_open(&Identity::Anonymous));
    }

    #[test]
    fn a_policy_is_replaced_for_all_who_share_it() {
        let (shared, service) = (SharedPolicy::default(), ServiceId::VOLUME);
        let server = shared.clone();
        assert!(server.get().service_hears(service, &Identity::Anonymous));
        shared.set(Policy::default().of_service(service, Requirement::Clear));
        assert!(!server.get().service_hears(service, &Identity::Anonymous));
        assert!(server.get().service_hears(ServiceId::LOCATION, &Identity::Anonymous));
    }
}
