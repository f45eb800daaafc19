//! Exchange of a token for one with other suspended groups, at the cell's login service.

use super::service::Network;
use crate::error::{CommandError, CommandResult};
use afs_auth::Token;
use afs_cell::tokens::{HandedOver, KeptToken, change_groups};
use afs_login::client::{GroupChange, LoginError};
use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;

/// The token without the rights of these groups, which only another login gives again.
///
/// # Errors
/// As [`changed`].
pub(in crate::commands) fn without(kept: KeptToken, groups: &[String]) -> CommandResult<KeptToken> {
    if groups.is_empty() {
        return Ok(kept);
    }
    changed(&kept, &GroupChange { suspend: groups.to_vec(), resume: Vec::new(), lasting: true })
}

/// The token that the login service gives for a token and a change of its groups.
///
/// # Errors
/// A group does not exist or cannot be suspended or resumed; the service refuses or does not reply; the token is not one of
/// the login service.
pub(in crate::commands) fn changed(kept: &KeptToken, change: &GroupChange) -> CommandResult<KeptToken> {
    let groups: Vec<&str> = change.suspend.iter().chain(&change.resume).map(String::as_str).collect();
    let of_everybody = |group: &&&str| {
        [ViceId::ANYUSER, ViceId::AUTHUSER].iter().any(|id| id.well_known_name() == Some(**group))
    };
    if let Some(group) = groups.iter().find(of_everybody) {
        return Err(CommandError::usage(format!(
            "membership in {group} cannot be suspended: everybody is in it; `andrew logout` removes the token"
        )));
    }
    if !matches!(kept.token(), Token::Rxgk(_)) {
        return Err(CommandError::usage(format!(
            "the token of {} in {} is of Kerberos, whose tokens always have all groups; log in with a passphrase or an SSH key",
            kept.user, kept.cell
        )));
    }
    let network = Network::open()?;
    let exchanged = network.system.block_on(change_groups(network.udp.rx(), kept, change));
    exchanged.map_err(|error| told(kept, &groups, &error))
}

/// Error if a mount goes on with a token that has more groups than this one.
///
/// # Errors
/// A mount did not take the token, which is without groups.
pub(in crate::commands) fn check_handed(kept: &KeptToken, handed: &HandedOver) -> CommandResult {
    if kept.grant.without.is_empty() || handed.refusals.is_empty() {
        return Ok(());
    }
    Err(CommandError::failed(format!(
        "{} of the mounts did not take the token without {}, and may use one with that; log out, or try again",
        handed.refusals.len(),
        kept.grant.without.join(", ")
    )))
}

fn told(kept: &KeptToken, groups: &[&str], error: &LoginError) -> CommandError {
    let (cell, named) = (&kept.cell, groups.join(", "));
    match error {
        LoginError::NoGroup if groups.len() == 1 => {
            CommandError::usage(format!("{cell} has no group {named}"))
        }
        LoginError::NoGroup => CommandError::usage(format!("one of {named} is no group of {cell}")),
        LoginError::Fixed => CommandError::usage(format!(
            "the login was made without that: to have the rights of {named} again, log in again: andrew login --cell {cell} {}",
            kept.user
        )),
        LoginError::Call(CallError::Abort(AbortCode::LGNNOTRENEWABLE)) => CommandError::usage(format!(
            "this token cannot be renewed, so the rights of {named} come with another login: andrew login --cell {cell} {}",
            kept.user
        )),
        LoginError::Call(CallError::Abort(AbortCode::RX_INVALID_OPERATION | AbortCode::RXGEN_OPCODE)) => {
            CommandError::failed(format!(
                "the login service of {cell} does not know tokens without some groups; nothing was changed"
            ))
        }
        error => CommandError::failed(format!("login service of {cell}: {error}")),
    }
}
