//! Change of the cell's keys in two phases: first every server has a key, then it is used.
//!
//! Each step is repeatable, and at each point all servers open what any of them seals: a change that was interrupted is
//! ended by the same one again.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Security};
use afs_wire::bos::{CellKeys, CellKeysReply, HeldKey, KeyStep};
use afs_wire::error::AbortCode;
use afs_wire::rpc::ServiceId;
use afs_wire::xdr::ByteString;

use crate::Admin;
use crate::error::{AdminError, AdminResult};

/// Offset of the overseer's port from that of the file service.
const OVERSEER: u16 = 7;
/// Dead time of a server that is asked for its keys.
const DEAD: Duration = Duration::from_secs(6);
const DOING: &str = "keys of the cell";

/// The servers whose keys are changed.
#[derive(Clone, Debug)]
pub struct KeyHolders {
    /// Their addresses. The one that must have a key before the others comes first.
    pub servers: Vec<Ipv4Addr>,
    /// Security in the name of the cell, encrypted: one for each key, the newest first. A server that was away knows an earlier
    /// one alone.
    pub securities: Vec<Security>,
}

/// Keys that every server is to have, and to use.
pub struct WantedKeys<'a> {
    /// Their numbers and digests.
    pub keys: Vec<HeldKey>,
    /// Seals the keys for the share of a server.
    pub seal: &'a (dyn Fn([u8; 32]) -> Option<Vec<u8>> + Send + Sync),
}

impl std::fmt::Debug for WantedKeys<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WantedKeys").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl Admin {
    /// The keys of a server.
    ///
    /// # Errors
    /// It does not reply, or knows none of the keys or not the call.
    pub async fn held_keys(&self, holders: &KeyHolders, server: Ipv4Addr) -> AdminResult<CellKeysReply> {
        self.key_step(holders, server, step(KeyStep::LIST, 1, 0)).await
    }

    /// Gives keys to every server, and when all have them makes each use them.
    ///
    /// # Errors
    /// A server does not reply, or has another key of these numbers. Before the first one uses a key nothing has changed but
    /// what servers open; after it the same call again ends what was begun.
    pub async fn spread_keys(&self, holders: &KeyHolders, wanted: &WantedKeys<'_>) -> AdminResult {
        for server in &holders.servers {
            self.offer_keys(holders, wanted, *server).await?;
        }
        for server in &holders.servers {
            let held = self.held_keys(holders, *server).await?;
            if let Some(missing) = wanted.keys.iter().find(|key| !has(&held, key)) {
                let number = missing.number;
                return Err(AdminError::failed(
                    DOING,
                    format!("server {server} has lost key {number} again"),
                ));
            }
        }
        for server in &holders.servers {
            for key in &wanted.keys {
                self.key_step(holders, *server, step(KeyStep::USE, key.kind, key.number)).await?;
            }
        }
        Ok(())
    }

    async fn offer_keys(
        &self,
        holders: &KeyHolders,
        wanted: &WantedKeys<'_>,
        server: Ipv4Addr,
    ) -> AdminResult {
        let held = self.held_keys(holders, server).await?;
        if wanted.keys.iter().all(|key| has(&held, key)) {
            return Ok(());
        }
        let sealed = (wanted.seal)(held.share.0).and_then(|sealed| ByteString::new(sealed).ok());
        let sealed = sealed
            .ok_or_else(|| AdminError::failed(DOING, format!("nothing can be sealed for server {server}")))?;
        let offer = CellKeys { sealed, ..step(KeyStep::OFFER, 1, 0) };
        self.key_step(holders, server, offer).await.map(drop)
    }

    /// Removes the used keys of a kind and number from a server.
    ///
    /// # Errors
    /// As [`Admin::held_keys`]; or it would be without a key of rxgk.
    pub async fn remove_keys(
        &self,
        holders: &KeyHolders,
        server: Ipv4Addr,
        (kind, number): (u32, u32),
    ) -> AdminResult {
        self.key_step(holders, server, step(KeyStep::REMOVE, kind, number)).await.map(drop)
    }

    /// Makes a server forget coming keys of a kind and number.
    ///
    /// # Errors
    /// As [`Admin::held_keys`].
    pub async fn drop_keys(
        &self,
        holders: &KeyHolders,
        server: Ipv4Addr,
        (kind, number): (u32, u32),
    ) -> AdminResult {
        self.key_step(holders, server, step(KeyStep::DROP, kind, number)).await.map(drop)
    }

    async fn key_step(
        &self,
        holders: &KeyHolders,
        server: Ipv4Addr,
        call: CellKeys,
    ) -> AdminResult<CellKeysReply> {
        let peer = SocketAddr::from((server, self.cell().file_port.saturating_add(OVERSEER)));
        let mut refused = CallError::Closed;
        for security in &holders.securities {
            let overseer = self.rx().connection(peer, ServiceId::OVERSEER, security.clone());
            let overseer = overseer.with_options(CallOptions { dead: Some(DEAD), hard: None });
            match overseer.call(&call).await {
                Ok(reply) => return Ok(reply),
                Err(error) if error.abort_code().is_some_and(AbortCode::is_of_security) => refused = error,
                Err(error) => return Err(told(server, error)),
            }
        }
        Err(told(server, refused))
    }
}

fn step(step: KeyStep, kind: u32, number: u32) -> CellKeys {
    CellKeys { step, kind, number, sealed: ByteString::empty() }
}

fn has(held: &CellKeysReply, wanted: &HeldKey) -> bool {
    held.keys.iter().any(|key| HeldKey { coming: wanted.coming, ..*key } == *wanted)
}

fn told(server: Ipv4Addr, error: CallError) -> AdminError {
    let hint = match error.abort_code() {
        Some(AbortCode::BZKEYINUSE) => {
            "another change of the keys was begun: end it on the host where it was begun, or `andrew key forget`"
        }
        Some(AbortCode::RXGEN_OPCODE) => {
            "this server keeps its keys by itself: copy the key file to it, and name it with --without"
        }
        Some(code) if code.is_of_security() => {
            "it has none of these keys: copy keys/KeyFileExt to it, or name it with --without"
        }
        Some(_) => "the log of that server says more",
        None => "start it, or go on without it with --without; it gets the keys by the same command later",
    };
    AdminError::call(DOING, Some(server), error).with_hint(hint)
}
