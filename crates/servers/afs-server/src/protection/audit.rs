//! Audit kind and object of every call of the protection service.

use afs_wire::pt;

use crate::audit::AuditObject::{Id, Member};
use crate::audit::described;

described! {
    Change: pt::INewEntry |call| &*call.name;
    Change: pt::NewEntry |call| &*call.name;
    Change: pt::Delete |call| Id(call.id);
    Change: pt::ChangeEntry |call| Id(call.id);
    Change: pt::SetFieldsEntry |call| Id(call.id);
    Change: pt::SetMax |call| Id(call.id);
    Change: pt::AddToGroup |call| Member(call.member, call.group);
    Change: pt::RemoveFromGroup |call| Member(call.member, call.group);
    Read: pt::NameToId |call| call.names.first().map(|name| name.text()).unwrap_or_default();
    Read: pt::IdToName |call| Id(call.ids.first().copied().unwrap_or_default());
    Read: pt::GetCps |call| Id(call.id);
    Read: pt::GetCps2 |call| Id(call.id);
    Read: pt::GetHostCps |_| ();
    Read: pt::ListMax |_| ();
    Read: pt::ListEntry |call| Id(call.id);
    Read: pt::ListElements |call| Id(call.id);
    Read: pt::ListSuperGroups |call| Id(call.id);
    Read: pt::IsAMemberOf |call| Member(call.member, call.group);
    Read: pt::ListOwned |call| Id(call.owner);
    Read: pt::ListEntries |_| ();
    Probe: pt::WaitForChange |_| ();
}
