//! One call: attempts at the sites of a volume until the retry ladder ends.

use std::ops::ControlFlow;
use std::sync::Arc;

use afs_rpc::{CallError, EnvExt};
use afs_wire::rpc::Request;

use crate::calls::attempts::Attempts;
use crate::calls::retry::Step;
use crate::calls::{CallContext, CallOutcome, Calls, Target};
use crate::error::ErrorKind;
use crate::location::Volume;

impl Calls {
    /// Makes a plain call to a volume's sites.
    pub async fn call<R: Request + Clone>(
        &self,
        context: &CallContext,
        volume: &Arc<Volume>,
        request: R,
    ) -> CallOutcome<R::Reply>
    where
        R::Reply: Send,
    {
        self.on_sites(context, volume, R::NAME, |target| {
            let request = request.clone();
            async move { target.connection.call(&request).await }
        })
        .await
    }

    /// Makes attempts at a volume's sites until the retry ladder ends.
    pub async fn on_sites<T, F, Fut>(
        &self,
        context: &CallContext,
        volume: &Arc<Volume>,
        operation: &'static str,
        mut attempt: F,
    ) -> CallOutcome<T>
    where
        F: FnMut(Target) -> Fut + Send,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        let began = self.now();
        self.check_location(context, volume).await;
        let mut attempts = Attempts::new(self, (context, volume), operation, began);
        let mut step = attempts.first();
        loop {
            step = match step {
                Step::Try { site, address } => {
                    let at = (site, address);
                    let Some((target, hedged)) = attempts.target(at) else {
                        return attempts.failed(ErrorKind::ServerUnreachable);
                    };
                    let result = self.attempt(&target, operation, hedged, &mut attempt).await;
                    match attempts.tried(&target, at, result) {
                        ControlFlow::Continue(next) => next,
                        ControlFlow::Break(outcome) => return outcome,
                    }
                }
                Step::Pause(pause) => {
                    tracing::debug!(volume = %volume.id, operation, "waiting for a busy volume");
                    self.parts.env.sleep(self.with_jitter(pause)).await;
                    attempts.paused()
                }
                Step::AwaitServer(most) => {
                    let is_reachable = self.await_reachable(context, volume, most).await;
                    attempts.waited(is_reachable)
                }
                Step::Relocate => {
                    let changed = self.relocate_within(context, volume, attempts.is_silent()).await;
                    attempts.relocated(changed)
                }
                Step::Reply(code) => return attempts.refused(code),
                Step::Fail(kind) => return attempts.failed(kind),
            };
        }
    }
}
