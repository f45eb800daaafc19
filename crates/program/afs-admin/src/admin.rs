//! Handle on a cell for administrative operations: connections, journal, progress.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afs_rpc::{CallError, EnvRef, Rx, Security};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use parking_lot::Mutex;

use crate::cell::Cell;
use crate::journal::{Holder, Journal};
use crate::progress::{LogProgress, Progress};

/// Operations on the volumes of a cell. Cheap to clone; see the crate's page.
#[derive(Clone)]
pub struct Admin {
    shared: Arc<Shared>,
    progress: Arc<dyn Progress>,
    path: PathUse,
}

/// Whether dumps and restores take the data path of a server that offers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PathUse {
    /// Never.
    Off,
    /// With TLS.
    #[default]
    Tls,
    /// Without TLS too, where the server offers that.
    Clear,
}

struct Shared {
    env: EnvRef,
    rx: Rx,
    security: Security,
    cell: Cell,
    journal: Arc<dyn Journal>,
    holder: Holder,
    /// The location server that replied last.
    preferred: AtomicUsize,
    /// Which servers keep snapshots, and so are ours.
    kinds: Mutex<BTreeMap<Ipv4Addr, bool>>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("cell", &self.shared.cell).finish_non_exhaustive()
    }
}

impl Admin {
    /// Operations on the volumes of `cell`, called with `security`, recorded in `journal` under `holder`.
    #[must_use]
    pub fn new(
        env: EnvRef,
        rx: Rx,
        security: Security,
        cell: Cell,
        journal: Arc<dyn Journal>,
        holder: Holder,
    ) -> Self {
        let shared = Shared {
            env,
            rx,
            security,
            cell,
            journal,
            holder,
            preferred: AtomicUsize::new(0),
            kinds: Mutex::default(),
        };
        Self { shared: Arc::new(shared), progress: Arc::new(LogProgress), path: PathUse::default() }
    }

    /// The same, with progress reports.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// The same, with another use of the data path.
    #[must_use]
    pub fn with_path(mut self, path: PathUse) -> Self {
        self.path = path;
        self
    }

    pub(crate) fn path(&self) -> PathUse {
        self.path
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> &dyn Journal {
        &*self.shared.journal
    }

    /// The holder under which operations are recorded.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.shared.holder
    }

    /// The cell.
    #[must_use]
    pub fn cell(&self) -> &Cell {
        &self.shared.cell
    }

    pub(crate) fn env(&self) -> &EnvRef {
        &self.shared.env
    }

    pub(crate) fn rx(&self) -> &Rx {
        &self.shared.rx
    }

    pub(crate) fn security(&self) -> &Security {
        &self.shared.security
    }

    pub(crate) fn progress(&self) -> &dyn Progress {
        &*self.progress
    }

    pub(crate) fn now(&self) -> UnixSeconds {
        UnixSeconds(self.shared.env.wall().secs_u32())
    }

    pub(crate) fn preferred(&self) -> usize {
        self.shared.preferred.load(Ordering::Relaxed)
    }

    pub(crate) fn prefer(&self, server: usize) {
        self.shared.preferred.store(server, Ordering::Relaxed);
    }

    /// Whether a server is one of ours: it keeps snapshots, and stages restores. Asked once.
    pub(crate) async fn is_ours(&self, server: Ipv4Addr) -> bool {
        let known = self.shared.kinds.lock().get(&server).copied();
        if let Some(known) = known {
            return known;
        }
        let ours = match self.probe_snapshots(server).await {
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => false,
            Ok(()) | Err(CallError::Abort(_)) => true,
            // No reply proves nothing.
            Err(_) => return false,
        };
        self.shared.kinds.lock().insert(server, ours);
        ours
    }
}
