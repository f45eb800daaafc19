//! Login with a passphrase.

use afs_auth::Secret;
use afs_rpc::EnvRef;
use afs_wire::login::{Message, PassphraseFinish, PassphraseStart, PassphraseStartReply, VERSION};
use opaque_ke::errors::ProtocolError;
use opaque_ke::{ClientLogin, ClientLoginFinishParameters, ClientLoginFinishResult, CredentialResponse};
use zeroize::Zeroize;

use super::{Ask, Login, LoginError};
use crate::crypto::{Randomness, SealKey, Suite, stretching};
use crate::grant::Grant;
use crate::protocol::{Kind, PASSPHRASE, identifiers};

/// Logs in with a passphrase, which never leaves this function. A service without the user's record cannot issue a
/// token, nor learn anything about the passphrase but whether one guess was right.
///
/// Takes 64 MiB of memory and a good tenth of a second of processor time (Argon2id), in the poll that the service's
/// first reply wakes.
///
/// # Errors
/// [`LoginError::Denied`], [`LoginError::Slow`], or another error of the exchange.
pub async fn login_with_passphrase(
    service: &impl Ask,
    login: &Login,
    passphrase: &Secret,
    env: &EnvRef,
) -> Result<Grant, LoginError> {
    let started = ClientLogin::<Suite>::start(&mut Randomness(env), passphrase.expose());
    let started = started.map_err(|_| LoginError::InvalidReply("the passphrase is empty"))?;
    let start = PassphraseStart {
        version: VERSION,
        user: login.user.to_wire(),
        wish: login.wish(),
        message: to_message(&started.message.serialize())?,
    };
    let answer = service.ask(&start).await?;
    let mut finished = finish(login, started.state, &answer, passphrase, env)?;
    let key = SealKey::derive(&finished.session_key, b"", PASSPHRASE.purpose);
    finished.session_key.as_mut_slice().zeroize();
    finished.export_key.as_mut_slice().zeroize();
    let message = to_message(&finished.message.serialize())?;
    let finish = PassphraseFinish { version: VERSION, attempt: answer.attempt, message };
    let sealed = service.ask(&finish).await?.grant;
    open(&key, &PASSPHRASE, &sealed)
}

fn finish(
    login: &Login,
    state: ClientLogin<Suite>,
    answer: &PassphraseStartReply,
    passphrase: &Secret,
    env: &EnvRef,
) -> Result<ClientLoginFinishResult<Suite>, LoginError> {
    let said = PASSPHRASE.transcript(&login.cell, &login.user, &login.wish());
    let identifiers = identifiers(&login.user, &login.cell);
    let stretching = stretching();
    let parameters = ClientLoginFinishParameters::new(Some(said.bytes()), identifiers, Some(&stretching));
    let response = CredentialResponse::deserialize(&answer.message);
    let response = response.map_err(|_| LoginError::InvalidReply("its message cannot be read"))?;
    let finished = state.finish(&mut Randomness(env), passphrase.expose(), response, parameters);
    finished.map_err(|error| match error {
        ProtocolError::InvalidLoginError => LoginError::Denied,
        _ => LoginError::InvalidReply("its message does not check"),
    })
}

pub(super) fn to_message(bytes: &[u8]) -> Result<Message, LoginError> {
    Message::new(bytes).map_err(|_| LoginError::InvalidReply("a message is too long"))
}

/// Opens a grant.
pub(super) fn open(key: &SealKey, kind: &Kind, sealed: &[u8]) -> Result<Grant, LoginError> {
    let plain = key
        .open(kind.purpose.as_bytes(), sealed)
        .ok_or(LoginError::InvalidReply("the token cannot be opened"))?;
    Grant::decode(&plain).map_err(|_| LoginError::InvalidReply("the token cannot be read"))
}
