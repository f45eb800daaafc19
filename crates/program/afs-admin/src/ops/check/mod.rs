//! `vos check`: compares the location database with the servers.
//!
//! First the cell is scanned, server by server, and groups that do not match are noted as suspects
//! ([`scan`]). Then a snapshot of each suspect group is taken at all its sites ([`snapshot`]), until two in a
//! row agree; operations in progress are left alone. The diagnosis uses such a snapshot alone ([`diagnose`]). A
//! repair changes entries only, under their lock, and only if they are unchanged ([`repair`]). No volume is
//! ever deleted or changed.

mod diagnose;
mod entry;
mod finding;
mod repair;
mod scan;
mod snapshot;

pub use finding::{CheckDirection, CheckResult, Fault, Finding, GivenUp, Remedy, SilentServer};

use std::net::Ipv4Addr;

use afs_wire::ids::VolumeId;

use crate::Admin;
use crate::error::AdminResult;
use crate::ops::{IllPartition, PartitionState};
use diagnose::Diagnosis;
use scan::{ScanResult, UnlistedVolumes};
use snapshot::GroupState;

/// Snapshots of one group; if no two in a row agree, an operation is in progress.
const SNAPSHOTS_MAX: u32 = 4;

/// Scope of a check, and whether it repairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// Only volumes that are on this server, or should be.
    pub server: Option<Ipv4Addr>,
    /// Only the group of this volume, by name or id.
    pub volume: Option<String>,
    /// The direction.
    pub direction: CheckDirection,
    /// Repair what needs no decision by the administrator. Without this nothing is changed.
    pub repair: bool,
    /// The read-write volumes of which a repair may drop the place where they are nowhere. Default: none, since a disk that is missing
    /// looks like volumes that are.
    pub given_up: GivenUp,
}

impl Admin {
    /// Compares the location database with the servers.
    ///
    /// # Errors
    /// No location server replies, the journal cannot be read, or no such volume. A volume server that does
    /// not reply is reported in the result, and its volumes are left alone.
    pub async fn check(&self, options: &CheckOptions) -> AdminResult<CheckResult> {
        let scanned = match &options.volume {
            Some(volume) => self.scan_one(volume).await?,
            None => self.scan(options.server).await?,
        };
        let mut checked = CheckResult {
            servers: scanned.servers.len(),
            volumes: scanned.volumes,
            more: scanned.more,
            silent: scanned.silent(),
            partitions: scanned.ill.clone(),
            findings: Vec::new(),
        };
        for (key, suspect) in &scanned.suspects {
            self.progress().step(&format!("looking at volume {key}"));
            let found = self.diagnose_group(*key, suspect, &scanned, options).await?;
            let Some((case, mut diagnosis)) = found else { continue };
            for place in case.offline() {
                if !checked.partitions.iter().any(|ill| ill.place == place) {
                    checked.partitions.push(IllPartition { place, state: PartitionState::Offline });
                }
            }
            if options.repair {
                self.repair_group(&case, &mut diagnosis).await;
            }
            checked.findings.append(&mut diagnosis.findings);
        }
        self.check_counter(&scanned, options, &mut checked).await?;
        Ok(checked)
    }

    /// The state of a group with its diagnosis. Two snapshots have to agree: a single one may show an
    /// operation that has ended when the journal is read.
    async fn diagnose_group(
        &self,
        key: VolumeId,
        suspect: &UnlistedVolumes,
        scanned: &ScanResult,
        options: &CheckOptions,
    ) -> AdminResult<Option<(GroupState, Diagnosis)>> {
        let mut before = None;
        for _ in 0..SNAPSHOTS_MAX {
            let case = self.take_snapshot(key, suspect, scanned).await?;
            if self.is_under_way(&case.ids()).await? {
                return Ok(None);
            }
            let diagnosis = diagnose::diagnose(&case, options);
            if diagnosis.findings.is_empty() || before.as_ref() == Some(&diagnosis.findings) {
                return Ok(Some((case, diagnosis)));
            }
            before = Some(diagnosis.findings);
        }
        Ok(None)
    }

    async fn is_under_way(&self, ids: &[VolumeId]) -> AdminResult<bool> {
        let open = self.operations().await?;
        Ok(open.iter().any(|record| ids.iter().any(|id| record.works_on(*id))))
    }

    async fn check_counter(
        &self,
        scanned: &ScanResult,
        options: &CheckOptions,
        checked: &mut CheckResult,
    ) -> AdminResult {
        let next = self.next_id().await?;
        if options.direction == CheckDirection::Entries || scanned.largest < next {
            return Ok(());
        }
        let mut finding = finding::counter(scanned.largest, next);
        if options.repair {
            finding.remedy = match self.raise_counter(scanned.largest, next).await {
                Ok(()) => Remedy::Mended,
                Err(error) => Remedy::Failed(error.to_string()),
            };
        }
        checked.findings.push(finding);
        Ok(())
    }
}
