//! Calls to the location service: to its servers in turn, until one replies.

use std::time::Duration;

use afs_rpc::{CallError, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::ids::{KindNumber, VolumeId};
use afs_wire::rpc::Request;
use afs_wire::vl::{
    CreateEntryN, DeleteEntry, Entry, GetEntryByIdN, GetEntryByNameN, GetNewVolumeId, NameText, ReleaseType,
    ReplaceEntryN,
};

use crate::Admin;
use crate::error::{AdminError, AdminResult};
use crate::failures::{self, Failures};

/// Rounds over all location servers before a call fails.
const ROUNDS: u32 = 3;
/// Time between two rounds.
const ROUND_PAUSE: Duration = Duration::from_secs(2);
/// Minimum retransmission time. A server that was restarted in between takes a retransmission for a new call.
const RESEND_MIN: Duration = Duration::from_millis(200);

impl Admin {
    /// A call to the location service; the journal's service stands beside it.
    pub(crate) async fn locate<R: Request>(&self, request: &R) -> Result<R::Reply, CallError> {
        self.locate_again(request).await.0
    }

    /// The same; also returns whether the request may have been sent more than once, so that an earlier one
    /// has taken effect.
    pub(crate) async fn locate_again<R: Request>(&self, request: &R) -> (Result<R::Reply, CallError>, bool) {
        let mut tried = Failures::none_of(self.cell().location.len());
        for round in 0..ROUNDS {
            if round > 0 {
                self.env().sleep(ROUND_PAUSE).await;
            }
            if let Some((answered, again)) = self.locate_once(request, &mut tried).await {
                return (answered, again || round > 0);
            }
        }
        (Err(tried.last()), true)
    }

    async fn locate_once<R: Request>(
        &self,
        request: &R,
        tried: &mut Failures,
    ) -> Option<(Result<R::Reply, CallError>, bool)> {
        let servers = &self.cell().location;
        let first = self.preferred();
        for turn in 0..servers.len() {
            let index = (first + turn) % servers.len();
            let Some(server) = servers.get(index).filter(|_| tried.is_worth_asking(index)) else { continue };
            let connection = self.rx().connection(*server, R::SERVICE, self.security().clone());
            let connection = connection.with_options(failures::PATIENCE);
            let asked = self.env().now();
            match connection.call(request).await {
                Err(error) if try_elsewhere(&error) => tried.note(index, error),
                answered => {
                    self.prefer(index);
                    return Some((answered, turn > 0 || self.env().now() - asked >= RESEND_MIN));
                }
            }
        }
        None
    }

    /// The entry of a volume of any kind, or `None` if there is none.
    pub(crate) async fn entry(&self, volume: VolumeId) -> AdminResult<Option<Entry>> {
        let reply = self.locate(&GetEntryByIdN { volume, kind: KindNumber::ANY }).await;
        entry_or_none(reply.map(|r| r.entry), volume.0)
    }

    /// The entry with a name, or `None` if there is none.
    pub(crate) async fn entry_named(&self, name: &str) -> AdminResult<Option<Entry>> {
        let text = NameText::new(name.as_bytes()).map_err(|_| {
            AdminError::refused(format!("Could not look up '{name}'"), "this cannot be the name of a volume")
        })?;
        entry_or_none(self.locate(&GetEntryByNameN { name: text }).await.map(|r| r.entry), name)
    }

    /// One unused volume id.
    pub(crate) async fn new_id(&self) -> AdminResult<VolumeId> {
        let reply = self.locate(&GetNewVolumeId { count: 1 }).await;
        reply.map(|r| r.first).map_err(|e| AdminError::call("Could not get a number for the volume", None, e))
    }

    /// Creates an entry. An equal existing one, as after a lost reply, counts as success.
    pub(crate) async fn create_entry(&self, entry: &Entry) -> AdminResult {
        let doing = || format!("Could not enter {} into the VLDB", entry.name);
        match self.locate(&CreateEntryN { entry: entry.clone() }).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let [id, ..] = entry.ids;
                let there = self.entry(id).await?;
                match there.filter(|t| t.name == entry.name && t.ids == entry.ids && t.sites == entry.sites) {
                    Some(_) => Ok(()),
                    None => Err(AdminError::call(doing(), None, error)),
                }
            }
        }
    }

    /// Replaces an entry; `release` says whether its lock is released.
    pub(crate) async fn replace_entry(&self, entry: &Entry, release: ReleaseType) -> AdminResult {
        let mut entry = entry.clone();
        entry.match_index = 0;
        let (volume, name) = (first_id(&entry), entry.name);
        let request = ReplaceEntryN { volume, kind: KindNumber::ANY, entry, release };
        let replaced = self.locate(&request).await;
        replaced.map_err(|e| AdminError::call(format!("Could not change the VLDB entry of {name}"), None, e))
    }

    /// Deletes an entry. An entry already deleted is no error.
    pub(crate) async fn delete_entry(&self, entry: &Entry) -> AdminResult {
        let volume = first_id(entry);
        match self.locate(&DeleteEntry { volume, kind: KindNumber::ANY }).await {
            Ok(()) | Err(CallError::Abort(AbortCode::VL_NOENT)) => Ok(()),
            Err(error) => {
                let doing = format!("Could not remove the VLDB entry of {}", entry.name);
                Err(AdminError::call(doing, None, error))
            }
        }
    }
}

/// A volume id under which the entry is found.
fn first_id(entry: &Entry) -> VolumeId {
    entry.ids.iter().copied().find(|id| id.0 != 0).unwrap_or_default()
}

fn entry_or_none(
    reply: Result<Entry, CallError>,
    volume: impl std::fmt::Display,
) -> AdminResult<Option<Entry>> {
    match reply {
        Ok(entry) => Ok(Some(entry)),
        Err(CallError::Abort(AbortCode::VL_NOENT)) => Ok(None),
        Err(error) => {
            Err(AdminError::call(format!("Could not look up volume {volume} in the VLDB"), None, error))
        }
    }
}

/// Whether another location server, or the same one a little later, may succeed: this one did not reply, or
/// it has no quorum, or it is starting. Codes of ubik: `docs/protocol/vldb.md` "8. Ubik as seen by tools and
/// clients".
fn try_elsewhere(error: &CallError) -> bool {
    const UNOQUORUM: i32 = 5376;
    const UNOTSYNC: i32 = 5377;
    match error {
        CallError::Abort(code) => matches!(code.0, UNOQUORUM | UNOTSYNC) || *code == AbortCode::VRESTARTING,
        error => error.is_silence(),
    }
}
