//! Repair of entries after a check.

use afs_wire::vl::{Entry, EntryFlags};

use super::diagnose::Diagnosis;
use super::finding::Remedy;
use super::snapshot::GroupState;
use crate::Admin;
use crate::error::{AdminError, AdminResult};

impl Admin {
    /// Writes the corrected entry, and records the result in the findings.
    pub(super) async fn repair_group(&self, case: &GroupState, diagnosis: &mut Diagnosis) {
        if !diagnosis.findings.iter().any(|f| f.remedy == Remedy::Repair) {
            return;
        }
        let mended = match (&case.entry, &diagnosis.entry) {
            (None, Some(entry)) => self.create_entry(entry).await,
            (Some(before), after) => self.repair_entry(before, after.as_ref()).await,
            (None, None) => return,
        };
        for finding in diagnosis.findings.iter_mut().filter(|f| f.remedy == Remedy::Repair) {
            finding.remedy = match &mended {
                Ok(()) => Remedy::Mended,
                Err(error) => Remedy::Failed(error.to_string()),
            };
        }
    }

    async fn repair_entry(&self, before: &Entry, after: Option<&Entry>) -> AdminResult {
        let volume = super::scan::key_of(before).to_string();
        self.edit("check", &volume, |now| {
            if !is_same(before, &now) {
                return Err(AdminError::refused(
                    format!("Could not mend the VLDB entry of {}", before.name),
                    "somebody changed it meanwhile",
                )
                .with_hint("check again"));
            }
            Ok(after.map(|after| {
                let locks = EntryFlags(now.flags.0 & EntryFlags::LOCK_OPERATIONS.0);
                Entry { flags: after.flags.with(locks), ..after.clone() }
            }))
        })
        .await
    }
}

/// Whether two entries are equal, locks aside.
fn is_same(one: &Entry, other: &Entry) -> bool {
    let bare = |e: &Entry| Entry {
        flags: e.flags.without(EntryFlags::LOCK_OPERATIONS),
        match_index: 0,
        ..e.clone()
    };
    bare(one) == bare(other)
}
