//! Ownership of a drive: the owner's object, and the number of a run, which only its latest server has.

use std::io;
use std::sync::Arc;

use afs_drive::DriveError;
use afs_env::EnvExt;

use crate::admission::of_owner;
use crate::bucket::{Failure, Listed};
use crate::drive::Inner;
use crate::listing::Listing;
use crate::names::{OWNER, RUNS, RunId};
use crate::pack::Salt;
use crate::packs::Packs;
use crate::requests::Failed;
use crate::tickets::{OWNER_LEN, OwnerId, encode_owner, encode_run};

/// Numbers that are tried for a run: a late listing may not show the last ones given.
const CLAIMS_MAX: u32 = 1000;

impl Inner {
    /// Puts the owner's object, if there is none.
    pub(crate) async fn put_owner(&self, owner: OwnerId) -> Result<(), DriveError> {
        let object = encode_owner(owner);
        match self
            .requests
            .put_new(OWNER, std::slice::from_ref(&object), (0..OWNER_LEN, object.clone()))
            .await
        {
            Ok(()) | Err(Failed { failure: Failure::Exists, .. }) => Ok(()),
            Err(failed) => Err(failed.into()),
        }
    }

    /// # Errors
    /// The drive is another owner's, or there is none.
    pub(crate) async fn check_owner(&self, owner: OwnerId) -> Result<(), DriveError> {
        let object = self.requests.get_least(OWNER, 0..OWNER_LEN, OWNER_LEN).await?;
        of_owner(&object, owner)
    }

    /// The number of this run, which it gets here. From then on no earlier run writes or deletes anything.
    pub(crate) async fn claim_run(&self) -> Result<RunId, DriveError> {
        if let Some(run) = self.run() {
            return Ok(run);
        }
        let _alone = self.claiming.lock().await;
        if let Some(run) = self.run() {
            return Ok(run);
        }
        self.admission.admit(self).await?;
        let last = self.last_run().await?;
        let salt = Salt(self.env.random_bytes());
        let run = self.put_run(last, salt).await?;
        if !self.requests.keeps_what_exists(&run.key()).await? {
            return Err(refused(
                "the store overwrites objects in spite of If-None-Match: *; it cannot be used".into(),
            ));
        }
        // The one before by its name too: the listing may be late.
        self.requests.delete(&RunId(run.0 - 1).key()).await?;
        self.remove_runs_before(run).await?;
        self.packs.lock().begin_run(run, salt);
        Ok(run)
    }

    pub(crate) fn run(&self) -> Option<RunId> {
        self.packs.lock().run()
    }

    /// Takes the first free number after `last`.
    async fn put_run(&self, last: RunId, salt: Salt) -> Result<RunId, DriveError> {
        let full = || refused(format!("no number is free after run {}", last.0));
        for more in 1..=CLAIMS_MAX {
            let run = RunId(last.0.checked_add(more).ok_or_else(full)?);
            let object = encode_run(run, salt);
            let proof = (0..object.len() as u64, object.clone());
            match self.requests.put_new(&run.key(), &[object], proof).await {
                Err(Failed { failure: Failure::Exists, .. }) => {}
                put => return put.map(|()| run).map_err(DriveError::from),
            }
        }
        Err(full())
    }

    /// The greatest number that a run has had, as far as is known.
    async fn last_run(&self) -> Result<RunId, DriveError> {
        let mut last = self.packs.lock().above();
        self.each_listed(RUNS, |listed| last = last.max(RunId::of_key(&listed.key).unwrap_or(last))).await?;
        Ok(last)
    }

    /// Removes the objects of earlier runs, by which they notice that they are no longer the newest.
    pub(crate) async fn remove_runs_before(&self, run: RunId) -> Result<(), DriveError> {
        let mut earlier = Vec::new();
        self.each_listed(RUNS, |listed| {
            earlier
                .extend(RunId::of_key(&listed.key).filter(|found| *found < run && earlier.len() < RUNS_MAX));
        })
        .await?;
        for run in earlier {
            self.requests.delete(&run.key()).await?;
        }
        Ok(())
    }

    pub(crate) async fn each_listed(
        &self,
        prefix: &str,
        mut each: impl FnMut(&Listed),
    ) -> Result<(), DriveError> {
        let mut listing = Listing::new(&self.requests, prefix);
        while let Some(page) = listing.next().await? {
            page.objects.iter().for_each(&mut each);
        }
        Ok(())
    }

    /// # Errors
    /// Another server has begun a later run: this one writes and deletes nothing from now on.
    pub(crate) async fn check_run(&self) -> Result<(), DriveError> {
        let Some(run) = self.run() else { return Ok(()) };
        match self.requests.get(&run.key(), 0..1).await {
            Ok(_) => Ok(()),
            Err(Failed { failure: Failure::Missing, .. }) => {
                let error = Packs::superseded(run);
                self.packs.lock().refuse(error.clone());
                Err(error)
            }
            Err(failed) => Err(failed.into()),
        }
    }
}

pub(crate) fn refused(why: String) -> DriveError {
    DriveError::Io(Arc::new(io::Error::other(why)))
}

/// Objects of earlier runs that are removed at a time.
const RUNS_MAX: usize = 1000;
