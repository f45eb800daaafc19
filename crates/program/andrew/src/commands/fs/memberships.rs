//! Look-ups of `andrew fs access` at the protection service: users and groups, and paths of memberships between them.

use crate::commands::pts::listed::Listed;
use crate::commands::pts::names;
use crate::commands::pts::route::{RouteOptions, Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::running_cells;
use afs_cell::ADMIN_NAME;
use afs_cell::tokens::{CellLocation, KeptToken, TokenStore};
use afs_server::Subject;
use afs_wire::acl::{Acl, NamedAcl, Names};
use afs_wire::ids::ViceId;
use afs_wire::pt;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most groups searched for a path to others.
const GROUPS_MAX: usize = 256;

/// The user or group whose rights are explained.
pub(super) struct NamedSubject {
    pub(super) name: String,
    pub(super) subject: Subject,
    /// Groups whose rights the user's token does not have.
    pub(super) without: Vec<ViceId>,
}

/// The user of the command in a cell.
pub(super) struct OwnName {
    pub(super) name: String,
    /// The groups whose rights the user's token does not have.
    pub(super) without: Vec<String>,
}

/// Client of the protection service, connected at its first call.
pub(super) struct ProtectionClient {
    route: RouteOptions,
    target: Option<Target>,
    /// All groups that the server has sent.
    listed: Listed,
}

/// Paths of memberships from a user or group to the groups that it is in.
pub(super) struct MembershipPaths {
    names: BTreeMap<ViceId, String>,
    /// From each group to the member through which it was found.
    from: BTreeMap<ViceId, ViceId>,
    start: ViceId,
}

/// Error for a name that the protection database does not have.
pub(super) fn unknown(name: &str, cell: &str) -> CommandError {
    CommandError::usage(format!(
        "fs: there is no user or group '{name}' in {cell}; `andrew pts listentries -users -groups` shows those there are"
    ))
}

impl ProtectionClient {
    pub(super) fn new(route: RouteOptions) -> Self {
        ProtectionClient { route, target: None, listed: Listed::default() }
    }

    fn target(&mut self) -> CommandResult<&mut Target> {
        let target = match self.target.take() {
            Some(target) => target,
            None => self.route.open()?,
        };
        Ok(self.target.insert(target))
    }

    /// A user or group with all its groups; anonymous without a name.
    pub(super) fn find(&mut self, name: Option<&str>) -> CommandResult<NamedSubject> {
        let Some(name) = name else {
            let subject = Subject::anonymous();
            return Ok(NamedSubject { name: "anybody".into(), subject, without: Vec::new() });
        };
        let target = self.target()?;
        let found = names::find(target, name).map_err(|error| match error.status {
            CommandError::USAGE => unknown(name, "the cell"),
            _ => error,
        })?;
        let id = found.id;
        let known = names::of(target, &[id])?.pop().unwrap_or_else(|| name.to_owned());
        let reply = target.call(&pt::GetCps { id });
        let groups = reply.map_err(|f| refused(f, &format!("unable to get the groups of {known}")))?.ids;
        Ok(NamedSubject { name: known, subject: Subject::new(id, groups.into_vec()), without: Vec::new() })
    }

    /// The user of the command, with the groups that the token has; anonymous without a name.
    pub(super) fn find_own(&mut self, own: Option<&OwnName>) -> CommandResult<NamedSubject> {
        let found = self.find(own.map(|own| own.name.as_str()))?;
        let Some(own) = own.filter(|own| !own.without.is_empty()) else { return Ok(found) };
        let without = names::find_all(self.target()?, &own.without)?;
        let without: Vec<ViceId> = without.into_iter().map(|party| party.id).collect();
        let (id, mut reached) = (found.subject.id(), BTreeSet::new());
        let mut fresh = VecDeque::from([id]);
        while let Some(next) = fresh.pop_front() {
            let groups = self.groups_of(next)?.into_iter();
            fresh.extend(groups.filter(|group| !without.contains(group) && reached.insert(*group)));
        }
        let all = found.subject.groups().iter().copied();
        let stays = |group: &ViceId| is_everybody(*group) || reached.contains(group);
        Ok(NamedSubject { subject: Subject::new(id, all.filter(stays)), without, ..found })
    }

    /// Ids for the names in a list.
    pub(super) fn resolve(&mut self, named: &NamedAcl) -> CommandResult<(Acl, Vec<(ViceId, String)>)> {
        let wanted: Vec<String> =
            named.positive.iter().chain(&named.negative).map(|entry| entry.name.clone()).collect();
        let unknown: Vec<String> =
            wanted.iter().filter(|name| ViceId::from_well_known_name(name).is_none()).cloned().collect();
        let mut known = KnownNames(Vec::new());
        if !unknown.is_empty() {
            let found = names::find_all(self.target()?, &unknown)?;
            known.0.extend(found.into_iter().map(|party| (party.id, party.text)));
        }
        let well_known = |name: &String| Some((ViceId::from_well_known_name(name)?, name.clone()));
        known.0.extend(wanted.iter().filter_map(well_known));
        let acl = named.resolve(&known).map_err(|error| CommandError::failed(format!("fs: {error}")))?;
        Ok((acl, known.0))
    }

    /// Shortest paths from a subject to some of its groups. There is no path where memberships may not be seen.
    pub(super) fn paths(
        &mut self,
        subject: &NamedSubject,
        wanted: &[ViceId],
    ) -> CommandResult<MembershipPaths> {
        let start = subject.subject.id();
        let mut paths = MembershipPaths {
            names: BTreeMap::from([(start, subject.name.clone())]),
            from: BTreeMap::new(),
            start,
        };
        let is_open = |paths: &MembershipPaths, id: &ViceId| {
            *id != start
                && !is_everybody(*id)
                && !subject.without.contains(id)
                && !paths.from.contains_key(id)
        };
        let mut fresh = VecDeque::from([start]);
        for _ in 0..GROUPS_MAX {
            let Some(id) = fresh.pop_front() else { break };
            if !wanted.iter().any(|group| is_open(&paths, group)) {
                break;
            }
            for group in self.groups_of(id)? {
                if is_open(&paths, &group) {
                    paths.from.insert(group, id);
                    fresh.push_back(group);
                }
            }
        }
        let ids: Vec<ViceId> = paths.from.keys().copied().collect();
        if !ids.is_empty() {
            paths.names.extend(ids.iter().copied().zip(names::of(self.target()?, &ids)?));
        }
        Ok(paths)
    }

    /// The groups that a user or group is a member of directly, as far as they may be seen. Those of all calls are bounded.
    fn groups_of(&mut self, id: ViceId) -> CommandResult<Vec<ViceId>> {
        if id == ViceId::ANONYMOUS {
            return Ok(Vec::new());
        }
        let target = self.target()?;
        let reply = if id.is_group() {
            target.call(&pt::ListSuperGroups { id })
        } else {
            target.call(&pt::ListElements { id })
        };
        let groups = reply.map(|reply| reply.ids.into_vec()).unwrap_or_default();
        groups.iter().for_each(|group| _ = self.listed.insert(*group));
        self.target.iter().try_for_each(|target| self.listed.end_part(true, target))?;
        Ok(groups)
    }
}

/// Name of this user in the cell of a path: of the holder of a valid token; on the owner's mount the cell's
/// administrator; `None`: anonymous.
pub(super) fn own_name(place: Option<&CellLocation>) -> CommandResult<Option<OwnName>> {
    let Some(place) = place else { return Ok(None) };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let is_good = |kept: &KeptToken| kept.token().expires().is_none_or(|end| end.secs > now.as_secs());
    if let Some(kept) = TokenStore::current()?.get(&place.cell)?.filter(is_good) {
        return Ok(Some(OwnName { name: kept.user, without: kept.grant.without }));
    }
    let is_own = place.mount.as_ref().is_some_and(|mount| mount.serves);
    let owner = is_own && running_cells::serving(place)?.is_some();
    Ok(owner.then(|| OwnName { name: ADMIN_NAME.to_owned(), without: Vec::new() }))
}

/// Groups without explicit members.
fn is_everybody(id: ViceId) -> bool {
    [ViceId::ANYUSER, ViceId::AUTHUSER].contains(&id)
}

impl MembershipPaths {
    /// Names from the subject to a group; empty if the path is unknown or has no steps.
    pub(super) fn to(&self, group: ViceId) -> Vec<String> {
        let mut through = Vec::new();
        let mut at = group;
        while at != self.start {
            let (Some(name), Some(before)) = (self.names.get(&at), self.from.get(&at)) else {
                return Vec::new();
            };
            through.push(name.clone());
            at = *before;
        }
        through.extend(self.names.get(&self.start).cloned());
        through.reverse();
        through
    }
}

/// Names in one list, with their ids.
struct KnownNames(Vec<(ViceId, String)>);

impl Names for KnownNames {
    fn name_of(&self, id: ViceId) -> Option<String> {
        self.0.iter().find(|known| known.0 == id).map(|known| known.1.clone())
    }

    fn id_of(&self, name: &str) -> Option<ViceId> {
        self.0.iter().find(|known| known.1 == name).map(|known| known.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_through_groups_and_ends_with_the_one_asked_for() {
        let (alice, team, staff) = (ViceId(5), ViceId(-301), ViceId(-300));
        let names = [(alice, "alice"), (team, "team"), (staff, "staff")];
        let paths = MembershipPaths {
            names: names.into_iter().map(|(id, name)| (id, name.to_owned())).collect(),
            from: BTreeMap::from([(team, alice), (staff, team)]),
            start: alice,
        };
        assert_eq!(paths.to(staff), ["alice", "team", "staff"]);
        assert_eq!(paths.to(alice), ["alice"]);
        assert!(paths.to(ViceId::ANYUSER).is_empty());
    }
}
