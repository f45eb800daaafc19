//! The tool of an administrator, and the resumer of its operations.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use afs_admin::journal::Holder;
use afs_admin::{Admin, Cell, CellJournal, PathUse, Resumer};
use afs_rpc::{EnvExt, EnvRef, Rx, Security};

/// A tool that `who` runs, which calls the databases at an address without security.
#[must_use]
pub fn admin(env: &EnvRef, rx: Rx, databases: Ipv4Addr, who: &str) -> Admin {
    let cell = Cell::new(&[databases], 7000);
    let journal = Arc::new(CellJournal::new(env.clone(), &rx, &Security::null(), &cell));
    let holder = Holder { who: who.into(), host: who.into(), pid: 1 };
    // The randomness of TLS is not that of the seed.
    Admin::new(env.clone(), rx, Security::null(), cell, journal, holder).with_path(PathUse::Clear)
}

/// Resumes operations whose tool has died, for as long as the present life of the machine; keeps the endpoint open.
pub(crate) fn resume(env: &EnvRef, rx: Rx, databases: Ipv4Addr) {
    env.spawn(Box::pin(Resumer::new(admin(env, rx, databases, "resumer")).run()));
}

/// Completes when no operation is in the journal.
pub async fn no_operation_is_open(admin: Admin, env: EnvRef) {
    while !admin.operations().await.is_ok_and(|open| open.is_empty()) {
        env.sleep(Duration::from_secs(2)).await;
    }
}
