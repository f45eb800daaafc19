//! Daemon of a drive: serves chunks of a directory to the file server that has joined it, or waits for one.

use super::daemon_state::DaemonState;
use super::{DrivesError, JoinKey};
use afs_datapath::capability::{DriveKey, Revocations, StoreNumber};
use afs_datapath::session::{Drive, DriveLimits, Identity, Objects, Offer, accept};
use afs_drive::FileSegments;
use afs_env::{ByteListener, EnvExt, EnvRef};
use afs_net::System;
use afs_remote::{Adopt, ChunkStores, JoiningDrive, Run};
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Pause before the address is tried again that the listener of the unjoined drive has not released yet.
const PAUSE: Duration = Duration::from_millis(50);

/// Options of a drive's daemon.
#[derive(Clone, Debug)]
pub struct DriveDaemonOptions {
    /// Its directory, which exists: state and chunks.
    pub directory: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
}

/// A running drive. Dropping it does not end it; [`DriveDaemon::stop`] does.
pub struct DriveDaemon {
    served: Arc<Served>,
    at: SocketAddr,
    join_key: Option<JoinKey>,
    _lock: File,
}

struct Served {
    env: EnvRef,
    directory: PathBuf,
    identity: Identity,
    run: Run,
    /// What is served now.
    drive: Mutex<Option<Arc<Drive>>>,
}

impl DriveDaemon {
    /// Begins to serve.
    ///
    /// # Errors
    /// Another process uses the directory, its state is damaged, or the address cannot be bound.
    pub fn start(system: &Arc<System>, options: &DriveDaemonOptions) -> Result<Self, DrivesError> {
        let env: EnvRef = system.env();
        let lock = lock(&options.directory)?;
        // Before a number is used for the run: an address that is taken is the likeliest error.
        let listen = |error| DrivesError::Listen { address: options.listen, error };
        let listener = env.listen(options.listen).map_err(listen)?;
        let at = listener.local_addr();
        let state = DaemonState::begin_run(&options.directory, &*env)?;
        let identity = state.identity(&options.directory)?;
        let fingerprint = identity.fingerprint();
        let (key, secret) = state.key(&options.directory)?;
        let (directory, run) = (options.directory.clone(), state.run());
        let served = Arc::new(Served { env, directory, identity, run, drive: Mutex::new(None) });
        let join_key = secret.map(|secret| JoinKey { fingerprint, secret });
        match join_key.is_some() {
            true => served.wait_for_a_server(state, key, listener, at),
            false => served.serve_chunks(key, listener),
        }
        Ok(Self { served, at, join_key, _lock: lock })
    }

    /// Where it listens.
    #[must_use]
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// What the file server has to be told that is to join it; `None` if one has.
    #[must_use]
    pub fn join_key(&self) -> Option<&JoinKey> {
        self.join_key.as_ref()
    }

    /// Ends all connections. What was acknowledged as durable is.
    pub fn stop(&self) {
        if let Some(drive) = self.served.drive.lock().take() {
            drive.stop();
        }
    }
}

/// Two processes would give the same ids.
fn lock(directory: &Path) -> Result<File, DrivesError> {
    let cannot = |error| DrivesError::Directory { path: directory.to_owned(), error };
    let file = File::create(directory.join("lock")).map_err(cannot)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        Errno::WOULDBLOCK => DrivesError::Served(directory.to_owned()),
        other => cannot(other.into()),
    })?;
    Ok(file)
}

impl Served {
    fn serve(
        &self,
        (key, revocations): (DriveKey, Revocations),
        objects: Arc<dyn Objects>,
        listener: Box<dyn ByteListener>,
    ) -> Arc<Drive> {
        let drive = Drive::new(key, revocations, objects, DriveLimits::default());
        *self.drive.lock() = Some(drive.clone());
        let offer = Offer::tls(self.identity.clone());
        self.env.spawn(Box::pin(accept(self.env.clone(), listener, offer, drive.clone())));
        drive
    }

    fn serve_chunks(&self, key: DriveKey, listener: Box<dyn ByteListener>) {
        let directory = self.directory.clone();
        let open = move |store: StoreNumber| FileSegments::open(directory.join(format!("store-{}", store.0)));
        let stores = ChunkStores::new(self.env.clone(), self.run, open);
        let revocations = stores.revocations();
        self.serve((key, revocations), Arc::new(stores), listener);
    }

    fn wait_for_a_server(
        self: &Arc<Self>,
        state: DaemonState,
        key: DriveKey,
        listener: Box<dyn ByteListener>,
        at: SocketAddr,
    ) {
        let (directory, adopted) = (self.directory.clone(), Arc::new(Mutex::new(None)));
        // Who takes the state keeps the key; a second one finds none.
        let (waiting, kept) = (Mutex::new(Some(state)), adopted.clone());
        let adopt: Adopt = Arc::new(move |_, key| {
            let Some(mut state) = waiting.lock().take() else { return false };
            match state.adopt(&directory, key) {
                Ok(()) => _ = kept.lock().insert(state),
                Err(error) => {
                    tracing::error!(%error, "the key of the file server could not be kept");
                    *waiting.lock() = Some(state);
                    return false;
                }
            }
            true
        });
        let joining = JoiningDrive::new(self.env.clone(), adopt);
        let drive = self.serve((key, Revocations::default()), Arc::new(joining.clone()), listener);
        let own = self.clone();
        self.env.spawn(Box::pin(async move {
            joining.adopted().await;
            drive.stop();
            drop(drive);
            let state = adopted.lock().take();
            if let Some(state) = state {
                own.go_on(&state, at).await;
            }
        }));
    }

    /// Serves with the key of the file server, when the listener of before is gone.
    async fn go_on(&self, state: &DaemonState, at: SocketAddr) {
        let key = match state.key(&self.directory) {
            Ok((key, _)) => key,
            Err(error) => return tracing::error!(%error, "the drive cannot go on; start it again"),
        };
        let listener = loop {
            match self.env.listen(at) {
                Ok(listener) => break listener,
                Err(_) => self.env.sleep(PAUSE).await,
            }
        };
        self.serve_chunks(key, listener);
    }
}
