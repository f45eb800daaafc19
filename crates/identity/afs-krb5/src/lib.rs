//! Tokens for a cell from a user's Kerberos tickets.
//!
//! The user's credential cache is read as a file. If it has no ticket for the cell's service, one is requested from the
//! realm's KDC. No Kerberos library is needed.

mod cache;
mod config;
mod error;
mod exchange;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod messages;
mod network;
mod principal;
#[cfg(any(test, feature = "fuzzing"))]
mod samples;
mod search;

pub use cache::{CacheError, LocationError};
pub use config::ConfigError;
pub use error::KerberosError;
pub use exchange::ExchangeError;
pub use network::NetworkError;
pub use principal::{NameError, Principal};
pub use search::SearchError;

use afs_auth::Token;
use afs_auth::rxkad::RxkadToken;
use afs_net::System;
use afs_rpc::EnvRef;
use afs_wire::ids::CellName;
use cache::{Credential, Location};
use config::Profile;
use network::Network;
use rustix::process::geteuid;
use search::{Search, services};

/// Options of the search for a ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KerberosOptions {
    /// The realm of the cell's service. By default the user's, then the one that `krb5.conf` has for the cell's domain,
    /// then the one with the cell's name.
    pub realm: Option<String>,
    /// The cell's service, with or without a realm. By default `afs/CELL`, then `afs` if the cell has the realm's name.
    pub service: Option<String>,
}

/// A token and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KerberosToken {
    /// The token.
    pub token: Token,
    /// The user's name in the cell: `name`, `name.instance`, or with `@realm` if the realm does not have the cell's
    /// name. Only the cell's servers know which realms are local.
    pub user: String,
}

/// Gets a token for `cell` with the tickets in the user's credential cache.
///
/// The cache is the one in `KRB5CCNAME`, else `default_ccache_name` of `krb5.conf`, else `/tmp/krb5cc_UID`. The
/// configuration is the one in `KRB5_CONFIG`, else `/etc/krb5.conf`. Sends requests only if the cache has no ticket for
/// the cell; that takes at most half a minute for each realm.
///
/// # Errors
/// There are no tickets, others may read them, they have expired, or no realm knows the cell.
pub fn token_from_kerberos(
    cell: &CellName,
    options: &KerberosOptions,
) -> Result<KerberosToken, KerberosError> {
    let profile = Profile::read(std::env::var_os("KRB5_CONFIG").as_deref())?;
    let cache = location(&profile)?.read()?;
    let services = services(cell, options, &profile, &cache.owner)?;
    let env = machine()?;
    let search = Search { cache: &cache, kdcs: &Network::new(&profile), now: env.wall(), env: &env };
    let credential = search.first(&services)?;
    Ok(KerberosToken { token: token(&credential)?, user: name_in(cell, &credential.client) })
}

/// Name for display, by `docs/protocol/rxkad.md` "6.2 Kerberos 5", "Name rules"; servers may map it differently.
fn name_in(cell: &CellName, user: &Principal) -> String {
    let name = user.components.join(".").to_lowercase();
    if user.realm.eq_ignore_ascii_case(cell.as_str()) {
        return name;
    }
    format!("{name}@{}", user.realm.to_lowercase())
}

fn location(profile: &Profile) -> Result<Location, LocationError> {
    if let Some(name) = std::env::var_os("KRB5CCNAME").filter(|name| !name.is_empty()) {
        let name = name.into_string().map_err(|_| LocationError::NotText)?;
        return Location::parse(&name);
    }
    let uid = geteuid().as_raw().to_string();
    match profile.value(&["libdefaults", "default_ccache_name"]) {
        Some(name) => Location::parse(&name.replace("%{uid}", &uid).replace("%{euid}", &uid)),
        None => Ok(Location::File(format!("/tmp/krb5cc_{uid}").into())),
    }
}

/// The machine's clock and randomness.
fn machine() -> Result<EnvRef, KerberosError> {
    Ok(System::with_workers(1).map_err(KerberosError::Threads)?.env())
}

/// The token is the whole ticket; servers derive its key from the session key as this function does.
fn token(credential: &Credential) -> Result<Token, KerberosError> {
    let key = &credential.key;
    let expires = Some(credential.ends);
    RxkadToken::from_kerberos(&credential.ticket, key.enctype, key.secret.expose(), expires)
        .map(Token::Rxkad)
        .map_err(|error| KerberosError::Ticket { service: credential.server.clone(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_rpc::UnixTime;
    use cache::Cache;

    #[test]
    fn a_ticket_is_a_token_until_it_ends() {
        let cache = Cache::decode(samples::CACHE).unwrap();
        let now = UnixTime { secs: samples::ISSUED, nanos: 0 };
        let service = Principal::parse(samples::AFS, "").unwrap();
        let credential = cache.find(&service, now).unwrap();
        let made = token(credential).unwrap();
        assert_eq!(made.expires(), Some(credential.ends));
        let Token::Rxkad(made) = made else { panic!("{made:?}") };
        assert_eq!(made.ticket(), credential.ticket);

        let mut old = credential.clone();
        old.key.enctype = 4;
        assert!(token(&old).unwrap_err().to_string().contains("is no token"));
        old.ticket = vec![0; 12_001];
        assert!(token(&old).is_err());
    }

    #[test]
    fn a_user_is_called_as_his_cell_calls_him() {
        let cell = CellName::new("example.org").unwrap();
        for (user, name) in [
            ("alice@EXAMPLE.ORG", "alice"),
            ("alice/admin@EXAMPLE.ORG", "alice.admin"),
            ("Bob@AD.EXAMPLE.ORG", "bob@ad.example.org"),
        ] {
            assert_eq!(name_in(&cell, &Principal::parse(user, "").unwrap()), name);
        }
    }
}
