//! The client's end: asks the login service for tokens, and changes how users log in.

mod error;
mod keep;
mod manage;
mod passphrase;
mod renew;
mod ssh;

use std::future::Future;

use afs_rpc::{CallError, Connection, Level};
use afs_wire::ids::CellName;
use afs_wire::login::Wish;
use afs_wire::rpc::Request;

use crate::user::UserName;

pub use error::LoginError;
pub use keep::{Kept, keep};
pub use manage::{
    PASSPHRASE_LEN_MIN, add_ssh_key, list_ways, register_passphrase, remove_passphrase, remove_ssh_key,
};
pub use passphrase::login_with_passphrase;
pub use renew::renew;
pub use ssh::login_with_ssh;

/// A way to the login service.
pub trait Ask: Send + Sync {
    /// Asks and waits for the answer.
    fn ask<R: Request>(&self, request: &R) -> impl Future<Output = Result<R::Reply, CallError>> + Send;
}

impl Ask for Connection {
    fn ask<R: Request>(&self, request: &R) -> impl Future<Output = Result<R::Reply, CallError>> + Send {
        self.call(request)
    }
}

/// Who logs in where, and what he wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Login {
    /// The cell. A service of another one cannot give a token.
    pub cell: CellName,
    /// The user.
    pub user: UserName,
    /// Seconds until the token ends; 0 leaves it to the cell, which may also give less.
    pub lifetime: u32,
    /// How connections made with the token are protected.
    pub level: Level,
}

impl Login {
    /// A login with the cell's own lifetime, and connections that nobody can read.
    #[must_use]
    pub fn new(cell: CellName, user: UserName) -> Self {
        Self { cell, user, lifetime: 0, level: Level::Crypt }
    }

    fn wish(&self) -> Wish {
        Wish { lifetime: self.lifetime, level: self.level.number().into() }
    }
}
