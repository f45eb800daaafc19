//! Background task that resumes interrupted operations, in the servers of a cell.

use std::time::Duration;

use afs_rpc::EnvExt;

use crate::Admin;

/// Time between two reads of the journal.
const INTERVAL: Duration = Duration::from_secs(15);

/// Takes over operations whose holders are gone, and completes or undoes them. One in each database server's
/// process; several do not conflict, because only one of them gets the lease.
pub struct Resumer {
    admin: Admin,
}

impl Resumer {
    /// Uses the rights of `admin`, which must be an administrator of the cell.
    #[must_use]
    pub fn new(admin: Admin) -> Self {
        Self { admin }
    }

    /// Reads the journal periodically until it is dropped. To be spawned.
    pub async fn run(self) {
        loop {
            self.admin.env().sleep(INTERVAL).await;
            self.look().await;
        }
    }

    /// Reads the journal once, and resumes what has lapsed.
    pub async fn look(&self) {
        let resumed = match self.admin.resume_lapsed(None).await {
            Ok(resumed) => resumed,
            Err(error) => return tracing::warn!(%error, "the journal of operations"),
        };
        for one in resumed {
            let (word, name, step) = (&one.record.draft.word, &one.record.draft.name, &one.record.draft.step);
            match one.outcome {
                Ok(outcome) => {
                    tracing::info!(%word, volume = %name, %step, ?outcome, "an interrupted operation has ended")
                }
                Err(error) => {
                    tracing::warn!(%word, volume = %name, %step, %error, "an interrupted operation waits")
                }
            }
        }
    }
}
