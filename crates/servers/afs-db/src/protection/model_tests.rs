//! Random histories compared with a simple model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afs_kv::{Config, Kv, MemoryMedium};
use afs_rpc::{Parts, Terms, UnixTime};
use afs_wire::ids::ViceId;
use proptest::prelude::*;

use super::{
    After, Change, EmbeddedProtectionDb, Kinds, NESTING_MAX, NewEntry, NewId, ProtectionDb, Requester, Status,
};
use crate::test_answers::wait;

const CELL: Requester = Requester::CELL;
const NOW: UnixTime = UnixTime { secs: 1000, nanos: 0 };
/// Page size for reading lists.
const PAGE: usize = 4;

/// A change by an administrator; numbers choose among existing entries.
#[derive(Clone, Debug)]
enum Move {
    NewUser(u8),
    NewGroup(u8, usize),
    Delete(usize),
    Add(usize, usize),
    Remove(usize, usize),
    Rename(usize, u8),
    Chown(usize, usize),
    Renumber(usize, i32),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        2 => (0..12u8).prop_map(Move::NewUser),
        3 => (0..12u8, any::<usize>()).prop_map(|(name, owner)| Move::NewGroup(name, owner)),
        1 => any::<usize>().prop_map(Move::Delete),
        8 => any::<(usize, usize)>().prop_map(|(member, group)| Move::Add(member, group)),
        2 => any::<(usize, usize)>().prop_map(|(member, group)| Move::Remove(member, group)),
        1 => (any::<usize>(), 0..12u8).prop_map(|(id, name)| Move::Rename(id, name)),
        1 => any::<(usize, usize)>().prop_map(|(id, owner)| Move::Chown(id, owner)),
        1 => (any::<usize>(), 1..60i32).prop_map(|(id, to)| Move::Renumber(id, to)),
    ];
    prop::collection::vec(one, 1..80)
}

/// Names, owners and pairs, without indexes or counts.
#[derive(Default, Debug)]
struct Model {
    names: BTreeMap<ViceId, String>,
    owners: BTreeMap<ViceId, ViceId>,
    members: BTreeSet<(ViceId, ViceId)>,
    /// Names that users have had.
    given_up: BTreeSet<String>,
}

impl Model {
    fn ids(&self, keep: impl Fn(&ViceId) -> bool) -> Vec<ViceId> {
        self.names.keys().copied().filter(keep).collect()
    }

    fn pick(ids: &[ViceId], choice: usize) -> ViceId {
        ids[choice % ids.len()]
    }

    fn any(&self, choice: usize) -> ViceId {
        Self::pick(&self.ids(|id| self.owners.contains_key(id)), choice)
    }

    fn group(&self, choice: usize) -> ViceId {
        Self::pick(&self.ids(|id| id.is_group() && self.owners.contains_key(id)), choice)
    }

    fn is_taken(&self, name: &str) -> bool {
        self.names.values().any(|taken| taken == name)
    }

    fn parents(&self, id: ViceId) -> Vec<ViceId> {
        self.members.iter().filter(|(_, member)| *member == id).map(|(group, _)| *group).collect()
    }

    fn children(&self, id: ViceId) -> Vec<ViceId> {
        self.members.iter().filter(|(group, _)| *group == id).map(|(_, member)| *member).collect()
    }

    fn closure(&self, id: ViceId) -> BTreeSet<ViceId> {
        let parents = self.parents(id);
        parents.iter().flat_map(|parent| self.closure(*parent)).chain(parents.iter().copied()).collect()
    }

    fn height(&self, id: ViceId, next: &dyn Fn(ViceId) -> Vec<ViceId>) -> usize {
        1 + next(id).into_iter().map(|id| self.height(id, next)).max().unwrap_or(0)
    }

    fn may_add(&self, member: ViceId, group: ViceId) -> bool {
        if self.members.contains(&(group, member)) {
            return false;
        }
        if !member.is_group() {
            return true;
        }
        if member == group || self.closure(group).contains(&member) {
            return false;
        }
        let above = self.height(group, &|id| self.parents(id));
        let subgroups = |id| self.children(id).into_iter().filter(|id| id.is_group()).collect();
        above + self.height(member, &subgroups) <= NESTING_MAX
    }

    fn prefix(&self, owner: ViceId) -> String {
        self.names[&owner].split(':').next().unwrap().into()
    }

    fn give_up(&mut self, id: ViceId) {
        if !id.is_group() {
            self.given_up.insert(self.names[&id].clone());
        }
    }

    fn forget(&mut self, id: ViceId) {
        self.give_up(id);
        self.names.remove(&id);
        self.owners.remove(&id);
        self.members.retain(|(group, member)| *group != id && *member != id);
        self.owners.values_mut().filter(|owner| **owner == id).for_each(|owner| *owner = ViceId(0));
    }

    fn renumber(&mut self, from: ViceId, to: ViceId) {
        let new = |id: ViceId| if id == from { to } else { id };
        self.names = self.names.iter().map(|(id, name)| (new(*id), name.clone())).collect();
        self.owners = self.owners.iter().map(|(id, owner)| (new(*id), new(*owner))).collect();
        self.members = self.members.iter().map(|(group, member)| (new(*group), new(*member))).collect();
    }
}

fn open() -> EmbeddedProtectionDb {
    let medium = Arc::new(MemoryMedium::default());
    let kv = Kv::open(medium, crate::TABLES, Parts::inline(), Config::default()).unwrap();
    let db = EmbeddedProtectionDb::new(kv);
    wait(super::bootstrap_protection(&db, "admin")).unwrap();
    db
}

fn everything(db: &EmbeddedProtectionDb) -> Vec<Status> {
    let (mut all, mut after) = (Vec::new(), After::START);
    loop {
        let page = wait(db.list(CELL, Kinds { users: true, groups: true }, after, PAGE)).unwrap();
        all.extend(page.items);
        let Some(next) = page.next else { return all };
        after = next;
    }
}

/// The model of a database with only the initial entries. Fixed entries have no owner here, so changes leave
/// them alone.
fn model(db: &EmbeddedProtectionDb) -> Model {
    let mut model = Model::default();
    for Status { entry, .. } in everything(db) {
        model.names.insert(entry.id, entry.name);
        if entry.id == ViceId(1) || entry.id == ViceId::BACKUP {
            model.owners.insert(entry.id, entry.owner);
        }
    }
    model.members.insert((ViceId::ADMINISTRATORS, ViceId(1)));
    model
}

fn step(db: &EmbeddedProtectionDb, model: &mut Model, step: &Move) {
    match *step {
        Move::NewUser(name) => {
            let name = format!("user{name}");
            let new = NewEntry { name: name.clone(), id: NewId::User, owner: ViceId(0) };
            let made = wait(db.create(CELL, new));
            assert_eq!(made.is_ok(), !model.is_taken(&name));
            if let Ok(id) = made {
                assert!(model.names.insert(id, name).is_none(), "the id was in use");
                model.owners.insert(id, ViceId::ADMINISTRATORS);
            }
        }
        Move::NewGroup(name, owner) => {
            let owner = model.any(owner);
            let name = format!("{}:group{name}", model.prefix(owner));
            let new = NewEntry { name: name.clone(), id: NewId::Group, owner };
            let made = wait(db.create(CELL, new));
            assert_eq!(made.is_ok(), !model.is_taken(&name), "{name}: {made:?}");
            if let Ok(id) = made {
                assert!(model.names.insert(id, name).is_none(), "the id was in use");
                model.owners.insert(id, owner);
            }
        }
        Move::Delete(id) => {
            let id = model.any(id);
            let is_last = model.children(ViceId::ADMINISTRATORS) == [id];
            assert_eq!(wait(db.delete(CELL, id, NOW)).is_ok(), !is_last, "{id}");
            if !is_last {
                model.forget(id);
            }
            if model.owners.len() < 2 {
                *model = refill(db, std::mem::take(model));
            }
        }
        Move::Add(member, group) => {
            let (member, group) = (model.any(member), model.group(group));
            let added = wait(db.add_member(CELL, member, group));
            assert_eq!(added.is_ok(), model.may_add(member, group), "{member} to {group}: {added:?}");
            if added.is_ok() {
                model.members.insert((group, member));
            }
        }
        Move::Remove(member, group) => {
            let (member, group) = (model.any(member), model.group(group));
            let removed = wait(db.remove_member(CELL, member, group));
            assert_eq!(removed.is_ok(), model.members.remove(&(group, member)));
        }
        Move::Rename(id, name) => rename(db, model, id, name),
        Move::Chown(id, owner) => chown(db, model, id, owner),
        Move::Renumber(id, to) => {
            let id = model.any(id);
            let to = if id.is_group() { ViceId(-300 - to) } else { ViceId(to) };
            let change = Change { id: Some(to), ..Change::default() };
            let changed = wait(db.change(CELL, id, change, NOW));
            assert_eq!(changed.is_ok(), id == to || !model.names.contains_key(&to));
            if changed.is_ok() {
                model.renumber(id, to);
            }
        }
    }
    if !model.ids(|id| id.is_group()).iter().any(|id| model.owners.contains_key(id)) {
        *model = refill(db, std::mem::take(model));
    }
}

/// Changes need at least one user and one group.
fn refill(db: &EmbeddedProtectionDb, mut model: Model) -> Model {
    for (name, kind) in [("somebody", NewId::User), ("some", NewId::Group)] {
        let new = NewEntry { name: name.into(), id: kind, owner: ViceId(0) };
        if let Ok(id) = wait(db.create(CELL, new)) {
            model.names.insert(id, name.into());
            model.owners.insert(id, ViceId::ADMINISTRATORS);
        }
    }
    model
}

fn rename(db: &EmbeddedProtectionDb, model: &mut Model, id: usize, name: u8) {
    let id = model.any(id);
    let owner = model.owners[&id];
    if id.is_group() && owner == ViceId(0) {
        return;
    }
    let name = match id.is_group() {
        true if owner == id => format!("own{name}:group"),
        true => format!("{}:group{name}", model.prefix(owner)),
        false => format!("user{name}"),
    };
    let changed = wait(db.change(CELL, id, Change { name: Some(name.clone()), ..Change::default() }, NOW));
    let itself = model.names[&id] == name;
    assert_eq!(changed.is_ok(), itself || !model.is_taken(&name), "{name}: {changed:?}");
    if changed.is_ok() {
        if !itself {
            model.give_up(id);
        }
        model.names.insert(id, name);
    }
}

fn chown(db: &EmbeddedProtectionDb, model: &mut Model, id: usize, owner: usize) {
    let (id, owner) = (model.group(id), model.any(owner));
    let old = model.names[&id].clone();
    let name = match old.split_once(':') {
        Some((_, rest)) if owner != id && owner != model.owners[&id] => {
            format!("{}:{rest}", model.prefix(owner))
        }
        _ => old.clone(),
    };
    let changed = wait(db.change(CELL, id, Change { owner: Some(owner), ..Change::default() }, NOW));
    assert_eq!(changed.is_ok(), name == old || !model.is_taken(&name), "{old} to {owner}: {changed:?}");
    if changed.is_ok() {
        model.names.insert(id, name);
        model.owners.insert(id, owner);
    }
}

/// Compares the database with the model in every query.
fn compare(db: &EmbeddedProtectionDb, model: &Model) {
    let all = everything(db);
    assert_eq!(all.len(), model.names.len());
    for Status { entry, count } in all {
        let id = entry.id;
        assert_eq!(model.names.get(&id), Some(&entry.name));
        assert_eq!(wait(db.ids_of(vec![entry.name.clone()])).unwrap(), [Some(id)]);
        assert_eq!(model.owners.get(&id).unwrap_or(&ViceId::ADMINISTRATORS), &entry.owner);
        let elements = if id.is_group() { model.children(id) } else { model.parents(id) };
        assert_eq!(count as usize, elements.len(), "{}", entry.name);
        assert_eq!(wait(db.elements(CELL, id)).unwrap(), elements);
        let mut cps = model.closure(id);
        cps.extend([id, ViceId::ANYUSER]);
        if !matches!(id, ViceId::ANYUSER | ViceId::ANONYMOUS) {
            cps.insert(ViceId::AUTHUSER);
        }
        let tokens = |generation| Terms { generation, ..Terms::default() };
        assert_eq!(wait(db.cps(id, tokens(entry.tokens))).unwrap(), Vec::from_iter(cps));
        // No token of an earlier holder of the name counts.
        let is_later = !model.given_up.contains(&entry.name) || wait(db.cps(id, Terms::default())).is_err();
        assert!(is_later, "{}: {:?}", entry.name, entry.tokens);
        let owned = wait(db.owned(CELL, id, After::START, 1000)).unwrap().items;
        let fixed = |group: &ViceId| !model.owners.contains_key(group) && id == ViceId::ADMINISTRATORS;
        assert_eq!(
            owned,
            model.ids(|group| { group.is_group() && (model.owners.get(group) == Some(&id) || fixed(group)) })
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn histories_end_where_the_model_ends(moves in moves()) {
        let db = open();
        let mut model = model(&db);
        for one in &moves {
            let before = db.version();
            step(&db, &mut model, one);
            prop_assert!(db.version() >= before);
        }
        compare(&db, &model);
    }
}

#[test]
fn the_version_differs_after_a_change_and_answers_are_ready() {
    let db = open();
    let before = db.version();
    wait(db.cps(ViceId(1), Terms::default())).unwrap();
    assert_eq!(db.version(), before, "questions change nothing");
    wait(db.remove_member(CELL, ViceId(1), ViceId::ADMINISTRATORS)).unwrap();
    assert_ne!(db.version(), before);
    assert_eq!(wait(db.names_of(vec![ViceId(1), ViceId(9)])).unwrap(), [Some("admin".into()), None]);
    assert_eq!(
        wait(
            db.identify(Requester { identity: super::RequesterIdentity::local("admin"), restricted: false })
        ),
        Ok(ViceId(1))
    );
}
