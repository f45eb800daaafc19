//! Users, groups and memberships of a test cell.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::net::IpAddr;

use afs_rpc::sync::Notify;
use afs_rpc::{BoxFuture, Identity, Principal, Suspended, TokenGeneration};
use afs_server::subject::{ADMIN, BuiltInNames, NameService, Pending, Subject};
use afs_wire::acl::Names;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use parking_lot::Mutex;

pub const ALICE: ViceId = ViceId(5);
pub const BOB: ViceId = ViceId(6);
pub const CAROL: ViceId = ViceId(7);
pub const DORA: ViceId = ViceId(8);
pub const ERIN_ELSEWHERE: ViceId = ViceId(9);
pub const FRANK: ViceId = ViceId(10);
pub const OWEN: ViceId = ViceId(11);
pub const STAFF: ViceId = ViceId(-300);
/// In [`STAFF`].
pub const TEAM: ViceId = ViceId(-301);
/// Of hosts.
pub const LAB: ViceId = ViceId(-302);

/// A name service with names and memberships that a test changes.
#[derive(Default)]
pub struct People {
    built_in: BuiltInNames,
    state: Mutex<State>,
    moved: Notify,
}

struct State {
    version: u64,
    names: BTreeMap<&'static str, ViceId>,
    members: BTreeSet<(ViceId, ViceId)>,
    hosts: BTreeSet<(IpAddr, ViceId)>,
    tokens: BTreeMap<ViceId, TokenGeneration>,
    away: bool,
}

impl Default for State {
    fn default() -> Self {
        let names = [
            ("alice", ALICE),
            ("bob", BOB),
            ("carol", CAROL),
            ("dora", DORA),
            ("erin@else.where", ERIN_ELSEWHERE),
            ("frank", FRANK),
            ("owen", OWEN),
            ("admin:staff", STAFF),
            ("admin:team", TEAM),
            ("admin:lab", LAB),
        ];
        let members = [(TEAM, STAFF), (CAROL, TEAM), (FRANK, TEAM), (DORA, ViceId::ADMINISTRATORS)];
        let (hosts, tokens, away) = (BTreeSet::new(), BTreeMap::new(), false);
        State { version: 0, names: names.into(), members: members.into(), hosts, tokens, away }
    }
}

impl People {
    pub fn add(&self, member: ViceId, group: ViceId) {
        self.change(|state| _ = state.members.insert((member, group)));
    }

    pub fn remove(&self, member: ViceId, group: ViceId) {
        self.change(|state| _ = state.members.remove(&(member, group)));
    }

    pub fn add_host(&self, host: IpAddr, group: ViceId) {
        self.change(|state| _ = state.hosts.insert((host, group)));
    }

    /// Removes a user or group.
    pub fn delete(&self, name: &str) {
        self.change(|state| _ = state.names.remove(name));
    }

    /// Revokes the tokens of a user before this generation.
    pub fn revoke(&self, user: ViceId, before: u64) {
        self.change(|state| _ = state.tokens.insert(user, TokenGeneration(before)));
    }

    fn is_revoked(&self, user: ViceId, identity: &Identity) -> bool {
        let present = self.state.lock().tokens.get(&user).copied().unwrap_or_default();
        match identity.principal() {
            Some(Principal::Named { terms, .. }) => !terms.count_in(present),
            _ => false,
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        state.version += 1;
        drop(state);
        self.moved.notify_waiters();
    }

    /// Makes the name service unreachable.
    pub fn go_away(&self) {
        self.state.lock().away = true;
    }

    fn look_up(&self, name: &str) -> Option<ViceId> {
        self.built_in.id_of(name).or_else(|| self.state.lock().names.get(name).copied())
    }

    fn known(&self, identity: &Identity, host: IpAddr) -> Subject {
        let of_host = self.state.lock().hosts.clone();
        let of_host = of_host.into_iter().filter(|(address, _)| *address == host).map(|(_, group)| group);
        let subject = match identity.principal() {
            Some(Principal::Named { name, cell, terms }) => {
                let full = cell.as_ref().map_or_else(|| name.to_string(), |cell| format!("{name}@{cell}"));
                let user = self.look_up(&full).filter(|id| !id.is_group());
                user.map_or_else(Subject::anonymous, |id| self.member(id, cell.is_none(), &terms.suspended))
            }
            Some(Principal::CellKey) => Subject::administrator(),
            None if *identity == Identity::Local => Subject::administrator(),
            None => Subject::anonymous(),
        };
        subject.on_host_in(of_host)
    }

    fn member(&self, id: ViceId, local: bool, suspended: &Suspended) -> Subject {
        let members = self.state.lock().members.clone();
        let mut groups = BTreeSet::from([id]);
        loop {
            let more: BTreeSet<_> = members
                .iter()
                .filter(|(member, group)| groups.contains(member) && !suspended.has(*group))
                .map(|(_, group)| *group)
                .collect();
            if more.is_subset(&groups) {
                break;
            }
            groups.extend(more);
        }
        groups.insert(ViceId::ANYUSER);
        if local {
            groups.insert(ViceId::AUTHUSER);
        }
        Subject::new(id, groups)
    }

    fn answer<T: Send + 'static>(&self, value: T) -> Pending<'_, T> {
        let away = self.state.lock().away;
        Box::pin(ready(if away { Err(AbortCode(-1001)) } else { Ok(value) }))
    }
}

impl NameService for People {
    fn subject<'a>(&'a self, identity: &'a Identity, host: IpAddr) -> Pending<'a, Subject> {
        let known = self.known(identity, host);
        if self.is_revoked(known.id(), identity) {
            return Box::pin(ready(Err(AbortCode::RXGKEXPIRED)));
        }
        self.answer(known)
    }

    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>> {
        self.answer(names.iter().map(|name| self.look_up(name)).collect())
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>> {
        let name = |id: &ViceId| {
            let names = self.state.lock().names.clone();
            let ours = names.into_iter().find(|(_, known)| known == id).map(|(name, _)| name.to_owned());
            self.built_in.name_of(*id).or(ours)
        };
        self.answer(ids.iter().map(name).collect())
    }

    fn version(&self) -> Option<u64> {
        Some(self.state.lock().version)
    }

    fn changed(&self, since: u64) -> Option<BoxFuture<'_, ()>> {
        Some(Box::pin(async move {
            loop {
                let moved = self.moved.notified();
                if self.version() != Some(since) {
                    return;
                }
                moved.await;
            }
        }))
    }
}

/// The owner of everything that the cell's own process makes.
pub const OWNER_ID: ViceId = ADMIN;
