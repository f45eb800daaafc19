//! Bytes that come from memory: as unsaved data of a file, or set aside for their user.

use std::sync::Arc;

use afs_wire::ids::{DataVersion, FileTime};
use bytes::Bytes;

use crate::data::{Content, FileData};
use crate::error::{Result, VenusError};
use crate::files::{Failure, Files, SetAside};
use crate::identity::User;
use crate::key::Key;
use crate::vnode::Vnode;

impl Files {
    /// Makes the bytes the unsaved data of a file, which has none: to be stored for a user onto a version that is empty.
    pub async fn unsaved_data(
        &self,
        vnode: &Vnode,
        user: User,
        version: DataVersion,
        bytes: Bytes,
        time: Option<FileTime>,
    ) -> Result<Arc<FileData>> {
        let data = self.data_of_bytes(version, bytes, time).await?;
        let replaced = vnode.state().file.replace_data(&data);
        drop(replaced);
        self.store_failed(vnode.key, user);
        Ok(data)
    }

    /// Sets bytes aside that no file has. Returns their number.
    pub async fn set_bytes_aside(
        &self,
        key: Key,
        user: User,
        bytes: Bytes,
        time: Option<FileTime>,
        error: &VenusError,
    ) -> Result<u64> {
        let data = self.data_of_bytes(DataVersion(0), bytes, time).await?;
        let number = data.file.id();
        let failure = Failure { error: error.clone(), since: self.wall() };
        self.add_aside(SetAside { key, user, failure, data, kept: None });
        Ok(number)
    }

    async fn data_of_bytes(
        &self,
        version: DataVersion,
        bytes: Bytes,
        time: Option<FileTime>,
    ) -> Result<Arc<FileData>> {
        let (cache, length) = (self.cache.clone(), bytes.len() as u64);
        let write = move || {
            let file = cache.create()?;
            file.write_at(0, &bytes)?;
            Ok(file)
        };
        let file = self.disk_moving(length, write).await?;
        let mut content = Content::new(version, 0);
        content.wrote(0..length, time.unwrap_or(self.time()));
        content.changing = false;
        Ok(Arc::new(FileData::new(file, content)))
    }
}
