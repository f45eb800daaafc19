//! Location service calls about one entry.

use std::sync::Arc;

use afs_db::EntryKey;
use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::rpc::Nothing;
use afs_wire::vl;

use super::{LocationServer, code, convert};
use crate::guard::{administrators, anyone};

pub(super) fn add(table: Table<LocationServer>) -> Table<LocationServer> {
    add_changes(add_questions(table))
}

type Server = Arc<LocationServer>;

fn add_questions(table: Table<LocationServer>) -> Table<LocationServer> {
    let table = anyone(table, |server: Server, call: vl::GetEntryById| async move {
        server.old_entry(convert::by_id(call.volume, call.kind)).await
    });
    let table = anyone(table, |server: Server, call: vl::GetEntryByNameO| async move {
        server.old_entry(convert::by_name(&call.name)).await
    });
    let table = anyone(table, |server: Server, call: vl::GetEntryByIdN| async move {
        Ok(vl::EntryReply { entry: server.entry(convert::by_id(call.volume, call.kind)).await? })
    });
    let table = anyone(table, |server: Server, call: vl::GetEntryByNameN| async move {
        Ok(vl::EntryReply { entry: server.entry(convert::by_name(&call.name)).await? })
    });
    anyone(table, |server: Server, call: vl::GetEntryByNameU| async move { server.uuid_entry(&call).await })
}

fn add_changes(table: Table<LocationServer>) -> Table<LocationServer> {
    let table = administrators(table, |server: Server, call: vl::CreateEntry| async move {
        server.create(&call.entry.into()).await
    });
    let table = administrators(table, |server: Server, call: vl::CreateEntryN| async move {
        server.create(&call.entry).await
    });
    let table = administrators(table, |server: Server, call: vl::ReplaceEntry| async move {
        let vl::ReplaceEntry { volume, kind, entry, release } = call;
        server.replace(vl::ReplaceEntryN { volume, kind, entry: entry.into(), release }).await
    });
    let table =
        administrators(
            table,
            |server: Server, call: vl::ReplaceEntryN| async move { server.replace(call).await },
        );
    let table =
        administrators(
            table,
            |server: Server, call: vl::DeleteEntry| async move { server.delete(&call).await },
        );
    let table = administrators(table, |server: Server, call: vl::ExchangeNames| async move {
        server.db.exchange_names(call.one, call.other).await.map_err(code)
    });
    let table = administrators(table, |server: Server, call: vl::UpdateEntry| async move {
        server.update(convert::by_id(call.volume, call.kind), &call.update, call.release).await
    });
    let table = administrators(table, |server: Server, call: vl::UpdateEntryByName| async move {
        server.update(convert::by_name(&call.name), &call.update, call.release).await
    });
    administrators(table, |server: Server, call: vl::GetNewVolumeId| async move {
        server.new_volume_id(&call).await
    })
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

    async fn create(&self, entry: &vl::Entry) -> Result<Nothing, AbortCode> {
        self.db.create(convert::proposal(entry)?).await.map_err(code)
    }

    async fn replace(&self, call: vl::ReplaceEntryN) -> Result<Nothing, AbortCode> {
        let (kind, release) = (convert::kind(call.kind)?, convert::release(call.release)?);
        self.db.replace(call.volume, kind, convert::proposal(&call.entry)?, release).await.map_err(code)
    }

    async fn delete(&self, call: &vl::DeleteEntry) -> Result<Nothing, AbortCode> {
        self.db.delete(call.volume, convert::kind(call.kind)?).await.map_err(code)
    }

    async fn update(
        &self,
        key: Result<EntryKey, AbortCode>,
        update: &vl::EntryUpdate,
        release: vl::ReleaseType,
    ) -> Result<Nothing, AbortCode> {
        self.db.update(key?, convert::update(update)?, convert::release(release)?).await.map_err(code)
    }

    async fn new_volume_id(&self, call: &vl::GetNewVolumeId) -> Result<vl::GetNewVolumeIdReply, AbortCode> {
        let first = self.db.new_volume_ids(call.count).await.map_err(code)?;
        Ok(vl::GetNewVolumeIdReply { first })
    }
}
