//! Login with an SSH key.

use afs_rpc::EnvRef;
use afs_wire::login::{SshFinish, SshStart, VERSION};

use super::passphrase::open;
use super::{Ask, Login, LoginError};
use crate::crypto::Exchange;
use crate::grant::Grant;
use crate::host_key::HostKey;
use crate::protocol::{SSH, SshExchange};
use crate::ssh::{self, Signer, UserKey};

/// Logs in with an SSH key. `trusted` decides whether the service's host key is the cell's, before anything is
/// signed. A service without the host key's secret half cannot issue a token: only where `trusted` accepts a wrong
/// key, as on first use, can another service impersonate it.
///
/// `signer` may block, and does so in the poll that the service's first reply wakes.
///
/// # Errors
/// [`LoginError::Denied`], [`LoginError::Host`], [`LoginError::Signer`], or another error of the exchange.
pub async fn login_with_ssh(
    service: &impl Ask,
    login: &Login,
    signer: &dyn Signer,
    trusted: impl FnOnce(&HostKey) -> bool + Send,
    env: &EnvRef,
) -> Result<Grant, LoginError> {
    let key = UserKey::new(signer.key()).map_err(|error| LoginError::Signer(error.to_string()))?;
    let exchange = Exchange::begin(env);
    let client = exchange.share();
    let (user, wish) = (login.user.to_wire(), login.wish());
    let start =
        SshStart { version: VERSION, user, wish: wish.clone(), key: key.blob().clone(), share: client };
    let answer = service.ask(&start).await?;
    let host_key = HostKey(answer.host_key.0);
    let said = SshExchange { key: key.blob(), client, server: answer.share, host_key: host_key.0 };
    let transcript = said.transcript(&login.cell, &login.user, &wish);
    if !host_key.has_signed(&transcript, &answer.signature) {
        return Err(LoginError::Unproven);
    }
    if !trusted(&host_key) {
        return Err(LoginError::Host(host_key));
    }
    let signature = ssh::sign(&login.cell, &transcript, signer).map_err(LoginError::Signer)?;
    let signature = ssh::to_wire(&signature).ok_or(LoginError::InvalidReply("the signature is too long"))?;
    let finish = SshFinish { version: VERSION, attempt: answer.attempt, signature };
    let sealing = exchange.finish(answer.share, &transcript.digest(), SSH.purpose);
    let sealing = sealing.ok_or(LoginError::InvalidReply("its share of the key exchange is void"))?;
    let sealed = service.ask(&finish).await?.grant;
    open(&sealing, &SSH, &sealed)
}
