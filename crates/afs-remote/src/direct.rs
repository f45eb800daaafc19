//! A drive to which clients go themselves, as the file server sees it: what their capabilities are sealed with, and revocations.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, Generation, Group, GroupTag, Terms, TransferId,
};
use afs_datapath::frame::{CHUNKS_MAX, ChunkReply, ChunkRequest};
use afs_datapath::session::{Client, Error, Handle};
use afs_drive::ChunkRef;
use afs_env::{EnvExt, EnvRef, Instant};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::options::RemoteOptions;

/// How long the file server waits for a drive that is to be told of a revocation. Clients may use what they have there until it
/// expires, if the drive cannot be told.
pub const TELL_MAX: Duration = Duration::from_secs(3);
/// After a failed attempt nobody waits for another one for this long.
const PAUSE: Duration = Duration::from_secs(10);

/// A drive to which a file server sends clients. Clones are the same.
///
/// The drive alone has the generations of its groups. This end knows a lower bound of the latest one, which is what it seals
/// with: a revocation after that voids what was sealed. What the drive could not be told of, it is told before anything
/// else is sealed, by a revocation of all.
#[derive(Clone)]
pub struct DirectDrive(Arc<Inner>);

struct Inner {
    env: EnvRef,
    options: RemoteOptions,
    turn: afs_env::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<(Client, Handle)>,
    latest: Generation,
    failed: Option<Instant>,
    /// Revocations of which the drive may not know, the start of this process included; and how many of them it was told of since.
    missed: u64,
    made_good: u64,
}

impl DirectDrive {
    /// A drive that is not connected yet. It does not know what an earlier process gave out.
    #[must_use]
    pub fn new(env: EnvRef, options: RemoteOptions) -> Self {
        let state = Mutex::new(State { missed: 1, ..State::default() });
        Self(Arc::new(Inner { env, options, turn: afs_env::sync::Mutex::new(()), state }))
    }

    /// Where it is, and its key.
    #[must_use]
    pub fn options(&self) -> &RemoteOptions {
        &self.0.options
    }

    /// The generation to seal with, to be asked for before the rights are looked at; `None` while the drive cannot be told of
    /// revocations: then no client is to be sent there. Waits at most [`TELL_MAX`], and not at all after a failure a moment ago.
    pub async fn generation(&self) -> Option<Generation> {
        if let Some(latest) = self.0.known() {
            return Some(latest);
        }
        if self.0.has_failed_recently() {
            return None;
        }
        let ready = self.0.env.timeout(TELL_MAX, self.0.connect()).await;
        ready.ok().flatten()
    }

    /// Revokes capabilities and bindings for groups. When this returns `true` the drive sends nothing more by them; otherwise they
    /// may be good there until the capabilities expire, and all of the drive's are revoked before others are sealed.
    pub async fn revoke(&self, groups: &[GroupTag]) -> bool {
        let mut is_told = true;
        for groups in groups.chunks(CHUNKS_MAX) {
            is_told &= self.tell(ChunkRequest::Revoke { groups: groups.to_vec() }).await;
        }
        is_told
    }

    /// As [`DirectDrive::revoke`], for everything.
    pub async fn revoke_all(&self) -> bool {
        self.tell(ChunkRequest::RevokeAll).await
    }

    /// Commands a transfer to a client that waits for it. `false` if the drive was not told: it is away, or has too many commands.
    /// Takes at most [`TELL_MAX`].
    pub async fn deliver(&self, to: (GroupTag, TransferId), chunk: ChunkRef, terms: Terms) -> bool {
        let Some((client, handle)) = self.0.open() else { return false };
        let (group, transfer) = to;
        let what = ChunkRequest::Deliver { group, transfer, chunk, terms };
        let told = self.0.env.timeout(TELL_MAX, client.perform(&handle, what, Bytes::new())).await;
        matches!(told, Ok(Ok(ChunkReply::Done)))
    }

    async fn tell(&self, what: ChunkRequest) -> bool {
        let telling = async {
            // What is revoked with all that a connection begins with need not be told by itself.
            if self.0.known().is_none() {
                self.0.miss();
                return self.0.connect().await.is_some();
            }
            let Some((client, handle)) = self.0.open() else { return false };
            let told = client.perform(&handle, what, Bytes::new()).await;
            self.0.note(&told)
        };
        if self.0.known().is_none() && self.0.has_failed_recently() {
            self.0.miss();
            return false;
        }
        let is_told = self.0.env.timeout(TELL_MAX, telling).await.unwrap_or(false);
        if !is_told {
            self.0.fail("it could not be told of a revocation");
        }
        is_told
    }
}

impl Inner {
    /// The latest generation, where a connection lives and the drive knows of all revocations.
    fn known(&self) -> Option<Generation> {
        let state = self.state.lock();
        let lives = state.open.as_ref().is_some_and(|(client, _)| client.lost().is_none());
        (lives && state.missed == state.made_good).then_some(state.latest)
    }

    fn open(&self) -> Option<(Client, Handle)> {
        self.state.lock().open.clone().filter(|(client, _)| client.lost().is_none())
    }

    fn has_failed_recently(&self) -> bool {
        let now = self.env.now();
        self.state.lock().failed.is_some_and(|at| now.saturating_since(at) < PAUSE)
    }

    fn miss(&self) {
        self.state.lock().missed += 1;
    }

    /// The drive may not know of a revocation, or not be there.
    fn fail(&self, why: &str) {
        let now = self.env.now();
        let mut state = self.state.lock();
        state.missed += 1;
        let was_known = state.failed.replace(now).is_some();
        drop(state);
        if !was_known {
            tracing::warn!(drive = %self.options.name, why, "no client is sent to a drive");
        }
    }

    /// Whether a revocation was made.
    fn note(&self, reply: &Result<ChunkReply, Error>) -> bool {
        let Ok(ChunkReply::Revoked { latest }) = reply else { return false };
        let mut state = self.state.lock();
        state.latest = state.latest.max(*latest);
        true
    }

    /// Connects if need be, and tells the drive what it may have missed.
    async fn connect(&self) -> Option<Generation> {
        let _turn = self.turn.lock().await;
        if let Some(latest) = self.known() {
            return Some(latest);
        }
        match self.attempt().await {
            Ok(latest) => Some(latest),
            Err(error) => {
                self.fail(&error.to_string());
                None
            }
        }
    }

    async fn attempt(&self) -> Result<Generation, Error> {
        let (client, handle) = match self.open() {
            Some(open) => open,
            None => self.open_new().await?,
        };
        let (missed, is_unsure) = {
            let state = self.state.lock();
            (state.missed, state.missed != state.made_good)
        };
        let nothing = ChunkRequest::Revoke { groups: Vec::new() };
        let what = if is_unsure { ChunkRequest::RevokeAll } else { nothing };
        let reply = client.perform(&handle, what, Bytes::new()).await?;
        let ChunkReply::Revoked { latest } = reply else { return Err(Error::Length) };
        let mut state = self.state.lock();
        state.latest = state.latest.max(latest);
        state.made_good = missed;
        state.failed = None;
        state.open = Some((client, handle));
        Ok(state.latest)
    }

    async fn open_new(&self) -> Result<(Client, Handle), Error> {
        let options = &self.options;
        let stream = self.env.connect(options.address).await.map_err(|error| Error::Lost(error.into()))?;
        let client = Client::open_bound(self.env.clone(), stream, options.security, options.patience).await?;
        let capability = managing(options);
        let handle = client.present(&capability, &options.key.seal(&capability))?;
        Ok((client, handle))
    }
}

/// The capability for all chunks of a store. Who has the key can seal another one, so that a time limit would only bind the clocks
/// of both hosts together.
pub(crate) fn managing(options: &RemoteOptions) -> Capability {
    let key = &options.key;
    Capability {
        drive: key.drive(),
        epoch: key.epoch(),
        group: Group::Chunks(options.store),
        access: Access::MANAGE,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: Generation(0),
        holder: key.holder(b"", b"file server"),
    }
}
