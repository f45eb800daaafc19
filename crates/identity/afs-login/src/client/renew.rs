//! Renewal of a valid token.

use afs_rpc::EnvRef;
use afs_wire::login::{Renew, Renewal, VERSION};

use super::passphrase::open;
use super::{Ask, Login, LoginError};
use crate::crypto::Exchange;
use crate::grant::Grant;
use crate::protocol::RENEW;

/// Has a token renewed. `service` is a connection made with that token, at level auth or better.
///
/// # Errors
/// `LGNNOTRENEWABLE` in a [`LoginError::Call`] when its renewable time is over, or when the user's passphrase or an
/// SSH key has been replaced or removed since the login; or another error of the exchange.
pub async fn renew(
    service: &impl Ask,
    login: &Login,
    renewal: &Renewal,
    env: &EnvRef,
) -> Result<Grant, LoginError> {
    let exchange = Exchange::begin(env);
    let (share, wish) = (exchange.share(), login.wish());
    let ask = Renew { version: VERSION, renewal: renewal.clone(), wish: wish.clone(), share };
    let answer = service.ask(&ask).await?;
    let said = RENEW.transcript(&login.cell, &login.user, &wish).with(&share.0).with(&answer.share.0);
    let key = exchange.finish(answer.share, &said.digest(), RENEW.purpose);
    let key = key.ok_or(LoginError::InvalidReply("its share of the key exchange is void"))?;
    open(&key, &RENEW, &answer.grant)
}
