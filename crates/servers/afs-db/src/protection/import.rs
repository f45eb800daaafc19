//! Import of the content of a `prdb.DB0` into a protection database, part by part.

use afs_wire::ids::ViceId;

use super::bootstrap::{FIRST_USER, WELL_KNOWN};
use super::{Entry, ProtectionError, members, rows};
use crate::import::{MARK, Merged};
use crate::{Rows, RowsMut};

/// A part of an import: one transaction. Parts with entries precede those with their memberships.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Part {
    /// Users and groups.
    pub entries: Vec<Entry>,
    /// Memberships (member, group). Together with `entries` at most as many as the database takes at once.
    pub memberships: Vec<(ViceId, ViceId)>,
    /// The largest user id ever assigned. The counter never decreases.
    pub max_user: ViceId,
    /// The smallest group id ever assigned. The counter never increases.
    pub max_group: ViceId,
    /// The first part requires a database with only the entries of every cell, unless it is to be merged, or
    /// an earlier import was not finished.
    pub first: bool,
    /// The last part marks the import as finished.
    pub last: bool,
    /// Whether the database may have entries. Those of the same name and id stay, others are conflicts.
    pub merge: bool,
    /// As `merge`, but entries that contradict the file are replaced, and those of the same name and id take
    /// the file's owner, quotas and flags. Memberships stay, and those of the file are added.
    pub replace: bool,
}

/// The changes to be written.
struct Plan {
    /// Entries of every new cell that are to be replaced.
    removed: Vec<Entry>,
    added: Vec<Entry>,
    merged: Merged,
}

/// Whether an import was started and not finished.
pub(crate) fn is_unfinished(rows: &(impl Rows + ?Sized)) -> Result<bool, ProtectionError> {
    Ok(rows.get(rows::META, MARK)?.is_some())
}

/// Reports the effect of a part.
pub(crate) fn check(rows: &(impl Rows + ?Sized), part: &Part) -> Result<Merged, ProtectionError> {
    let mut plan = plan(rows, part)?;
    plan.merged.memberships = part.memberships.len() as u64;
    Ok(plan.merged)
}

/// Writes a part, unless there are conflicts.
pub(crate) fn write(rows: &mut (impl RowsMut + ?Sized), part: &Part) -> Result<Merged, ProtectionError> {
    let mut plan = plan(rows, part)?;
    if !plan.merged.conflicts.is_empty() {
        return Ok(plan.merged);
    }
    for entry in &plan.removed {
        match plan.added.iter().any(|new| new.id == entry.id) && part.replace {
            true => rows::remove(rows, entry)?,
            false => remove(rows, entry)?,
        }
    }
    for entry in &plan.added {
        rows::insert(rows, entry)?;
    }
    for (member, group) in &part.memberships {
        if !members::is_in(rows, *member, *group)? {
            members::put(rows, *member, *group)?;
            plan.merged.memberships += 1;
        }
    }
    raise(rows, part)?;
    match part.last {
        true => rows.delete(rows::META, MARK)?,
        false => rows.put(rows::META, MARK, &[1])?,
    }
    Ok(plan.merged)
}

fn plan(rows: &(impl Rows + ?Sized), part: &Part) -> Result<Plan, ProtectionError> {
    let mut plan = Plan { removed: Vec::new(), added: Vec::new(), merged: Merged::default() };
    let strict = !(part.merge || part.replace || is_unfinished(rows)?);
    if part.first && strict && has_more_than_a_new_cell(rows)? {
        plan.merged.conflict("the protection database has users and groups already".into());
        return Ok(plan);
    }
    for entry in &part.entries {
        plan.place(rows, entry, part)?;
    }
    Ok(plan)
}

impl Plan {
    fn place(
        &mut self,
        rows: &(impl Rows + ?Sized),
        entry: &Entry,
        part: &Part,
    ) -> Result<(), ProtectionError> {
        let by_id = rows::entry(rows, entry.id)?;
        // Files of OpenAFS know no revocations: those of here stay.
        let tokens = by_id.as_ref().map(|there| there.tokens).unwrap_or_default();
        let entry = &Entry { tokens, ..entry.clone() };
        let by_name = match rows::id_of(rows, &entry.name)? {
            Some(id) if id != entry.id => rows::entry(rows, id)?,
            _ => None,
        };
        let same = by_id.as_ref().is_some_and(|there| there.name == entry.name) && by_name.is_none();
        let of_new_cell = |there: &Entry| is_well_known(there) || there.id == FIRST_USER;
        let others: Vec<Entry> = by_id.into_iter().chain(by_name).collect();
        if others.is_empty() {
            self.add(entry);
        } else if same && (part.merge || others.contains(entry)) {
            self.merged.there += 1;
        } else if !part.merge && !part.replace && others.iter().all(of_new_cell) {
            self.make_room(others);
            self.add(entry);
        } else if part.replace && others.iter().all(|there| there.id == entry.id || !is_well_known(there)) {
            self.merged.replaced += others.len() as u64;
            self.make_room(others);
            self.add(entry);
        } else {
            let there: Vec<String> =
                others.iter().map(|other| format!("{} ({})", other.name, other.id.0)).collect();
            let text = format!("{} ({}) is another here: {}", entry.name, entry.id.0, there.join(", "));
            self.merged.conflict(text);
        }
        Ok(())
    }

    /// One entry may conflict with two.
    fn make_room(&mut self, others: Vec<Entry>) {
        let new = others.into_iter().filter(|entry| !self.removed.contains(entry)).collect::<Vec<_>>();
        self.removed.extend(new);
    }

    fn add(&mut self, entry: &Entry) {
        self.merged.added += 1;
        self.added.push(entry.clone());
    }
}

/// Whether the database has entries beyond those of every new cell.
fn has_more_than_a_new_cell(rows: &(impl Rows + ?Sized)) -> Result<bool, ProtectionError> {
    let some = rows::entries(rows, super::BAD_ID, ViceId(i32::MAX), WELL_KNOWN.len() + 2)?;
    Ok(some.iter().any(|entry| !WELL_KNOWN.contains(&entry.id) && entry.id != FIRST_USER))
}

fn is_well_known(entry: &Entry) -> bool {
    WELL_KNOWN.contains(&entry.id)
}

/// Removes an entry with its memberships. One that every cell has keeps its members: it is written again at
/// once.
fn remove(rows: &mut (impl RowsMut + ?Sized), entry: &Entry) -> Result<(), ProtectionError> {
    let id = entry.id;
    if !is_well_known(entry) {
        for group in members::groups_of(rows, id)? {
            members::take(rows, id, group)?;
        }
        for member in if id.is_group() { members::members_of(rows, id)? } else { Vec::new() } {
            members::take(rows, member, id)?;
        }
    }
    rows::remove(rows, entry)
}

fn raise(rows: &mut (impl RowsMut + ?Sized), part: &Part) -> Result<(), ProtectionError> {
    let (user, group) = rows::max_ids(rows)?;
    if user.is_none_or(|user| user < part.max_user) {
        rows::set_max(rows, part.max_user, false)?;
    }
    if group.is_none_or(|group| group > part.max_group) {
        rows::set_max(rows, part.max_group, true)?;
    }
    Ok(())
}
