//! Key of the encrypted cache of a mount: the cell's login service gives it for the token that the user has kept.

use crate::commands::login::service::Network;
use crate::error::{CommandError, CommandResult};
use afs_auth::Token;
use afs_cell::tokens::{KeptToken, TokenStore, cache_key};
use afs_login::client::LoginError;
use afs_rpc::{CallError, EnvExt};
use afs_venus::CacheSecret;
use afs_wire::error::AbortCode;
use afs_wire::ids::CellName;
use std::net::Ipv4Addr;

/// The key of the user who has logged in to a cell.
///
/// # Errors
/// Nobody has, or by Kerberos; the login service does not reply, or refuses.
pub(super) fn cache_secret(
    cell: &CellName,
    servers: &[Ipv4Addr],
    base_port: u16,
) -> CommandResult<CacheSecret> {
    let network = Network::open()?;
    let login = login_command(cell, servers);
    let now = network.system.env().wall();
    // Names of cells are not unique.
    let is_of = |kept: &KeptToken| {
        kept.base_port == base_port && kept.servers.iter().any(|server| servers.contains(server))
    };
    let kept = TokenStore::current()?.get(cell)?.filter(|kept| kept.is_good_at(now) && is_of(kept));
    let Some(kept) = kept.filter(|kept| matches!(kept.token(), Token::Rxgk(_))) else {
        return Err(CommandError::usage(format!(
            "the cache opens with the key of your login, and you have none in {cell}; log in first: {login}"
        )));
    };
    let asked = network.system.block_on(cache_key(network.udp.rx(), &kept));
    let key = asked.map_err(|error| refused(&kept, &login, &error))?;
    let key = <[u8; 32]>::try_from(key.expose())
        .map_err(|_| CommandError::failed(format!("login service of {cell}: a key of another length")))?;
    Ok(CacheSecret::new(cell.clone(), kept.user, key, network.system.random_bytes()))
}

fn login_command(cell: &CellName, servers: &[Ipv4Addr]) -> String {
    let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
    format!("andrew login YOU --cell {cell} --servers {}", servers.join(","))
}

fn refused(kept: &KeptToken, login: &str, error: &LoginError) -> CommandError {
    let (user, cell) = (&kept.user, &kept.cell);
    match error {
        LoginError::Call(CallError::Abort(AbortCode::RXGKEXPIRED)) => CommandError::failed(format!(
            "the token of {user} in {cell} counts no more, so its cache does not open; log in again: {login}"
        )),
        LoginError::Call(CallError::Abort(AbortCode::RX_INVALID_OPERATION | AbortCode::RXGEN_OPCODE)) => {
            CommandError::failed(format!(
                "the login service of {cell} gives no keys for caches: it is an earlier one"
            ))
        }
        LoginError::Call(error) if error.is_silence() => CommandError::failed(format!(
            "no login service of {cell} replies, and without it the encrypted cache of {user} does not open"
        )),
        error => CommandError::failed(format!("login service of {cell}: {error}")),
    }
}
