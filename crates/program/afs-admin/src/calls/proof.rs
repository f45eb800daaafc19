//! Check that a transaction id still belongs to the same transaction.
//!
//! OpenAFS's volume server numbers transactions from 1 on each time it starts (`docs/protocol/volserver.md`
//! "4. Transactions"). A tool that continues with an id after a restart may meet another user's volume under
//! it, and take that off line, overwrite or delete it. So may a call that is sent again: each is proven to be a transaction's shortly before, and
//! sent again shortly.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{CallError, Connection, Instant};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::rpc::Request;
use afs_wire::vol::GetStatus;
use parking_lot::Mutex;

use super::transaction::Transaction;
use crate::Admin;
use crate::error::{AdminError, AdminResult};

/// No server restarts and assigns as many ids in the sum of these times: from a proof to a call, and from there to the last repetition of its
/// request.
const FRESH: Duration = Duration::from_millis(500);
const REPEATED: Duration = Duration::from_millis(500);

/// Time of the last check.
#[derive(Clone, Debug)]
pub(super) struct Proof(Arc<Mutex<Instant>>);

impl Proof {
    pub(super) fn new(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    fn is_fresh(&self, now: Instant) -> bool {
        now < *self.0.lock() + FRESH
    }

    fn renew(&self, now: Instant) {
        *self.0.lock() = now;
    }
}

impl Admin {
    /// A volume server, for calls with a transaction's number.
    pub(crate) fn transaction_server(&self, server: Ipv4Addr) -> Connection {
        self.volume_server(server).repeating_for(REPEATED)
    }
}

impl Transaction {
    /// Checks, right before a call on the transaction, that it is the one that was opened.
    ///
    /// # Errors
    /// It is not, or its server does not say.
    pub(crate) async fn prove(&self, what: &str) -> AdminResult {
        if self.stands().await.map_err(|error| self.failed(what, error))? {
            return Ok(());
        }
        // As if the server had replied that it no longer knows the transaction.
        Err(self.failed(what, CallError::Abort(GONE)).with_hint("the server was restarted meanwhile"))
    }

    /// Whether the id is still this transaction's.
    pub(super) async fn stands(&self) -> Result<bool, CallError> {
        if self.proof.is_fresh(self.admin.env().now()) {
            return Ok(true);
        }
        let reply = self.server().call(&GetStatus { transaction: self.id }).await?;
        Ok(reply.status.id == self.volume)
    }

    /// The server, for calls with this transaction's number.
    pub(crate) fn server(&self) -> Connection {
        self.admin.transaction_server(self.place.server)
    }

    /// A call, with the check that its reply is this transaction's.
    pub(super) async fn ask<R: Request>(&self, request: &R) -> Result<R::Reply, CallError> {
        let reply = self.server().call(request).await?;
        self.proof.renew(self.admin.env().now());
        Ok(reply)
    }

    pub(super) fn failed(&self, what: &str, error: CallError) -> AdminError {
        let doing = format!("Could not {what} volume {} on {}", self.volume, self.place);
        AdminError::call(doing, Some(self.place.server), error)
    }
}

/// The code of a server that does not know a transaction.
pub(super) const GONE: AbortCode = AbortCode(Errno::ENOENT as i32);
