//! Daemon of a drive: serves chunks of a directory to the file server that has joined it.

use super::daemon_state::{DaemonState, STORE};
use super::{DrivesError, JoinKey};
use afs_datapath::capability::{DriveKey, StoreNumber};
use afs_datapath::session::{Drive, DriveLimits, Identity, Offer, accept};
use afs_drive::FileSegments;
use afs_env::{ByteListener, EnvRef};
use afs_net::System;
use afs_own::Opening;
use afs_remote::{Adopt, ChunkStores};
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that is locked while a process has the directory.
const LOCK: &str = "lock";

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
    drive: Arc<Drive>,
    at: SocketAddr,
    join_key: Option<JoinKey>,
    _lock: File,
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
        let join_key = secret.map(|secret| JoinKey { fingerprint, secret });
        let drive = serve(&env, &options.directory, state, (key, identity), listener);
        Ok(Self { drive, at, join_key, _lock: lock })
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
        self.drive.stop();
    }
}

/// Two processes would give the same ids.
fn lock(directory: &Path) -> Result<File, DrivesError> {
    let path = directory.join(LOCK);
    let file =
        Opening::write().or_make().open(&path).map_err(|error| DrivesError::Directory { path, error })?;
    held(file, directory)
}

/// The same for who only reads: nothing is made.
pub(super) fn lock_to_read(directory: &Path) -> Result<Option<File>, DrivesError> {
    let path = directory.join(LOCK);
    match Opening::read().open(&path) {
        Ok(file) => held(file, directory).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DrivesError::Directory { path, error }),
    }
}

fn held(file: File, directory: &Path) -> Result<File, DrivesError> {
    let cannot = |error| DrivesError::Directory { path: directory.to_owned(), error };
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        Errno::WOULDBLOCK => DrivesError::Served(directory.to_owned()),
        other => cannot(other.into()),
    })?;
    Ok(file)
}

/// Serves the chunks of a directory; before a file server has joined the drive, the request to take its first key.
fn serve(
    env: &EnvRef,
    directory: &Path,
    state: DaemonState,
    (key, identity): (DriveKey, Identity),
    listener: Box<dyn ByteListener>,
) -> Arc<Drive> {
    let (run, of_keys, of_stores) = (state.run(), directory.to_owned(), directory.to_owned());
    let state = Mutex::new(state);
    let adopt: Adopt = Arc::new(move |epoch, key| match state.lock().adopt(&of_keys, epoch, key) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, "the key of the file server could not be kept");
            false
        }
    });
    let open = move |store: StoreNumber| FileSegments::open(of_stores.join(format!("{STORE}{}", store.0)));
    let stores = ChunkStores::with_keys(env.clone(), run, adopt, open);
    let revocations = stores.revocations();
    let drive = Drive::new(key, revocations, Arc::new(stores), DriveLimits::default());
    let offer = Offer::tls(identity);
    env.spawn(Box::pin(accept(env.clone(), listener, offer, drive.clone())));
    drive
}
