//! Where an attempt goes, and what came of it.

use std::sync::Arc;

use afs_rpc::{Connection, Instant};
use afs_wire::fs::{Status, VolSync};

use crate::error::Result;
use crate::identity::TokenId;
use crate::location::{Address, Server};
use crate::promises::{ChangeReply, ReplyOrigin};

/// Where one attempt goes.
#[derive(Clone)]
pub(crate) struct Target {
    pub server: Arc<Server>,
    pub address: Arc<Address>,
    /// To that address, for whoever it is made for.
    pub connection: Connection,
    /// What proves who that is.
    pub token: TokenId,
}

impl Target {
    /// A call that nobody in particular makes.
    pub fn anonymous(server: &Arc<Server>, address: Arc<Address>) -> Target {
        let connection = address.anonymous();
        Target { server: server.clone(), address, connection, token: TokenId::NONE }
    }
}

/// What came of it, and what is needed to judge the promise in it.
pub(crate) struct CallReply<T> {
    pub value: T,
    pub server: Arc<Server>,
    /// The number of the last break before the call began.
    pub serial: u64,
    /// When it began.
    pub started: Instant,
    /// For whom it was made: whose rights it tells.
    pub token: TokenId,
}

impl<T> CallReply<T> {
    /// Of a status that came with a promise.
    pub fn origin(&self) -> ReplyOrigin<'_> {
        ReplyOrigin { server: &self.server, serial: self.serial, started: self.started, token: self.token }
    }

    /// Of the status that a change of ours has left.
    pub fn change<'a>(&self, status: &'a Status, sync: &'a VolSync) -> ChangeReply<'a> {
        ChangeReply { status, sync, serial: self.serial }
    }
}

/// The outcome, and whether an earlier attempt may have been carried out although no answer came.
pub(crate) struct CallOutcome<T> {
    pub result: Result<CallReply<T>>,
    pub maybe_executed: bool,
}
