//! Settings and reports of the background scrub of partitions.

use afs_server::scrub::{ScrubReport, ScrubSettings, Scrubber};
use afs_volume::ScrubRound;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[scrub]` of the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScrubTable {
    /// Days from the end of one scrub to the start of the next; 0: no scrub.
    pub days: u32,
    /// Most that a scrub reads of each partition, in MiB a second.
    pub mib_per_second: u32,
}

impl Default for ScrubTable {
    fn default() -> Self {
        ScrubTable { days: 7, mib_per_second: 16 }
    }
}

impl ScrubTable {
    /// Checks the values; the error is the fault.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.mib_per_second == 0 && self.days != 0 {
            return Err("scrub: mib_per_second has to be at least 1; days = 0 switches it off".into());
        }
        Ok(())
    }

    /// The settings; `None` if the scrub is off.
    pub(crate) fn settings(&self) -> Option<ScrubSettings> {
        let every = Duration::from_secs(u64::from(self.days) * 86_400);
        let rate = u64::from(self.mib_per_second) << 20;
        (self.days != 0).then(|| ScrubSettings { every, rate, ..ScrubSettings::default() })
    }
}

/// Report of the scrubs of one partition, for the control socket and `andrew status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionScrub {
    /// The partition.
    pub partition: String,
    /// The pass in progress.
    pub now: Option<ScrubPass>,
    /// The last complete pass.
    pub last: Option<ScrubPass>,
    /// Data that is damaged and could not be repaired.
    pub damaged: Vec<String>,
}

/// One pass over all data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubPass {
    /// When it began, in seconds of Unix time.
    pub began: u32,
    /// When it ended, in seconds of Unix time; 0 while it is in progress.
    pub ended: u32,
    /// Bytes read.
    pub bytes: u64,
    /// Number of damages found.
    pub damaged: u64,
    /// Number of damages repaired.
    pub repaired: u64,
}

/// The reports of all partitions of a host.
pub(super) fn reports(scrubber: Option<&Scrubber>) -> Vec<PartitionScrub> {
    let reports = scrubber.map(Scrubber::reports).unwrap_or_default();
    let one = |(partition, report): (afs_wire::ids::PartitionId, ScrubReport)| PartitionScrub {
        partition: partition.to_string(),
        now: pass(report.now),
        last: pass(report.last),
        damaged: report
            .damaged
            .iter()
            .map(|bad| format!("volume {}, file {}.{}: {}", bad.volume, bad.vnode.0, bad.unique.0, bad.part))
            .collect(),
    };
    reports.into_iter().map(one).collect()
}

fn pass(round: ScrubRound) -> Option<ScrubPass> {
    let ScrubRound { began, ended, bytes, bad, repaired } = round;
    (began.0 != 0).then_some(ScrubPass { began: began.0, ended: ended.0, bytes, damaged: bad, repaired })
}
