//! Keys of the host: listed and changed step by step, by holders of the cell's key.

use std::fmt;
use std::sync::Arc;

use afs_rpc::{BoxFuture, Caller, Class, Level, Principal, Protection, Table};
use afs_wire::bos::{CellKeys, CellKeysReply};
use afs_wire::error::AbortCode;

use super::{BosServer, Server};
use crate::guard::{Required, row};

/// The keys of a host.
pub trait KeyKeeper: Send + Sync + fmt::Debug + 'static {
    /// Makes a step, which is durable when it ends, and lists the keys.
    fn step(self: Arc<Self>, call: CellKeys) -> BoxFuture<'static, Result<CellKeysReply, AbortCode>>;
}

pub(super) fn add(table: Table<BosServer>) -> Table<BosServer> {
    row(table, Required::AnyConnection, |server: Server, caller: Caller, call: CellKeys| async move {
        check(&caller)?;
        let keys = server.keys.clone().ok_or(AbortCode::RXGEN_OPCODE)?;
        keys.step(call).await
    })
}

/// An administrator with a token has all rights, but not the key: with it the rights would outlive the token.
fn check(caller: &Caller) -> Result<(), AbortCode> {
    if caller.identity.principal() != Some(&Principal::CellKey) {
        return Err(AbortCode::BZACCESS);
    }
    let encrypted = Protection { class: Class::Rxgk, level: Level::Crypt };
    if caller.identity.protection() == encrypted { Ok(()) } else { Err(AbortCode::BZENCREQ) }
}
