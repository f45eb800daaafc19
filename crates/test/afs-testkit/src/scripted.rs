//! Scripted servers: calls that are answered as a test says, and a location service with entries of a test.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef, Service, Table};
use afs_wire::error::AbortCode;
use afs_wire::ids::{PartitionNumber, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{self, Entry, EntryFlags, NameChars, Site, SiteFlags};
use afs_wire::xdr::BoundedVec;
use parking_lot::Mutex;

/// What the nth call gets, from 1: an abort, or its reply after a while.
type Says = Box<dyn FnMut(usize) -> Result<Duration, AbortCode> + Send>;

/// How the calls of one kind are answered. At first: at once.
pub struct Script {
    env: EnvRef,
    calls: AtomicUsize,
    says: Mutex<Says>,
}

impl Script {
    /// In the environment of the server's machine.
    #[must_use]
    pub fn new(env: EnvRef) -> Self {
        Self { env, calls: AtomicUsize::new(0), says: Mutex::new(Box::new(|_| Ok(Duration::ZERO))) }
    }

    /// From now on, what the nth call of all gets, from 1: an abort, or its reply after a while.
    pub fn says(&self, says: impl FnMut(usize) -> Result<Duration, AbortCode> + Send + 'static) {
        *self.says.lock() = Box::new(says);
    }

    /// Calls so far.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// One call: completes when its reply is due.
    ///
    /// # Errors
    /// The abort that the script has for it.
    pub async fn call(&self) -> Result<(), AbortCode> {
        let nth = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let pause = (*self.says.lock())(nth)?;
        self.env.sleep(pause).await;
        Ok(())
    }
}

/// The entries of a location service, by names and by numbers. Clones share them.
#[derive(Clone, Default)]
pub struct Locations(Arc<Mutex<BTreeMap<String, Entry>>>);

impl Locations {
    /// The service, which knows one call: that by name, as which clients send numbers too.
    #[must_use]
    pub fn service(&self) -> Arc<dyn Service> {
        let table = Table::new(ServiceId::LOCATION, Arc::new(self.clone()));
        Arc::new(table.call(|locations: Arc<Self>, _, request: vl::GetEntryByNameN| async move {
            let entry = locations.0.lock().get(&request.name.to_text()).cloned();
            entry.map(|entry| vl::EntryReply { entry }).ok_or(AbortCode::VL_NOENT)
        }))
    }

    /// Enters a volume group under its name and its numbers, or replaces it.
    ///
    /// # Panics
    /// If the name is none of a volume.
    pub fn enter(&self, name: &str, ids: [VolumeId; 3], flags: EntryFlags, sites: Vec<Site>) {
        let entry = Entry {
            name: NameChars::new(name.as_bytes()).unwrap(),
            sites: BoundedVec::first_of(sites),
            ids,
            flags,
            ..Entry::default()
        };
        let mut entries = self.0.lock();
        entries.insert(name.into(), entry.clone());
        for id in ids.into_iter().filter(|id| id.0 != 0) {
            entries.insert(id.to_string(), entry.clone());
        }
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

/// A site of a volume, on the first partition of a server.
#[must_use]
pub fn site(server: Ipv4Addr, flags: SiteFlags) -> Site {
    Site { server, partition: PartitionNumber(0), flags }
}
