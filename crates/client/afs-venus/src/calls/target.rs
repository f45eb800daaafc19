//! Target and outcome of an attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// What a success of the attempt shows.
    pub evidence: Evidence,
}

impl Target {
    /// Target of an anonymous call.
    pub fn anonymous(server: &Arc<Server>, address: Arc<Address>) -> Target {
        let connection = address.anonymous();
        let (token, evidence) = (TokenId::NONE, Evidence::default());
        Target { server: server.clone(), address, connection, token, evidence }
    }
}

/// Whether an attempt that succeeds shows that the server replies to calls.
#[derive(Clone, Default)]
pub(crate) struct Evidence(Arc<AtomicBool>);

impl Evidence {
    /// The attempt has succeeded without a call. A server of which nothing else is heard must still be probed: only a call
    /// brings breaks of promises that the server could not deliver.
    pub fn without_call(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if a success is one of a call.
    pub fn is_of_call(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
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
    /// True if an earlier change of the same call was one of the same directory: their order is known.
    pub follows: bool,
}

impl<T> CallReply<T> {
    /// The same with another value.
    pub fn with<U>(&self, value: U, follows: bool) -> CallReply<U> {
        let CallReply { serial, started, token, .. } = *self;
        CallReply { value, server: self.server.clone(), serial, started, token, follows }
    }

    /// Origin of a status that came with a promise.
    pub fn origin(&self) -> ReplyOrigin<'_> {
        ReplyOrigin { server: &self.server, serial: self.serial, started: self.started, token: self.token }
    }

    /// Status of an object after a change made by this client.
    pub fn change<'a>(&self, status: &'a Status, sync: &'a VolSync) -> ChangeReply<'a> {
        ChangeReply { status, sync, serial: self.serial }
    }

    /// Status of a directory after a change of its names made by this client.
    pub fn change_of_names<'a>(&self, status: &'a Status, sync: &'a VolSync) -> ChangeReply<'a> {
        // Nothing that was answered in between came between the two.
        let serial = if self.follows { u64::MAX } else { self.serial };
        ChangeReply { status, sync, serial }
    }
}

/// Outcome of a call, and whether an earlier attempt may have been executed although no reply came.
pub(crate) struct CallOutcome<T> {
    pub result: Result<CallReply<T>>,
    pub maybe_executed: bool,
}
