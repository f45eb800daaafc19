//! Server machine of a simulated cell: its plan for the test kit, and what the cell records of it.

use std::sync::Arc;

use afs_datapath::session::Counts;
use afs_rpc::WeakRx;
use afs_server::{Audit, AuditOptions, Guard};
use afs_sim::{NodeId, World};
use afs_testkit::{NewVolume, Server, ServerPlan, Service, Sizes};
use afs_wire::ids::{Rights, ViceId};
use parking_lot::Mutex;

use super::cell::SERVER;
use super::identities::{Keys, user_directory};
use super::ledger::Ledger;
use super::settings::CellSettings;

/// A server machine with all state that outlives its processes.
#[derive(Clone)]
pub struct Machine {
    /// The machine, with its disk and the start of its services.
    pub server: Server,
    /// Settings of the cell.
    pub settings: Arc<CellSettings>,
    /// Calls that the server carried out.
    pub ledger: Ledger,
    pub(super) keys: Arc<Keys>,
    /// Rx endpoints of the client machines.
    pub(super) clients: Arc<Mutex<Vec<WeakRx>>>,
}

impl Machine {
    /// A machine with an empty disk, on which nothing runs yet.
    pub(super) fn new(world: &World, node: NodeId, settings: CellSettings) -> Self {
        let (keys, ledger) = (Arc::new(Keys::new(&world.env(node))), Ledger::default());
        let server = Server::on(world, node, SERVER, plan(&settings, &ledger, &keys));
        Self { server, settings: Arc::new(settings), ledger, keys, clients: Arc::default() }
    }

    /// What the drive of the running server has done, if it has a data path.
    #[must_use]
    pub fn drive_counts(&self) -> Option<Counts> {
        let files = self.server.processes(|of| of.files.upgrade()).flatten()?;
        self.settings.data_path.then(|| files.data_path_counts())
    }

    pub(super) fn note_client(&self, rx: &afs_rpc::Rx) {
        self.clients.lock().push(rx.downgrade());
    }
}

/// One volume; services as the product offers them: without security, and under rxgk.
fn plan(settings: &CellSettings, ledger: &Ledger, keys: &Arc<Keys>) -> ServerPlan {
    let rights = vec![(ViceId::AUTHUSER, Rights::ALL), (ViceId::ANYUSER, settings.anyuser)];
    let volume = NewVolume { name: VOLUME.to_owned(), quota_kib: 0, rights };
    let mut services = vec![Service::Location, Service::File];
    if settings.data_path {
        services.push(Service::Data);
    }
    let (names, ledger, keys) = (Arc::new(user_directory()), Arc::new(ledger.clone()), keys.clone());
    ServerPlan {
        services,
        volumes: vec![volume],
        sizes: Sizes { index_cache: settings.index_cache, ..Sizes::default() },
        rx: settings.rx.clone(),
        calls: settings.calls,
        files: settings.files,
        // The randomness of TLS is not the seed's.
        clear_data: true,
        classes: Arc::new(move |env| vec![Box::new(afs_rx::NullServer), keys.server_class(env)]),
        guard: Arc::new({
            let names = names.clone();
            move |env| {
                let audit = Audit::new(env.clone(), ledger.clone(), AuditOptions::default());
                Guard::new(names.clone()).with_audit(audit)
            }
        }),
        ..ServerPlan::new(names)
    }
}

/// Name of the cell's volume.
pub(super) const VOLUME: &str = "root.cell";
