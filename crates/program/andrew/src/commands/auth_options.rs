//! Options for the identity with which a command calls the servers of a cell over the network.

use crate::error::{CommandError, CommandResult};
use crate::running_cells;
use afs_auth::Token;
use afs_auth::keys::KeyRing;
use afs_auth::rxgk::{self, Variant};
use afs_auth::rxkad;
use afs_cell::key_store::KeyStore;
use afs_cell::person;
use afs_cell::tokens::{KeptToken, TokenStore};
use afs_files::secret_file;
use afs_net::System;
use afs_rpc::{Level, Security, UnixTime};
use afs_wire::ids::CellName;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Identity of calls: by default the user's token of the cell, if there is one.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct AuthOptions {
    /// With --servers: make anonymous calls, even with a token
    #[arg(long, global = true)]
    noauth: bool,
    /// With --servers: authenticate as the cell itself, with its key file
    #[arg(long, global = true, conflicts_with = "noauth")]
    localauth: bool,
    /// Key file for --localauth [default: keys/KeyFileExt of the state directory, or OpenAFS's on a server]
    #[arg(long, value_name = "FILE", global = true)]
    key_file: Option<PathBuf>,
    /// Accepted for scripts: calls are always encrypted if possible
    #[arg(long, global = true, hide = true)]
    encrypt: bool,
    /// Accepted for scripts
    #[arg(long, global = true, hide = true)]
    auth: bool,
}

/// Key file of OpenAFS's servers on Debian.
const OPENAFS_KEY_FILE: &str = "/etc/openafs/server/KeyFileExt";

impl AuthOptions {
    /// Security for calls to the servers of a cell. If the cell's name is unknown, a token that was obtained from one
    /// of these servers is used.
    ///
    /// # Errors
    /// A token or key file cannot be read or is not safe, or has no key for a token.
    pub(crate) fn security(
        &self,
        system: &Arc<System>,
        cell: Option<&CellName>,
        servers: &[Ipv4Addr],
    ) -> CommandResult<Security> {
        let token = match (self.noauth, self.localauth) {
            (true, _) => None,
            (_, true) => return local_security(system, &key_file(self.key_file.as_deref())?),
            _ => kept_token(system.env().wall(), cell, servers)?,
        };
        let source = token.map(|token| token.source(system.env()));
        Ok(source.map_or_else(Security::null, Security::new))
    }
}

/// Security of the cell itself from a key file, for the person who runs this process.
///
/// # Errors
/// The file does not exist, is not safe, is damaged, or has no key for a token.
pub(crate) fn local_security(system: &Arc<System>, path: &Path) -> CommandResult<Security> {
    let token = local_token(system, path)?;
    Ok(Security::new(token.source_for(system.env(), person::of_process())))
}

fn local_token(system: &Arc<System>, path: &Path) -> CommandResult<Token> {
    let keys = key_ring(path)?;
    let env = system.env();
    rxgk::local_token(&keys, Variant::OpenAfs, Level::Crypt, &env)
        .map(Token::Rxgk)
        .or_else(|| rxkad::local_token(&keys, &env, Level::Crypt).map(Token::Rxkad))
        .ok_or_else(|| no_key(path))
}

/// Path of the key file: the given one, or that of the state directory, or OpenAFS's.
///
/// # Errors
/// There is no home directory for the default.
pub fn key_file(given: Option<&Path>) -> CommandResult<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let own = KeyStore::of(running_cells::of_process(None)?.path()).path().to_owned();
    Ok(if own.exists() { own } else { Path::new(OPENAFS_KEY_FILE).to_owned() })
}

/// Reads the keys of a file.
///
/// # Errors
/// The file does not exist, is not safe, or is damaged.
pub fn key_ring(path: &Path) -> CommandResult<KeyRing> {
    let shown = path.display();
    let bytes = secret_file::read(path)?.ok_or_else(|| {
        CommandError::usage(format!("{shown} does not exist; name the cell's KeyFileExt with --key-file"))
    })?;
    KeyRing::from_key_file_ext(&bytes).map_err(|e| CommandError::usage(format!("{shown}: {e}")))
}

/// Error for a key file without a key of the required kind.
pub fn no_key(path: &Path) -> CommandError {
    CommandError::usage(format!("{} has no key to make a token with", path.display()))
}

/// Whether the user, or this session, has a token of a cell that is without some groups. Then commands make their calls
/// with it, and not as the owner of the cell that runs here, who has all rights.
///
/// # Errors
/// The token's file cannot be read, or is not safe.
pub(crate) fn is_without_groups(cell: &CellName) -> CommandResult<bool> {
    // Without a home directory there is no token.
    let Ok(store) = TokenStore::current() else { return Ok(false) };
    Ok(store.get(cell)?.is_some_and(|kept| !kept.grant.without.is_empty()))
}

/// The user's valid token of a cell, or the one obtained from one of these servers.
fn kept_token(now: UnixTime, cell: Option<&CellName>, servers: &[Ipv4Addr]) -> CommandResult<Option<Token>> {
    let is_of_cell = |kept: &KeptToken| match cell {
        Some(cell) => kept.cell == *cell,
        None => kept.servers.iter().any(|server| servers.contains(server)),
    };
    let all = TokenStore::current()?.all()?;
    Ok(all.into_iter().find(|kept| is_of_cell(kept) && kept.is_good_at(now)).map(|kept| kept.grant.token))
}
