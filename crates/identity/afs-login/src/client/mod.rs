//! Login client: obtains tokens from the login service, and changes how users log in.

mod cache_key;
mod error;
mod groups;
mod manage;
mod passphrase;
mod renew;
mod renewal_loop;
mod ssh;

use std::future::Future;

use afs_rpc::{CallError, Connection, Level};
use afs_wire::ids::CellName;
use afs_wire::login::Wish;
use afs_wire::rpc::Request;

use crate::user::UserName;

pub use cache_key::cache_key;
pub use error::LoginError;
pub use groups::{GroupChange, change_groups};
pub use manage::{
    PASSPHRASE_LEN_MIN, Revoked, add_ssh_key, list_ways, register_passphrase, remove_passphrase,
    remove_ssh_key, revoke,
};
pub use passphrase::login_with_passphrase;
pub use renew::renew;
pub use renewal_loop::{Kept, keep};
pub use ssh::login_with_ssh;

/// A route to the login service.
pub trait Ask: Send + Sync {
    /// Sends a request and waits for the reply.
    fn ask<R: Request>(&self, request: &R) -> impl Future<Output = Result<R::Reply, CallError>> + Send;
}

impl Ask for Connection {
    fn ask<R: Request>(&self, request: &R) -> impl Future<Output = Result<R::Reply, CallError>> + Send {
        self.call(request)
    }
}

/// Parameters of a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Login {
    /// The cell. A service of another cell cannot issue a token.
    pub cell: CellName,
    /// The user.
    pub user: UserName,
    /// Lifetime of the token in seconds; 0 leaves it to the cell, which may also grant less.
    pub lifetime: u32,
    /// Protection level of the token's connections.
    pub level: Level,
}

impl Login {
    /// A login with the cell's own lifetime, and encrypted connections.
    #[must_use]
    pub fn new(cell: CellName, user: UserName) -> Self {
        Self { cell, user, lifetime: 0, level: Level::Crypt }
    }

    fn wish(&self) -> Wish {
        Wish { lifetime: self.lifetime, level: self.level.number().into() }
    }
}
