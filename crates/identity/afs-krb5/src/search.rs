//! Search for a ticket of a cell's service: in the credential cache, then at the KDCs, realm after realm.

use crate::KerberosOptions;
use crate::cache::{Cache, Credential};
use crate::config::Profile;
use crate::exchange::{Exchange, ExchangeError};
use crate::network::{Kdcs, NetworkError};
use crate::principal::{NameError, Principal};
use afs_rpc::{EnvRef, UnixTime};
use afs_wire::ids::CellName;

/// The services whose tickets are tokens of a cell, the likeliest first (`docs/protocol/rxkad.md` "8. Client token
/// acquisition").
///
/// # Errors
/// An option is not a valid realm or principal.
pub fn services(
    cell: &CellName,
    options: &KerberosOptions,
    profile: &Profile,
    user: &Principal,
) -> Result<Vec<Principal>, NameError> {
    let own = options.realm.as_deref().unwrap_or(&user.realm);
    if own.is_empty() || own.contains(['/', '@', ':']) {
        return Err(NameError::Realm(own.to_owned()));
    }
    if let Some(text) = &options.service {
        return Ok(vec![Principal::parse(text, own)?]);
    }
    let mut realms = vec![own.to_owned()];
    if options.realm.is_none() {
        realms.extend(profile.realm_of(cell.as_str()).map(str::to_owned));
        realms.push(cell.as_str().to_ascii_uppercase());
    }
    let mut services = Vec::new();
    for service in realms.iter().flat_map(|realm| of_realm(cell, realm)) {
        if !services.contains(&service) {
            services.push(service);
        }
    }
    Ok(services)
}

fn of_realm(cell: &CellName, realm: &str) -> Vec<Principal> {
    let mut services = vec![Principal::new(&["afs", cell.as_str()], realm)];
    // The short name denotes the one cell with the realm's name.
    if cell.as_str().eq_ignore_ascii_case(realm) {
        services.push(Principal::new(&["afs"], realm));
    }
    services
}

/// Search for the ticket of a service: in the cache, then at the KDCs.
pub struct Search<'a> {
    /// The user's tickets.
    pub cache: &'a Cache,
    /// Route to the KDCs.
    pub kdcs: &'a dyn Kdcs,
    /// The present time.
    pub now: UnixTime,
    /// Randomness for keys.
    pub env: &'a EnvRef,
}

/// Why a search gave no ticket for a cell.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// No realm knows a service of the cell: each service with the reply of its realm.
    #[error("Kerberos has no ticket for the cell ({0})")]
    Unknown(String),
    /// The tickets of this user have expired.
    #[error("the Kerberos tickets of {0} have expired; get new ones with `kinit`")]
    Expired(Principal),
    /// The user has no ticket of the ticket-granting service.
    #[error("the Kerberos tickets of {0} do not let one ask for others; get new ones with `kinit`")]
    NotGranting(Principal),
    /// The KDC refused, or its reply is invalid.
    #[error("no Kerberos ticket for {service}: {error}")]
    Exchange {
        /// The requested service.
        service: Principal,
        /// Why.
        error: ExchangeError,
    },
    /// No KDC of the user's realm replied.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// Why the search gave no ticket for one service.
enum TicketFailure {
    /// The service is unknown; another one may be known.
    Unknown(String),
    /// An error that attempts with other services would hide.
    Final(SearchError),
}

impl Search<'_> {
    /// Gets a ticket for the first possible of `services`.
    ///
    /// # Errors
    /// There is none; the message has the error of each service.
    pub fn first(&self, services: &[Principal]) -> Result<Credential, SearchError> {
        if let Some(found) = services.iter().find_map(|service| self.cache.find(service, self.now)) {
            return Ok(found.clone());
        }
        let mut reasons = Vec::new();
        for service in services {
            match self.ticket(service) {
                Ok(credential) => return Ok(credential),
                Err(TicketFailure::Unknown(reason)) => reasons.push(format!("{service}: {reason}")),
                Err(TicketFailure::Final(error)) => return Err(error),
            }
        }
        Err(SearchError::Unknown(reasons.join("; ")))
    }

    fn ticket(&self, service: &Principal) -> Result<Credential, TicketFailure> {
        let home = &self.cache.owner.realm;
        let own = Principal::ticket_granting(&service.realm, &service.realm);
        if let Some(granting) = self.cache.find(&own, self.now) {
            return self.ask(granting, service);
        }
        if service.realm == *home {
            return Err(TicketFailure::Final(self.no_tickets()));
        }
        // The user's realm knows whether there is trust between it and the other realm.
        let foreign = Principal::ticket_granting(&service.realm, home);
        let granting = match self.cache.find(&foreign, self.now) {
            Some(granting) => granting.clone(),
            None => self.ticket(&foreign)?,
        };
        self.ask(&granting, service)
    }

    fn ask(&self, granting: &Credential, service: &Principal) -> Result<Credential, TicketFailure> {
        let exchange = Exchange::new(granting, service, self.env);
        let request = exchange.request(self.now, self.env).map_err(|e| refused(service, e))?;
        let answer = self.kdcs.ask(&service.realm, &request).map_err(|e| self.unreachable(service, e))?;
        exchange.reply(&answer).map_err(|e| refused(service, e))
    }

    /// Only the user's own realm has to reply: other realms are guesses.
    fn unreachable(&self, service: &Principal, error: NetworkError) -> TicketFailure {
        if service.realm == self.cache.owner.realm {
            TicketFailure::Final(error.into())
        } else {
            TicketFailure::Unknown(error.to_string())
        }
    }

    fn no_tickets(&self) -> SearchError {
        let owner = self.cache.owner.clone();
        let is_old = self.cache.credentials.iter().any(|c| !c.is_good_at(self.now));
        if is_old { SearchError::Expired(owner) } else { SearchError::NotGranting(owner) }
    }
}

fn refused(service: &Principal, error: ExchangeError) -> TicketFailure {
    if error.is_unknown_service() {
        return TicketFailure::Unknown(match service.components.as_slice() {
            [kind, realm] if kind == "krbtgt" => format!("{} does not know the realm {realm}", service.realm),
            _ => error.to_string(),
        });
    }
    TicketFailure::Final(SearchError::Exchange { service: service.clone(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{AFS, CACHE, ISSUED, REFUSAL, REPLY, TICKET_GRANTING};
    use afs_rpc::Parts;
    use std::sync::Mutex;

    /// A KDC that knows one recorded request only. Records the realms of all requests.
    #[derive(Default)]
    struct RecordedKdc(Mutex<Vec<String>>);

    impl Kdcs for RecordedKdc {
        fn ask(&self, realm: &str, request: &[u8]) -> Result<Vec<u8>, NetworkError> {
            self.0.lock().unwrap().push(realm.to_owned());
            let is_known =
                realm == "KERB.TEST" && request.windows(9).filter(|w| *w == b"kerb.test").count() == 1;
            if realm == "AWAY.TEST" {
                return Err(NetworkError::Silent { realm: realm.to_owned(), reasons: String::new() });
            }
            Ok(if is_known { REPLY } else { REFUSAL }.to_vec())
        }
    }

    fn cache(with: impl Fn(&str) -> bool) -> Cache {
        let mut cache = Cache::decode(CACHE).unwrap();
        cache.credentials.retain(|c| with(&c.server.to_string()));
        cache
    }

    fn first(
        cache: &Cache,
        kdcs: &RecordedKdc,
        secs: u64,
        names: &[&str],
    ) -> Result<Credential, SearchError> {
        let env = Parts::default().with_random(|out| out.fill(7)).shared();
        let services: Vec<Principal> =
            names.iter().map(|name| Principal::parse(name, "KERB.TEST").unwrap()).collect();
        let now = UnixTime { secs, nanos: 0 };
        Search { cache, kdcs, now, env: &env }.first(&services)
    }

    #[test]
    fn a_ticket_that_is_there_is_taken_without_asking() {
        let kdcs = RecordedKdc::default();
        let found = first(&cache(|_| true), &kdcs, ISSUED, &["afs", "afs/kerb.test"]).unwrap();
        assert_eq!(found.server.to_string(), AFS);
        assert!(kdcs.0.lock().unwrap().is_empty());
    }

    #[test]
    fn one_service_after_the_other_is_asked_for() {
        let kdcs = RecordedKdc::default();
        let cache = cache(|name| name == TICKET_GRANTING);
        let found = first(&cache, &kdcs, ISSUED, &["afs/other", "afs/kerb.test"]).unwrap();
        assert_eq!(found.server.to_string(), AFS);
        assert_eq!(*kdcs.0.lock().unwrap(), ["KERB.TEST", "KERB.TEST"]);
    }

    #[test]
    fn the_error_names_each_unknown_service_and_realm() {
        let cache = cache(|name| name == TICKET_GRANTING);
        let error =
            first(&cache, &RecordedKdc::default(), ISSUED, &["afs/other", "afs/x@OTHER.TEST"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Kerberos has no ticket for the cell (afs/other@KERB.TEST: the realm does not know the service (Kerberos error 7, 'LOOKING_UP_SERVER'); afs/x@OTHER.TEST: KERB.TEST does not know the realm OTHER.TEST)"
        );
    }

    #[test]
    fn old_tickets_are_of_no_use() {
        let later = ISSUED + 25 * 3600;
        let error = first(&cache(|_| true), &RecordedKdc::default(), later, &["afs/kerb.test"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the Kerberos tickets of alice@KERB.TEST have expired; get new ones with `kinit`"
        );
        let none =
            first(&cache(|name| name == AFS), &RecordedKdc::default(), ISSUED, &["afs/other"]).unwrap_err();
        assert!(none.to_string().contains("do not let one ask"), "{none}");
    }

    #[test]
    fn realms_are_tried_from_the_likeliest_on() {
        let user = Principal::parse("alice@HOME.TEST", "").unwrap();
        let cell = CellName::new("cell.test").unwrap();
        let mut profile = Profile::default();
        profile.add(&["domain_realm".into()], "cell.test", "MAPPED.TEST".into());
        let names = |options: KerberosOptions| -> Result<Vec<String>, NameError> {
            Ok(services(&cell, &options, &profile, &user)?.iter().map(ToString::to_string).collect())
        };
        let with = |realm: Option<&str>, service: Option<&str>| KerberosOptions {
            realm: realm.map(str::to_owned),
            service: service.map(str::to_owned),
        };
        let all = [
            "afs/cell.test@HOME.TEST",
            "afs/cell.test@MAPPED.TEST",
            "afs/cell.test@CELL.TEST",
            "afs@CELL.TEST",
        ];
        assert_eq!(names(with(None, None)).unwrap(), all);
        assert_eq!(names(with(Some("R"), None)).unwrap(), ["afs/cell.test@R"]);
        assert_eq!(names(with(Some("R"), Some("afs/x"))).unwrap(), ["afs/x@R"]);
        assert_eq!(names(with(None, Some("a/b@C"))).unwrap(), ["a/b@C"]);
        assert!(names(with(Some("a@b"), None)).is_err());
        assert!(names(with(None, Some("a//b"))).is_err());
    }
}
