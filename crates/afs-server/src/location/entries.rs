//! Calls about one entry.

use std::sync::Arc;

use afs_db::EntryKey;
use afs_rpc::{Caller, Table};
use afs_wire::error::AbortCode;
use afs_wire::rpc::Nothing;
use afs_wire::vl;

use super::{LocationServer, code, convert, owner_only};

pub(super) fn add(table: Table<LocationServer>) -> Table<LocationServer> {
    table
        .call::<vl::GetEntryById, _, _, _>(
            |server: Arc<LocationServer>, _, call: vl::GetEntryById| async move {
                let key = convert::by_id(call.volume, call.kind);
                server.counted(503, server.old_entry(key).await)
            },
        )
        .call::<vl::GetEntryByNameO, _, _, _>(
            |server: Arc<LocationServer>, _, call: vl::GetEntryByNameO| async move {
                server.counted(504, server.old_entry(convert::by_name(&call.name)).await)
            },
        )
        .call::<vl::GetEntryByIdN, _, _, _>(
            |server: Arc<LocationServer>, _, call: vl::GetEntryByIdN| async move {
                let key = convert::by_id(call.volume, call.kind);
                server.counted(518, server.entry(key).await.map(|entry| vl::EntryReply { entry }))
            },
        )
        .call::<vl::GetEntryByNameN, _, _, _>(
            |server: Arc<LocationServer>, _, call: vl::GetEntryByNameN| async move {
                let entry = server.entry(convert::by_name(&call.name)).await;
                server.counted(519, entry.map(|entry| vl::EntryReply { entry }))
            },
        )
        .call::<vl::GetEntryByNameU, _, _, _>(
            |server: Arc<LocationServer>, _, call: vl::GetEntryByNameU| async move {
                server.counted(527, server.uuid_entry(&call).await)
            },
        )
        .call::<vl::CreateEntry, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::CreateEntry| async move {
                server.counted(501, server.create(&caller, &call.entry.into()).await)
            },
        )
        .call::<vl::CreateEntryN, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::CreateEntryN| async move {
                server.counted(517, server.create(&caller, &call.entry).await)
            },
        )
        .call::<vl::ReplaceEntry, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::ReplaceEntry| async move {
                let vl::ReplaceEntry { volume, kind, entry, release } = call;
                let call = vl::ReplaceEntryN { volume, kind, entry: entry.into(), release };
                server.counted(506, server.replace(&caller, call).await)
            },
        )
        .call::<vl::ReplaceEntryN, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::ReplaceEntryN| async move {
                server.counted(520, server.replace(&caller, call).await)
            },
        )
        .call::<vl::DeleteEntry, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::DeleteEntry| async move {
                server.counted(502, server.delete(&caller, &call).await)
            },
        )
        .call::<vl::UpdateEntry, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::UpdateEntry| async move {
                let key = convert::by_id(call.volume, call.kind);
                server.counted(507, server.update(&caller, key, &call.update, call.release).await)
            },
        )
        .call::<vl::UpdateEntryByName, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::UpdateEntryByName| async move {
                let key = convert::by_name(&call.name);
                server.counted(524, server.update(&caller, key, &call.update, call.release).await)
            },
        )
        .call::<vl::GetNewVolumeId, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::GetNewVolumeId| async move {
                server.counted(505, server.new_volume_id(&caller, &call).await)
            },
        )
}

impl LocationServer {
    async fn entry(&self, key: Result<EntryKey, AbortCode>) -> Result<vl::Entry, AbortCode> {
        let located = self.db.entry(key?).await.map_err(code)?;
        Ok(convert::entry(&located, 0))
    }

    async fn old_entry(&self, key: Result<EntryKey, AbortCode>) -> Result<vl::OldEntryReply, AbortCode> {
        Ok(vl::OldEntryReply { entry: self.entry(key).await?.into() })
    }

    async fn uuid_entry(&self, call: &vl::GetEntryByNameU) -> Result<vl::UuidEntryReply, AbortCode> {
        let located = self.db.entry(convert::by_name(&call.name)?).await.map_err(code)?;
        Ok(vl::UuidEntryReply { entry: convert::uuid_entry(&located) })
    }

    async fn create(&self, caller: &Caller, entry: &vl::Entry) -> Result<Nothing, AbortCode> {
        owner_only(caller)?;
        self.db.create(convert::proposal(entry)?).await.map_err(code)
    }

    async fn replace(&self, caller: &Caller, call: vl::ReplaceEntryN) -> Result<Nothing, AbortCode> {
        owner_only(caller)?;
        let (kind, release) = (convert::kind(call.kind)?, convert::release(call.release)?);
        self.db.replace(call.volume, kind, convert::proposal(&call.entry)?, release).await.map_err(code)
    }

    async fn delete(&self, caller: &Caller, call: &vl::DeleteEntry) -> Result<Nothing, AbortCode> {
        owner_only(caller)?;
        self.db.delete(call.volume, convert::kind(call.kind)?).await.map_err(code)
    }

    async fn update(
        &self,
        caller: &Caller,
        key: Result<EntryKey, AbortCode>,
        update: &vl::EntryUpdate,
        release: vl::ReleaseType,
    ) -> Result<Nothing, AbortCode> {
        owner_only(caller)?;
        self.db.update(key?, convert::update(update)?, convert::release(release)?).await.map_err(code)
    }

    async fn new_volume_id(
        &self,
        caller: &Caller,
        call: &vl::GetNewVolumeId,
    ) -> Result<vl::GetNewVolumeIdReply, AbortCode> {
        owner_only(caller)?;
        let first = self.db.new_volume_ids(call.count).await.map_err(code)?;
        Ok(vl::GetNewVolumeIdReply { first })
    }
}
