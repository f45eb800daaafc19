//! Admission to a prefix of a bucket: looked at once, before the first write or deletion; and the end of a drive there.

use afs_drive::DriveError;
use afs_env::future::join_all;

use crate::bucket::{Failure, Page};
use crate::claim::refused;
use crate::drive::{BucketDrive, Inner};
use crate::names::{OWNER, PACKS, RUNS};
use crate::tickets::{OWNER_LEN, OwnerId, decode_owner};

/// What is done before a drive is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// There has to be a drive of this owner.
    Check(OwnerId),
    /// A drive of this owner is made if there is none. For an owner who has nothing there.
    Make(OwnerId),
}

impl Admission {
    fn owner(self) -> OwnerId {
        match self {
            Self::Check(owner) | Self::Make(owner) => owner,
        }
    }

    /// # Errors
    /// The drive is another owner's, or there is none, or the store does not serve.
    pub(crate) async fn admit(self, drive: &Inner) -> Result<(), DriveError> {
        if matches!(self, Self::Make(_)) {
            drive.put_owner(self.owner()).await?;
        }
        drive.check_owner(self.owner()).await
    }
}

impl BucketDrive {
    /// One request: whether the store serves, and whose the drive is.
    ///
    /// # Errors
    /// [`DriveError::Away`] if the store does not serve, [`DriveError::Io`] if the drive is another owner's, or should be there
    /// and is not.
    pub async fn look(&self) -> Result<(), DriveError> {
        let admission = self.0.admission;
        let may_be_new = matches!(admission, Admission::Make(_)) && self.0.run().is_none();
        match self.0.requests.look(OWNER, OWNER_LEN).await {
            Ok(object) => of_owner(&object, admission.owner()),
            Err(failed) if failed.failure == Failure::Missing && may_be_new => Ok(()),
            Err(failed) => Err(failed.into()),
        }
    }

    /// Makes every kind of request that a drive makes, and gets the run its number: what the credentials or the store do not permit
    /// is an error now, and not at the first file.
    ///
    /// # Errors
    /// As [`BucketDrive::look`]; [`DriveError::Io`] for a store that overwrites what exists.
    pub async fn begin_run(&self) -> Result<(), DriveError> {
        self.0.claim_run().await.map(drop)
    }

    /// Removes everything of the drive from the bucket, the owner's object last. For an owner who refers to nothing there any
    /// more; nothing may be written or read afterwards.
    ///
    /// # Errors
    /// The drive is another owner's, a later run has begun, or the store does not serve: another attempt goes on.
    pub async fn withdraw(&self) -> Result<(), DriveError> {
        self.look().await?;
        self.0.check_run().await?;
        for prefix in [PACKS, RUNS] {
            self.0.remove_all(prefix).await?;
        }
        Ok(self.0.requests.delete(OWNER).await?)
    }
}

/// # Errors
/// An object that is another owner's, or none.
pub(crate) fn of_owner(object: &[u8], owner: OwnerId) -> Result<(), DriveError> {
    match decode_owner(object) {
        Some(found) if found == owner => Ok(()),
        Some(found) => {
            let why = "another file server has it, or had it and did not remove it";
            Err(refused(format!("the drive belongs to the store {found}, and this is {owner}: {why}")))
        }
        None => Err(refused(format!("object {OWNER} is damaged"))),
    }
}

impl Inner {
    async fn remove_all(&self, prefix: &str) -> Result<(), DriveError> {
        let mut keys = Vec::new();
        loop {
            self.each_listed(prefix, |listed| {
                if keys.len() < Page::OBJECTS_MAX {
                    keys.push(listed.key.clone());
                }
            })
            .await?;
            if keys.is_empty() {
                return Ok(());
            }
            for some in keys.chunks(DELETED_AT_ONCE) {
                let deleted = join_all(some.iter().map(|key| self.requests.delete(key))).await;
                deleted.into_iter().collect::<Result<(), _>>()?;
            }
            if keys.len() < Page::OBJECTS_MAX {
                return Ok(());
            }
            keys.clear();
        }
    }
}

/// Objects that are deleted at a time.
const DELETED_AT_ONCE: usize = 16;
