//! Nesting of imported groups: removes cycles and paths that are too deep.

use std::collections::BTreeMap;

use afs_wire::ids::ViceId;

use super::members::Membership;
use crate::import::finding::Findings;
use crate::protection::{Entry, NESTING_MAX};

/// Drops memberships of groups that would form a cycle or a path of more than [`NESTING_MAX`] groups: those
/// nearest to the innermost group stay.
pub(super) fn flatten(
    union: &mut Vec<Membership>,
    entries: &BTreeMap<ViceId, (u32, Entry)>,
    findings: &mut Findings,
) {
    let heights = heights(union);
    union.retain(|(member, group)| {
        if !member.is_group() || heights.get(member) < heights.get(group) && is_low(&heights, group) {
            return true;
        }
        let at = entries.get(group).map_or(0, |(at, _)| *at);
        let text = format!(
            "group {} in group {} makes a circle or more than {NESTING_MAX} levels; left out",
            member.0, group.0
        );
        findings.damage(at, text);
        false
    });
}

fn is_low(heights: &BTreeMap<ViceId, usize>, group: &ViceId) -> bool {
    heights.get(group).is_some_and(|height| *height <= NESTING_MAX)
}

/// Number of groups on the longest path to a group from inside; one more than the bound for those that are
/// too deep or in a cycle.
fn heights(union: &[Membership]) -> BTreeMap<ViceId, usize> {
    let pairs: Vec<Membership> = union.iter().copied().filter(|(member, _)| member.is_group()).collect();
    let mut heights: BTreeMap<ViceId, usize> = BTreeMap::new();
    for (member, group) in &pairs {
        heights.insert(*member, 1);
        heights.insert(*group, 1);
    }
    for _ in 0..=NESTING_MAX {
        for (member, group) in &pairs {
            let least = heights.get(member).map_or(1, |height| height + 1).min(NESTING_MAX + 1);
            if let Some(height) = heights.get_mut(group).filter(|height| **height < least) {
                *height = least;
            }
        }
    }
    heights
}
