//! Calls of the operations, in the context of the current user.

use std::sync::Arc;

use afs_rpc::{CallError, Instant};
use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::rpc::Request;

use crate::calls::{CallContext, CallOutcome, CallReply, Target, WaitPolicy};
use crate::error::Result;
use crate::identity::User;
use crate::key::{CellIndex, Key};
use crate::location::{Group, Volume};
use crate::venus::{Shared, Venus};

impl Venus {
    /// An anonymous Venus that does not wait for unreachable servers.
    pub(super) fn anonymous(shared: Arc<Shared>) -> Venus {
        Venus { shared, context: CallContext::ANONYMOUS }
    }

    pub(super) fn with_context(&self, context: CallContext) -> Venus {
        Venus { shared: self.shared.clone(), context }
    }

    pub(super) fn as_user(&self, user: User) -> Venus {
        self.with_context(CallContext { user, ..self.context })
    }

    /// The same for a background task.
    pub(super) fn in_background(&self) -> Venus {
        self.with_context(self.context.in_background())
    }

    /// The same without waiting for unreachable servers.
    pub(super) fn without_waiting(&self) -> Venus {
        self.with_context(CallContext { wait: WaitPolicy::NoWait, ..self.context.in_background() })
    }

    /// The same for an operation that has another answer where servers do not reply.
    pub(super) fn glancing(&self) -> Venus {
        let wait = if self.context.wait == WaitPolicy::Wait { WaitPolicy::Glance } else { self.context.wait };
        self.with_context(CallContext { wait, ..self.context })
    }

    /// The same for a call that must not be retried.
    pub(super) fn without_retry(&self) -> Venus {
        self.with_context(CallContext { wait: WaitPolicy::NoRetry, ..self.context.in_background() })
    }

    /// The same for a process that may be killed while it waits for a server.
    pub fn for_process(&self, pid: u32) -> Venus {
        self.with_context(CallContext { process: pid, ..self.context })
    }

    /// Sets the function that tells whether a process is being killed; such a process stops waiting for unreachable
    /// servers. Only the first call has an effect.
    pub fn set_kill_check(&self, killed: fn(u32) -> bool) {
        self.calls.set_kill_check(killed);
    }

    /// Sets the function that tells whether a signal awaits a process; such a process stops waiting for a lock. Only the
    /// first call has an effect.
    pub fn set_signal_check(&self, signalled: fn(u32) -> bool) {
        self.signalled.set(signalled).ok();
    }

    pub(super) fn is_signalled(&self, process: u32) -> bool {
        self.signalled.get().is_some_and(|signalled| signalled(process))
    }

    /// Makes a plain call to a volume's sites.
    pub(super) async fn call<R: Request + Clone>(
        &self,
        volume: &Arc<Volume>,
        request: R,
    ) -> Result<CallReply<R::Reply>>
    where
        R::Reply: Send,
    {
        self.call_tried(volume, request).await.result
    }

    /// The same for calls whose repeated execution must be noticed.
    pub(super) async fn call_tried<R: Request + Clone>(
        &self,
        volume: &Arc<Volume>,
        request: R,
    ) -> CallOutcome<R::Reply>
    where
        R::Reply: Send,
    {
        self.call_about(volume, None, request).await
    }

    /// The same for calls that concern these objects alone, see [`Venus::send_first`].
    pub(super) async fn call_about<R: Request + Clone>(
        &self,
        volume: &Arc<Volume>,
        about: Option<&[Key]>,
        request: R,
    ) -> CallOutcome<R::Reply>
    where
        R::Reply: Send,
    {
        match self.send_first(volume, about).await {
            Ok(()) => self.calls.call(&self.context, volume, request).await,
            Err(error) => CallOutcome { result: Err(error), maybe_executed: false },
        }
    }

    /// Makes attempts at a volume's sites that concern an object, see [`crate::calls::Calls::on_sites`].
    pub(super) async fn on_sites<T, F, Fut>(
        &self,
        volume: &Arc<Volume>,
        about: Key,
        operation: &'static str,
        attempt: F,
    ) -> CallOutcome<T>
    where
        F: FnMut(Target) -> Fut + Send,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        match self.send_first(volume, Some(&[about])).await {
            Ok(()) => self.calls.on_sites(&self.context, volume, operation, attempt).await,
            Err(error) => CallOutcome { result: Err(error), maybe_executed: false },
        }
    }

    /// Finds a volume by its number.
    pub(super) async fn volume(&self, cell: CellIndex, id: VolumeId) -> Result<Arc<Volume>> {
        self.calls.volume(&self.context, cell, id).await
    }

    /// Finds a volume of a group, with its servers.
    pub(super) async fn learn_volume(
        &self,
        cell: CellIndex,
        group: &Arc<Group>,
        id: VolumeId,
        kind: VolumeKind,
    ) -> Result<Arc<Volume>> {
        self.calls.learn_volume(&self.context, cell, group, id, kind).await
    }

    /// Finds the volume group of a name (or decimal number); ENODEV if there is none.
    pub(super) async fn group(&self, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        self.calls.group(&self.context, cell, name).await
    }

    /// The same, ignoring the cache.
    pub(super) async fn group_anew(&self, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        self.calls.group_anew(&self.context, cell, name).await
    }

    pub(super) fn is_closing(&self) -> bool {
        self.calls.is_closing()
    }

    /// The present time, see [`crate::promises::Promises::now`].
    pub(super) fn now(&self) -> Instant {
        self.promises.now()
    }
}
