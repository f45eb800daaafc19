//! Shared handle on the state of a connection, for its driver and its requests.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Waker;

use afs_env::sync::Notify;
use afs_env::{EnvRef, Instant};
use bytes::Bytes;
use parking_lot::Mutex;

use super::request::Reply;
use super::state::{Side, State};
use super::{Error, Lost};
use crate::frame::{Message, RequestId};

/// A handle on the state of a connection.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    env: EnvRef,
    state: Mutex<State>,
    ended: Notify,
}

impl Link {
    pub fn new(env: EnvRef, side: Side) -> Self {
        let state = Mutex::new(State::new(side, env.now()));
        Self(Arc::new(Shared { env, state, ended: Notify::new() }))
    }

    pub fn env(&self) -> &EnvRef {
        &self.0.env
    }

    pub fn now(&self) -> Instant {
        self.0.env.now()
    }

    /// Works on the state, then wakes without the lock who is to be woken: a task may run where it is woken.
    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let (done, woken) = {
            let mut state = self.0.state.lock();
            (work(&mut state), state.take_woken())
        };
        woken.into_iter().for_each(Waker::wake);
        done
    }

    /// The connection has ended.
    pub fn lose(&self, lost: Lost) {
        self.with(|state| state.lose(lost));
        self.0.ended.notify_waiters();
    }

    pub fn lost(&self) -> Option<Lost> {
        self.with(|state| state.lost().cloned())
    }

    /// Completes when the connection has ended.
    pub async fn ended(&self) -> Lost {
        loop {
            let ended = self.0.ended.notified();
            if let Some(lost) = self.lost() {
                return lost;
            }
            ended.await;
        }
    }

    pub async fn reply(&self, id: RequestId) -> Result<Reply, Error> {
        poll_fn(|cx| self.with(|state| state.poll_reply(id, cx))).await
    }

    /// Completes when a request of a drive is over before it was served: the client has given it up, or is gone.
    pub async fn gone(&self, id: RequestId) -> Error {
        poll_fn(|cx| self.with(|state| state.poll_gone(id, cx))).await
    }

    pub async fn take(&self, id: RequestId) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| {
            let now = self.now();
            self.with(|state| state.poll_take(id, now, cx))
        })
        .await
    }

    pub async fn wanted(&self, id: RequestId) -> Result<usize, Error> {
        poll_fn(|cx| self.with(|state| state.poll_wanted(id, cx))).await
    }

    pub async fn room(&self, id: RequestId) -> Result<(), Error> {
        poll_fn(|cx| self.with(|state| state.poll_room(id, cx))).await
    }

    pub async fn sent(&self, id: RequestId) -> Result<(), Error> {
        poll_fn(|cx| self.with(|state| state.poll_sent(id, cx))).await
    }

    pub async fn drained(&self, id: RequestId) -> Result<(), Error> {
        poll_fn(|cx| self.with(|state| state.poll_drained(id, cx))).await
    }

    /// Ends a stream whose last byte has been queued.
    pub async fn end_stream(&self, id: RequestId) -> Result<(), Error> {
        self.drained(id).await?;
        let now = self.now();
        self.with(|state| state.end_stream(id, now))
    }

    /// A drive has ended a request.
    pub fn end(&self, id: RequestId, message: Option<&Message>) {
        let now = self.now();
        self.with(|state| state.end(id, message, now));
    }
}
