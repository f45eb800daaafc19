//! The rules of docs/protocol/ptserver.md, case by case, over rows in memory.

mod access_rules;
mod changes;
mod creation;
mod foreign_users;
mod membership;
mod revocation;

use std::net::Ipv4Addr;

use afs_rpc::{Suspended, Terms, TokenGeneration, UnixTime};
use afs_wire::ids::ViceId;

use super::{
    After, BAD_ID, Change, Entry, Fields, GROUPS_MAX, Kinds, MEMBERS_MAX, NewEntry, NewId, Privacy,
    ProtectionError, Refusal, Requester, RequesterIdentity, Status, bootstrap, change, cps, create, delete,
    fields, gone, ids, list, members, rows,
};
use crate::{MemoryRows, Rows as _};

const NOW: UnixTime = UnixTime { secs: 1000, nanos: 0 };
const CELL: Requester = Requester::CELL;
const ADMINISTRATORS: ViceId = ViceId::ADMINISTRATORS;

fn refused<T>(refusal: Refusal) -> Result<T, ProtectionError> {
    Err(refusal.into())
}

fn as_user(name: &str) -> Requester {
    Requester { identity: RequesterIdentity::local(name), restricted: false }
}

fn foreign(name: &str) -> Requester {
    Requester { identity: RequesterIdentity::foreign(name), restricted: false }
}

const ANONYMOUS: Requester = Requester { identity: RequesterIdentity::Anonymous, restricted: false };

fn new(rows: &mut MemoryRows, by: &Requester, name: &str, id: NewId) -> Result<ViceId, ProtectionError> {
    create::create(rows, by, &NewEntry { name: name.into(), id, owner: ViceId(0) })
}

fn group(rows: &mut MemoryRows, by: &Requester, name: &str, owner: i32) -> Result<ViceId, ProtectionError> {
    create::create(rows, by, &NewEntry { name: name.into(), id: NewId::Group, owner: ViceId(owner) })
}

/// admin 1, alice 2, bob 3, carol 4.
fn cell() -> MemoryRows {
    let mut rows = MemoryRows::default();
    bootstrap::bootstrap(&mut rows, "admin").unwrap();
    for name in ["alice", "bob", "carol"] {
        new(&mut rows, &CELL, name, NewId::User).unwrap();
    }
    rows
}

fn id(rows: &MemoryRows, name: &str) -> ViceId {
    rows::id_of(rows, name).unwrap().unwrap()
}

fn status(rows: &MemoryRows, name: &str) -> Status {
    list::status(rows, &CELL, id(rows, name)).unwrap()
}

fn join(rows: &mut MemoryRows, member: &str, group: &str) -> Result<(), ProtectionError> {
    let (member, group) = (id(rows, member), id(rows, group));
    members::add(rows, &CELL, member, group)
}

fn ids(raw: &[i32]) -> Vec<ViceId> {
    raw.iter().copied().map(ViceId).collect()
}
