//! A token for a cell from the Kerberos tickets that `kinit` got.
//!
//! The user's credential cache is read as a file; where it has no ticket for the cell's service, the realm's KDC is
//! asked for one. No Kerberos library is needed.

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

/// What of the search for a ticket a person can set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KerberosOptions {
    /// The realm of the cell's service. By default the user's, then the one that `krb5.conf` gives to the cell's
    /// domain, then the one named like the cell.
    pub realm: Option<String>,
    /// The cell's service, with or without a realm. By default `afs/CELL`, then `afs` where the cell is named like
    /// the realm.
    pub service: Option<String>,
}

/// A token, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KerberosToken {
    /// The token.
    pub token: Token,
    /// The user as the cell calls him: `name`, `name.instance`, or with `@realm` behind it where the realm is not
    /// named like the cell. Whether the cell counts the realm as its own, its servers know.
    pub user: String,
}

/// A token for `cell`, from the tickets in the user's credential cache.
///
/// The cache is the one that `KRB5CCNAME` names, else `default_ccache_name` of `krb5.conf`, else `/tmp/krb5cc_UID`.
/// The configuration is what `KRB5_CONFIG` names, else `/etc/krb5.conf`. Asks the network only when the cache has no
/// ticket for the cell; that takes half a minute at most for each realm.
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

/// `docs/protocol/rxkad.md` "6.2 Kerberos 5", "Name rules", for people: what the servers make of it may differ.
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

/// Time and randomness of the machine.
fn machine() -> Result<EnvRef, KerberosError> {
    Ok(System::with_workers(1).map_err(KerberosError::Threads)?.env())
}

/// The whole ticket is the token, and servers derive the key from its session key as this does.
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
