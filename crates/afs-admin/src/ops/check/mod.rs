//! `vos check`: compares the location database with the servers.
//!
//! First the cell is scanned, server by server, and groups that do not match are noted as suspects
//! ([`gather`]). Then a snapshot of each suspect group is taken at all its sites ([`look`]), until two in a
//! row agree; operations in progress are left alone. The diagnosis uses such a snapshot alone ([`judge`]). A
//! repair changes entries only, under their lock, and only if they are unchanged ([`mend`]). No volume is
//! ever deleted or changed.

mod entry;
mod finding;
mod gather;
mod judge;
mod look;
mod mend;

pub use finding::{Checked, Fault, Finding, Half, Remedy, Silent};

use std::net::Ipv4Addr;

use afs_wire::ids::VolumeId;

use crate::Admin;
use crate::error::AdminResult;
use gather::{Gathered, Servers, Suspect};
use judge::Judged;
use look::Case;

/// Snapshots of one group; if no two in a row agree, an operation is in progress.
const LOOKS_MAX: u32 = 4;

/// Scope of a check, and whether it repairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// Only volumes that are on this server, or should be.
    pub server: Option<Ipv4Addr>,
    /// Only the group of this volume, by name or id.
    pub volume: Option<String>,
    /// The direction.
    pub half: Half,
    /// Repair what needs no decision by the administrator. Without this nothing is changed.
    pub repair: bool,
}

impl Admin {
    /// Compares the location database with the servers.
    ///
    /// # Errors
    /// No location server replies, the journal cannot be read, or no such volume. A volume server that does
    /// not reply is reported in the result, and its volumes are left alone.
    pub async fn check(&self, options: &CheckOptions) -> AdminResult<Checked> {
        let gathered = match &options.volume {
            Some(volume) => self.gather_one(volume).await?,
            None => self.gather(options.server).await?,
        };
        let mut checked = Checked {
            servers: gathered.servers.len(),
            volumes: gathered.volumes,
            more: gathered.more,
            silent: gathered.silent(),
            findings: Vec::new(),
        };
        for (key, suspect) in &gathered.suspects {
            self.progress().step(&format!("looking at volume {key}"));
            let found = self.look_and_judge(*key, suspect, &gathered.servers, options.half).await?;
            let Some((case, mut judged)) = found else { continue };
            if options.repair {
                self.mend(&case, &mut judged).await;
            }
            checked.findings.append(&mut judged.findings);
        }
        self.check_counter(&gathered, options, &mut checked).await?;
        Ok(checked)
    }

    /// The state of a group with its diagnosis. Two snapshots have to agree: a single one may show an
    /// operation that has ended when the journal is read.
    async fn look_and_judge(
        &self,
        key: VolumeId,
        suspect: &Suspect,
        servers: &Servers,
        half: Half,
    ) -> AdminResult<Option<(Case, Judged)>> {
        let mut before = None;
        for _ in 0..LOOKS_MAX {
            let case = self.look(key, suspect, servers).await?;
            if self.is_under_way(&case.ids()).await? {
                return Ok(None);
            }
            let judged = judge::judge(&case, half);
            if judged.findings.is_empty() || before.as_ref() == Some(&judged.findings) {
                return Ok(Some((case, judged)));
            }
            before = Some(judged.findings);
        }
        Ok(None)
    }

    async fn is_under_way(&self, ids: &[VolumeId]) -> AdminResult<bool> {
        let open = self.operations().await?;
        Ok(open.iter().any(|record| ids.iter().any(|id| record.works_on(*id))))
    }

    async fn check_counter(
        &self,
        gathered: &Gathered,
        options: &CheckOptions,
        checked: &mut Checked,
    ) -> AdminResult {
        let next = self.next_id().await?;
        if options.half == Half::Entries || gathered.largest < next {
            return Ok(());
        }
        let mut finding = finding::counter(gathered.largest, next);
        if options.repair {
            finding.remedy = match self.raise_counter(gathered.largest, next).await {
                Ok(()) => Remedy::Mended,
                Err(error) => Remedy::Failed(error.to_string()),
            };
        }
        checked.findings.push(finding);
        Ok(())
    }
}
