//! Queries and changes of a user's ways to log in, by the user or an administrator.
//!
//! `service` is a connection at level crypt with a token of either, or the administrator's route on the server's
//! host.

use std::net::IpAddr;

use afs_auth::Secret;
use afs_rpc::EnvRef;
use afs_wire::ids::CellName;
use afs_wire::login::{
    AddSshKey, Comment, HostAddress, ListWays, RegisterFinish, RegisterStart, RegisterStartReply,
    RemovePassphrase, RemoveSshKey, Revoke, UserText, VERSION, Ways,
};
use opaque_ke::{ClientRegistration, ClientRegistrationFinishParameters, RegistrationResponse};

use super::passphrase::to_message;
use super::{Ask, LoginError};
use crate::crypto::{Randomness, Suite, stretching};
use crate::protocol::identifiers;
use crate::ssh::UserKey;
use crate::user::UserName;

/// Least length of a passphrase, in characters.
pub const PASSPHRASE_LEN_MIN: usize = 8;

/// Sets or changes a passphrase. The service never sees it. Tokens obtained with an earlier one are not renewed any
/// more. Costs as much as a login.
///
/// # Errors
/// [`LoginError::TooShort`], or the error of the service.
pub async fn register_passphrase(
    service: &impl Ask,
    cell: &CellName,
    user: &UserName,
    passphrase: &Secret,
    env: &EnvRef,
) -> Result<(), LoginError> {
    let characters = String::from_utf8_lossy(passphrase.expose()).chars().count();
    if characters < PASSPHRASE_LEN_MIN {
        return Err(LoginError::TooShort(PASSPHRASE_LEN_MIN));
    }
    let started = ClientRegistration::<Suite>::start(&mut Randomness(env), passphrase.expose());
    let started = started.map_err(|_| LoginError::InvalidReply("the passphrase cannot be used"))?;
    let message = to_message(&started.message.serialize())?;
    let start = RegisterStart { version: VERSION, user: user.to_wire(), message };
    let answer = service.ask(&start).await?;
    let message = upload(cell, user, started.state, &answer, passphrase, env)?;
    service.ask(&RegisterFinish { version: VERSION, user: user.to_wire(), message }).await?;
    Ok(())
}

fn upload(
    cell: &CellName,
    user: &UserName,
    state: ClientRegistration<Suite>,
    answer: &RegisterStartReply,
    passphrase: &Secret,
    env: &EnvRef,
) -> Result<afs_wire::login::Message, LoginError> {
    let response = RegistrationResponse::deserialize(&answer.message);
    let response = response.map_err(|_| LoginError::InvalidReply("its message cannot be read"))?;
    let stretching = stretching();
    let identifiers = identifiers(user, cell);
    let parameters = ClientRegistrationFinishParameters::new(identifiers, Some(&stretching));
    let finished = state.finish(&mut Randomness(env), passphrase.expose(), response, parameters);
    let finished = finished.map_err(|_| LoginError::InvalidReply("its message does not check"))?;
    to_message(&finished.message.serialize())
}

/// Removes a passphrase.
///
/// # Errors
/// The error of the service.
pub async fn remove_passphrase(service: &impl Ask, user: &UserName) -> Result<(), LoginError> {
    Ok(service.ask(&RemovePassphrase { version: VERSION, user: user.to_wire() }).await?)
}

/// Adds an SSH key to log in with. An existing key gets the new comment.
///
/// # Errors
/// The error of the service.
pub async fn add_ssh_key(
    service: &impl Ask,
    user: &UserName,
    key: &UserKey,
    comment: &str,
) -> Result<(), LoginError> {
    let comment = Comment::truncated(comment.as_bytes());
    let add = AddSshKey { version: VERSION, user: user.to_wire(), key: key.blob().clone(), comment };
    Ok(service.ask(&add).await?)
}

/// Removes an SSH key. Tokens obtained earlier, with any key, are not renewed any more.
///
/// # Errors
/// The error of the service.
pub async fn remove_ssh_key(service: &impl Ask, user: &UserName, key: &UserKey) -> Result<(), LoginError> {
    let remove = RemoveSshKey { version: VERSION, user: user.to_wire(), key: key.blob().clone() };
    Ok(service.ask(&remove).await?)
}

/// A user's ways to log in.
///
/// # Errors
/// The error of the service.
pub async fn list_ways(service: &impl Ask, user: &UserName) -> Result<Ways, LoginError> {
    Ok(service.ask(&ListWays { version: VERSION, user: user.to_wire() }).await?.ways)
}

/// Whose tokens to revoke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Revoked {
    /// Those of a user.
    User(UserName),
    /// Those of every user who has logged in from this address, as far as the cell remembers.
    Host(IpAddr),
}

/// Revokes all tokens of users, and with `remove_ways` removes their passphrases and SSH keys; returns the users. Every
/// server of the cell refuses the tokens as soon as it has the change of the protection database.
///
/// # Errors
/// The error of the service.
pub async fn revoke(
    service: &impl Ask,
    revoked: &Revoked,
    remove_ways: bool,
) -> Result<Vec<String>, LoginError> {
    let (user, host) = match revoked {
        Revoked::User(user) => (user.to_wire(), HostAddress::empty()),
        Revoked::Host(address) => (UserText::empty(), to_wire(*address)),
    };
    let reply = service.ask(&Revoke { version: VERSION, user, host, remove_ways }).await?;
    Ok(reply.users.iter().map(|user| user.to_text()).collect())
}

fn to_wire(address: IpAddr) -> HostAddress {
    match address.to_canonical() {
        IpAddr::V4(v4) => HostAddress::truncated(&v4.octets()),
        IpAddr::V6(v6) => HostAddress::truncated(&v6.octets()),
    }
}
