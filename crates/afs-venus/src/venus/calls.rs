//! Calls as the operations make them: for the one we speak for.

use std::sync::Arc;

use afs_rpc::{CallError, Instant};
use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::rpc::Request;

use crate::asking::{Answered, Asker, Manner, Target, Tried};
use crate::error::Result;
use crate::identity::Who;
use crate::key::CellIndex;
use crate::location::{Group, Volume};
use crate::venus::{Shared, Venus};

impl Venus {
    /// Speaking for nobody in particular, who waits for no server that is away.
    pub(super) fn nobody(shared: Arc<Shared>) -> Venus {
        Venus { shared, asker: Asker::NOBODY }
    }

    fn asking_as(&self, asker: Asker) -> Venus {
        Venus { shared: self.shared.clone(), asker }
    }

    pub(super) fn speaking_for(&self, who: Who) -> Venus {
        self.asking_as(Asker { who, ..self.asker })
    }

    /// For a task of its own.
    pub(super) fn again(&self) -> Venus {
        self.asking_as(self.asker.alone())
    }

    /// The same, waiting for no server that is away.
    pub(super) fn hasty(&self) -> Venus {
        self.asking_as(Asker { manner: Manner::Hasty, ..self.asker.alone() })
    }

    /// The same, for a call that must not be made twice.
    pub(super) fn once(&self) -> Venus {
        self.asking_as(Asker { manner: Manner::Once, ..self.asker.alone() })
    }

    /// The same, for a process that may be killed while it waits for a server.
    pub fn asked_by(&self, pid: u32) -> Venus {
        self.asking_as(Asker { process: pid, ..self.asker })
    }

    /// Says how to learn whether a process is being killed: one that waits for a server that is away waits no longer then.
    /// Counts once.
    pub fn heed_kills(&self, killed: fn(u32) -> bool) {
        self.asking.heed_kills(killed);
    }

    /// Makes a plain call to a volume's sites.
    pub(super) async fn call<R: Request + Clone>(
        &self,
        volume: &Arc<Volume>,
        request: R,
    ) -> Result<Answered<R::Reply>>
    where
        R::Reply: Send,
    {
        self.call_tried(volume, request).await.result
    }

    /// The same, for calls that must not be carried out twice without noticing.
    pub(super) async fn call_tried<R: Request + Clone>(
        &self,
        volume: &Arc<Volume>,
        request: R,
    ) -> Tried<R::Reply>
    where
        R::Reply: Send,
    {
        self.asking.call(&self.asker, volume, request).await
    }

    /// Makes attempts at a volume's sites, see [`crate::asking::Asking::on_sites`].
    pub(super) async fn on_sites<T, F, Fut>(
        &self,
        volume: &Arc<Volume>,
        operation: &'static str,
        attempt: F,
    ) -> Tried<T>
    where
        F: FnMut(Target) -> Fut + Send,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        self.asking.on_sites(&self.asker, volume, operation, attempt).await
    }

    /// A volume by its number.
    pub(super) async fn volume(&self, cell: CellIndex, id: VolumeId) -> Result<Arc<Volume>> {
        self.asking.volume(&self.asker, cell, id).await
    }

    /// A volume of a group, with its servers.
    pub(super) async fn learn_volume(
        &self,
        cell: CellIndex,
        group: &Arc<Group>,
        id: VolumeId,
        kind: VolumeKind,
    ) -> Result<Arc<Volume>> {
        self.asking.learn_volume(&self.asker, cell, group, id, kind).await
    }

    /// The volumes of a name (or decimal number); ENODEV if there are none.
    pub(super) async fn group(&self, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        self.asking.group(&self.asker, cell, name).await
    }

    /// The same, whatever is remembered.
    pub(super) async fn group_anew(&self, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        self.asking.group_anew(&self.asker, cell, name).await
    }

    pub(super) fn is_closing(&self) -> bool {
        self.asking.is_closing()
    }

    /// Says what time it is, see [`crate::promises::Promises::now`].
    pub(super) fn now(&self) -> Instant {
        self.promises.now()
    }
}
