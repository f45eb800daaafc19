//! What the servers of a cell do with operations that were interrupted.

use std::time::Duration;

use afs_rpc::EnvExt;

use crate::Admin;

/// Time between two looks into the journal.
const INTERVAL: Duration = Duration::from_secs(15);

/// Takes over operations whose holders are gone, and completes or undoes them. One in each database server's process;
/// several do not disturb each other, since only one of them gets the lease.
pub struct Resumer {
    admin: Admin,
}

impl Resumer {
    /// Works with the rights of `admin`, which has to be an administrator of the cell.
    #[must_use]
    pub fn new(admin: Admin) -> Self {
        Self { admin }
    }

    /// Looks for such operations as long as it is not dropped. To be spawned.
    pub async fn run(self) {
        loop {
            self.admin.env().sleep(INTERVAL).await;
            self.look().await;
        }
    }

    /// Looks once.
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
