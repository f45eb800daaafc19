//! Exchange of a valid token for one with other suspended groups.

use afs_rpc::EnvRef;
use afs_wire::login::{ChangeGroups, GroupText, GroupTexts, Renewal, VERSION};

use super::passphrase::open;
use super::{Ask, Login, LoginError};
use crate::crypto::Exchange;
use crate::grant::Grant;
use crate::protocol::GROUPS;

/// A change of the groups whose rights a token has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupChange {
    /// Groups whose rights the new token is to be without, by name; at most 32.
    pub suspend: Vec<String>,
    /// Groups whose rights it is to have again, by name; at most 32. Those that are not suspended stay as they are.
    pub resume: Vec<String>,
    /// Whether what the new token is without can only be resumed by another login.
    pub lasting: bool,
}

/// Exchanges a token. `service` is a connection made with it, at level auth or better; the new one ends with it, and has
/// its level. The lifetime in `login` is not used, and its level must be the token's.
///
/// # Errors
/// [`LoginError::NoGroup`], [`LoginError::Fixed`], `LGNNOTRENEWABLE` in a [`LoginError::Call`] where a group cannot be
/// resumed because the token cannot be renewed, or another error of the exchange.
pub async fn change_groups(
    service: &impl Ask,
    login: &Login,
    renewal: &Renewal,
    change: &GroupChange,
    env: &EnvRef,
) -> Result<Grant, LoginError> {
    let exchange = Exchange::begin(env);
    let (share, login) = (exchange.share(), Login { lifetime: 0, ..login.clone() });
    let ask = ChangeGroups {
        version: VERSION,
        renewal: renewal.clone(),
        share,
        suspend: texts(&change.suspend)?,
        resume: texts(&change.resume)?,
        lasting: change.lasting,
    };
    let answer = service.ask(&ask).await?;
    let said = GROUPS.transcript(&login.cell, &login.user, &login.wish());
    let said = said.with(&share.0).with(&answer.share.0);
    let key = exchange.finish(answer.share, &said.digest(), GROUPS.purpose);
    let key = key.ok_or(LoginError::InvalidReply("its share of the key exchange is void"))?;
    open(&key, &GROUPS, &answer.grant)
}

fn texts(names: &[String]) -> Result<GroupTexts, LoginError> {
    let text = |name: &String| GroupText::new(name.as_bytes()).map_err(|_| LoginError::NoGroup);
    let texts = names.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    GroupTexts::try_from(texts).map_err(|_| LoginError::TooManyGroups)
}
