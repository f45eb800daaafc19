//! Target and outcome of an attempt.

use std::sync::Arc;

use afs_rpc::{Connection, Instant};
use afs_wire::fs::{Status, VolSync};

use crate::error::Result;
use crate::identity::TokenId;
use crate::location::{Address, Server};
use crate::promises::{ChangeReply, ReplyOrigin};

/// Target of one attempt.
#[derive(Clone)]
pub(crate) struct Target {
    pub server: Arc<Server>,
    pub address: Arc<Address>,
    /// Connection to the address, with the security of the caller.
    pub connection: Connection,
    /// Token of the caller.
    pub token: TokenId,
}

impl Target {
    /// Target of an anonymous call.
    pub fn anonymous(server: &Arc<Server>, address: Arc<Address>) -> Target {
        let connection = address.anonymous();
        Target { server: server.clone(), address, connection, token: TokenId::NONE }
    }
}

/// Reply to a call, with what is needed to validate a promise in it.
pub(crate) struct CallReply<T> {
    pub value: T,
    pub server: Arc<Server>,
    /// Number of the last break before the call began.
    pub serial: u64,
    /// When the call began.
    pub started: Instant,
    /// Token with which the call was made: its owner's rights are in the reply.
    pub token: TokenId,
}

impl<T> CallReply<T> {
    /// Origin of a status that came with a promise.
    pub fn origin(&self) -> ReplyOrigin<'_> {
        ReplyOrigin { server: &self.server, serial: self.serial, started: self.started, token: self.token }
    }

    /// Status of an object after a change made by this client.
    pub fn change<'a>(&self, status: &'a Status, sync: &'a VolSync) -> ChangeReply<'a> {
        ChangeReply { status, sync, serial: self.serial }
    }
}

/// Outcome of a call, and whether an earlier attempt may have been executed although no reply came.
pub(crate) struct CallOutcome<T> {
    pub result: Result<CallReply<T>>,
    pub maybe_executed: bool,
}
