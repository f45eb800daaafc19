//! Security options of a load: anonymous calls, or calls with the cell's key in a selected class and level.

use afs_auth::Token;
use afs_auth::keys::{CellKey, KeyRing};
use afs_auth::rxgk::{self, Variant};
use afs_auth::rxkad;
use afs_net::System;
use afs_rpc::{Security, SecuritySource};
use afs_rx::{ClientSecurity, NullClient};
use andrew::commands::auth_options::{key_file, key_ring, no_key};
use andrew::error::CommandResult;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Security class, level and key of the calls.
#[derive(clap::Args, Debug)]
pub(crate) struct CallSecurity {
    /// Security class of the calls; all but null make a token with the cell's key
    #[arg(long, value_name = "CLASS", default_value = "null")]
    security: Class,
    /// Protection of what is sent, for rxkad and rxgk
    #[arg(long, value_name = "LEVEL", default_value = "crypt")]
    level: Level,
    /// Key file of the cell [default: keys/KeyFileExt of the state directory, or OpenAFS's on a server]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Encryption type of the key, which rxgk also protects packets with: 20, 18 [default: the best there is]
    #[arg(long, value_name = "NUMBER")]
    enctype: Option<i32>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Class {
    Null,
    Rxkad,
    Rxgk,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Level {
    Clear,
    Auth,
    Crypt,
}

impl From<Level> for afs_rpc::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Clear => Self::Clear,
            Level::Auth => Self::Auth,
            Level::Crypt => Self::Crypt,
        }
    }
}

/// Source of the client's half of each connection; `None`: unauthenticated.
pub(super) type Source = Option<Arc<dyn SecuritySource>>;

impl CallSecurity {
    /// Source for the selected class.
    ///
    /// # Errors
    /// The key file does not exist, is not safe, or has no key of the class.
    pub(super) fn source(&self, system: &Arc<System>) -> CommandResult<Source> {
        if matches!(self.security, Class::Null) {
            return Ok(None);
        }
        let path = key_file(self.key_file.as_deref())?;
        let (env, level) = (system.env(), self.level.into());
        let keys = self.keys_of_type(key_ring(&path)?);
        let token = match self.security {
            Class::Rxkad => rxkad::local_token(&keys, &env, level).map(Token::Rxkad),
            _ => rxgk::local_token(&keys, Variant::OpenAfs, level, &env).map(Token::Rxgk),
        };
        Ok(Some(token.ok_or_else(|| no_key(&path))?.source(env)))
    }

    fn keys_of_type(&self, mut keys: KeyRing) -> KeyRing {
        let of_other = |key: &&CellKey| self.enctype.is_some_and(|wanted| key.enctype != wanted);
        let others: Vec<CellKey> = keys.iter().filter(of_other).cloned().collect();
        for key in others {
            keys.remove(key.kind, key.kvno, key.enctype);
        }
        keys
    }
}

/// Security of connections that are shared.
pub(super) fn shared(source: &Source) -> Security {
    source.clone().map_or_else(Security::null, Security::new)
}

/// Security of a connection that is not shared.
pub(super) fn fresh(source: &Source) -> Security {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Security::new(Arc::new(DistinctSource { source: source.clone(), number }))
}

struct DistinctSource {
    source: Source,
    number: u64,
}

impl SecuritySource for DistinctSource {
    fn name(&self) -> String {
        let name = self.source.as_ref().map(|source| source.name()).unwrap_or_default();
        format!("{name} {}", self.number)
    }

    fn session(&self) -> Box<dyn ClientSecurity> {
        self.source.as_ref().map_or_else(|| Box::new(NullClient) as _, |source| source.session())
    }
}
