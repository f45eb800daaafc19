//! How a server machine is set up: its services, volumes, bounds and security.

use std::sync::Arc;

use afs_rpc::{EnvRef, Limits, ServerSecurity, Table};
use afs_server::{FileServer, FileServerLimits, Guard, NameService};
use afs_wire::ids::PartitionId;

use crate::stores::Sizes;
use crate::volumes::NewVolume;

/// A service that a machine can offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// The location service, at port 7003.
    Location,
    /// The journal of operations, at the same port, and what resumes them.
    Journal,
    /// The file service, at port 7000.
    File,
    /// The data service, by byte streams at port 7100, for the volumes of the file service.
    Data,
    /// The volume service, at port 7005.
    Volume,
}

/// Makes the security classes under which a machine offers its services, in its present life.
pub type Classes = Arc<dyn Fn(&EnvRef) -> Vec<Box<dyn ServerSecurity>> + Send + Sync>;

/// Changes the table of the calls of a file service, in its present life.
pub type FileCalls = Arc<dyn Fn(Table<FileServer>) -> Table<FileServer> + Send + Sync>;

/// How a server machine is set up.
#[derive(Clone)]
pub struct ServerPlan {
    /// What it offers. Default: locations and files.
    pub services: Vec<Service>,
    /// Partitions of its file service. Default: the first.
    pub partitions: Vec<PartitionId>,
    /// Volumes of its first partition, if it has the location service. Default: none.
    pub volumes: Vec<NewVolume>,
    /// Sizes of its stores.
    pub sizes: Sizes,
    /// Rx of its endpoints.
    pub rx: afs_rx::Config,
    /// Calls that an endpoint serves and has waiting.
    pub calls: Limits,
    /// Bounds of the file service.
    pub files: FileServerLimits,
    /// What becomes of the calls of the file service: some that it does not know, or to which it gives other replies. Default: nothing.
    pub file_calls: FileCalls,
    /// Whether the data service takes connections without TLS. Default: no.
    pub clear_data: bool,
    /// Name service, requirements and audit log, in its present life.
    pub guard: Arc<dyn Fn(&EnvRef) -> Guard + Send + Sync>,
    /// Default: no security.
    pub classes: Classes,
}

impl ServerPlan {
    /// The defaults, with a name service.
    #[must_use]
    pub fn new(names: Arc<dyn NameService>) -> Self {
        Self {
            services: vec![Service::Location, Service::File],
            partitions: vec![PartitionId(0)],
            volumes: Vec::new(),
            sizes: Sizes::default(),
            rx: afs_rx::Config::default(),
            calls: Limits::default(),
            files: FileServerLimits::default(),
            file_calls: Arc::new(|table| table),
            clear_data: false,
            guard: Arc::new(move |_| Guard::new(names.clone())),
            classes: Arc::new(|_| vec![Box::new(afs_rx::NullServer)]),
        }
    }
}
