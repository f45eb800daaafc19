//! Location service calls that list entries.

use std::sync::Arc;

use afs_db::{Filter, Page, Pattern};
use afs_rpc::{Caller, Table};
use afs_wire::error::AbortCode;
use afs_wire::vl::{self, Attributes};
use afs_wire::xdr::BoundedVec;

use super::{LocationServer, code, convert};
use crate::guard::{Required, anyone, row};

/// Most entries of a reply that cannot be paged. A larger one is refused: the tools of today ask for pages.
const WHOLE_MAX: usize = 8192;

pub(super) fn add(table: Table<LocationServer>) -> Table<LocationServer> {
    type Server = Arc<LocationServer>;
    let table = anyone(table, |server: Server, call: vl::ListEntry| async move {
        let (remaining, next, entry) = server.next_entry(call.previous).await?;
        Ok(vl::ListEntryReply { remaining, next, entry: entry.into() })
    });
    let table = anyone(table, |server: Server, call: vl::ListEntryN| async move {
        let (remaining, next, entry) = server.next_entry(call.previous).await?;
        Ok(vl::ListEntryNReply { remaining, next, entry })
    });
    let table = anyone(table, |server: Server, call: vl::ListAttributes| async move {
        let entries = server.whole(&call.attributes).await?;
        let count = entries.len() as i32;
        let entries = BoundedVec::first_of(entries.into_iter().map(Into::into));
        Ok(vl::ListAttributesReply { count, entries })
    });
    let table = anyone(table, |server: Server, call: vl::LinkedList| async move {
        let entries = server.whole(&call.attributes).await?;
        let count = entries.len() as i32;
        Ok(vl::LinkedListReply { count, entries: vl::Chain(entries.into_iter().map(Into::into).collect()) })
    });
    let table = anyone(table, |server: Server, call: vl::ListAttributesN| async move {
        let entries = server.whole(&call.attributes).await?;
        let count = entries.len() as i32;
        Ok(vl::ListAttributesNReply { count, entries: BoundedVec::first_of(entries) })
    });
    let table = anyone(table, |server: Server, call: vl::LinkedListN| async move {
        let entries = server.whole(&call.attributes).await?;
        Ok(vl::LinkedListNReply { count: entries.len() as i32, entries: vl::Chain(entries) })
    });
    row(table, Required::AnyConnection, |server: Server, caller, call: vl::ListAttributesN2| async move {
        server.page(&caller, &call).await
    })
}

impl LocationServer {
    /// The entry after an index, with about how many follow and the index to continue from; 0 at the end.
    async fn next_entry(&self, previous: i32) -> Result<(i32, i32, vl::Entry), AbortCode> {
        let previous = u32::try_from(previous).map_err(|_| AbortCode::VL_BADINDEX)?;
        let Some(located) = self.db.next_entry(previous).await.map_err(code)? else {
            return Ok((0, 0, vl::Entry::default()));
        };
        let totals = self.db.totals().await.map_err(code)?;
        let entry = convert::entry(&located, 0);
        Ok((totals.entries.saturating_sub(1) as i32, located.row as i32, entry))
    }

    async fn whole(&self, attributes: &Attributes) -> Result<Vec<vl::Entry>, AbortCode> {
        let filter = filter(attributes)?;
        let (mut entries, mut start) = (Vec::new(), 0);
        loop {
            let page = self.db.list(filter.clone(), start, WHOLE_MAX + 1).await.map_err(code)?;
            entries.extend(wire_entries(&page));
            if entries.len() > WHOLE_MAX {
                return Err(AbortCode::VL_SIZEEXCEEDED);
            }
            match page.next {
                Some(next) => start = next,
                None => return Ok(entries),
            }
        }
    }

    async fn page(
        &self,
        caller: &Caller,
        call: &vl::ListAttributesN2,
    ) -> Result<vl::ListAttributesN2Reply, AbortCode> {
        let mut filter = filter(&call.attributes)?;
        filter.name = Pattern::parse(&convert::text(&call.name)?).map_err(convert::refused)?;
        if filter.name.is_some() && !self.guard.is_administrator(caller).await? {
            return Err(AbortCode::VL_PERM);
        }
        let start = u32::try_from(call.start).map_err(|_| AbortCode::VL_BADINDEX)?;
        let page = self.db.list(filter, start, vl::PAGE_MAX).await.map_err(code)?;
        Ok(vl::ListAttributesN2Reply {
            count: page.entries.len() as i32,
            entries: BoundedVec::first_of(wire_entries(&page)),
            // Zero here would make the tools start again, for ever.
            next: page.next.map_or(-1, |next| next as i32),
        })
    }
}

fn wire_entries(page: &Page) -> impl Iterator<Item = vl::Entry> + '_ {
    page.entries.iter().map(|listed| convert::entry(&listed.located, listed.match_index))
}

fn filter(attributes: &Attributes) -> Result<Filter, AbortCode> {
    let partition = match attributes.partition {
        None => None,
        Some(number) => Some(number.check().ok_or(AbortCode::VL_BADPARTITION)?),
    };
    Ok(Filter {
        server: attributes.server,
        partition,
        volume: attributes.volume,
        flags: attributes.flag,
        name: None,
    })
}
