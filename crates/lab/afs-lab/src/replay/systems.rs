//! Systems whose file manager is charged: those of the paper, and those that have numbers only here.

use super::charges::{Points, ReplayError, printed};
use super::measured::MeasuredCosts;
use crate::load::{PATH_READ, PATH_STORE};
use crate::model::{Inputs, TraceKind, charged};

/// A system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// Disks behind a server: every byte in calls.
    Sad,
    /// A server whose bytes leave by its own data path, beside the calls.
    Sid,
    /// Disks that send what the server commands.
    NetScsi,
    /// Drives that serve by capability, one for each open.
    Nasd,
    /// The same with as many calls for capabilities as a client was counted to make.
    NasdGroups,
    /// The same, with writes by the paper's rule for them: to be compared with what the paper printed.
    NasdGroupsByRule,
}

/// The request for a capability, as Table 7 counts it.
const OPEN: &str = "Open";
/// Requests of Table 7 that bring bytes.
const WRITES: [&str; 2] = ["BlockWrite", "StoreData"];
const GET_CAPABILITY: &str = "GetCapability";

impl System {
    /// Those that the costs give, with disks behind a server first. Without measured costs those of the paper.
    pub(super) fn all(costs: Option<&MeasuredCosts>) -> Vec<Self> {
        let has_path = |costs: &MeasuredCosts| [PATH_READ, PATH_STORE].iter().all(|call| costs.has(call));
        let has = |system: &Self| match system {
            Self::Sad | Self::NetScsi | Self::Nasd => true,
            Self::Sid => costs.is_some_and(has_path),
            Self::NasdGroups => costs.is_some_and(|costs| costs.warm_seconds().is_some()),
            Self::NasdGroupsByRule => {
                costs.is_some_and(|costs| costs.warm_seconds().is_some() && costs.has_drive_writes())
            }
        };
        let all = [Self::Sad, Self::Sid, Self::NetScsi, Self::Nasd, Self::NasdGroups, Self::NasdGroupsByRule];
        all.into_iter().filter(has).collect()
    }

    /// Its name in columns.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sad => "SAD",
            Self::Sid => "SID",
            Self::NetScsi => "NetSCSI",
            Self::Nasd => "NASD",
            Self::NasdGroups => "NASD_groups",
            Self::NasdGroupsByRule => "NASD_groups_by_rule",
        }
    }

    /// Which of the paper's systems has the same rules (Table 6), but for bytes and opens.
    fn rules(self) -> usize {
        match self {
            Self::Sad | Self::Sid => 0,
            Self::NetScsi => 1,
            Self::Nasd | Self::NasdGroups | Self::NasdGroupsByRule => 2,
        }
    }

    /// The paper charges such writes nothing (NFS) or a FetchStatus (AFS). A client of ours asks for a room and commits.
    fn leaves_writes_at_drives(self) -> bool {
        matches!(self, Self::Nasd | Self::NasdGroups)
    }

    /// Seconds of an operation of Table 7 by its bytes; `None` if nothing reaches the file manager.
    pub(super) fn points(
        self,
        inputs: Inputs<'_>,
        kind: TraceKind,
        operation: &str,
        costs: Option<&MeasuredCosts>,
    ) -> Result<Option<Points>, ReplayError> {
        if operation == OPEN {
            return self.open(inputs, kind, costs);
        }
        if self.leaves_writes_at_drives()
            && WRITES.contains(&operation)
            && let Some(points) = costs.and_then(MeasuredCosts::drive_write)
        {
            return Ok(Some(points));
        }
        let [sad, netscsi, nasd] = charged(inputs, kind, operation)?;
        let Some(rule) = [sad, netscsi, nasd].into_iter().nth(self.rules()).flatten() else {
            return Ok(None);
        };
        let rule = match (self, &*rule) {
            (Self::Sid, "FetchData" | "read") => PATH_READ,
            (Self::Sid, "StoreData" | "write") => PATH_STORE,
            (_, rule) => rule,
        };
        cost(inputs, rule, costs).map(Some)
    }

    /// Table 7 counts opens for capabilities only.
    fn open(
        self,
        inputs: Inputs<'_>,
        kind: TraceKind,
        costs: Option<&MeasuredCosts>,
    ) -> Result<Option<Points>, ReplayError> {
        let counted = costs.and_then(MeasuredCosts::warm_seconds);
        match (self, counted) {
            (Self::Sad | Self::NetScsi, _) => Ok(None),
            (Self::Sid | Self::NasdGroups | Self::NasdGroupsByRule, Some(seconds)) => {
                let opens = inputs.number(kind.table7(), OPEN, "count_k")? * 1e3;
                let minutes = inputs.number("table5", "busy client-minutes", kind.column())?;
                Ok(Some(vec![(0.0, seconds * minutes / opens)]))
            }
            _ => {
                if costs.is_some_and(|costs| costs.has(GET_CAPABILITY)) {
                    return cost(inputs, GET_CAPABILITY, costs).map(Some);
                }
                let [.., nasd] = charged(inputs, kind, OPEN)?;
                nasd.map(|rule| cost(inputs, &rule, costs)).transpose()
            }
        }
    }
}

fn cost(inputs: Inputs<'_>, rule: &str, costs: Option<&MeasuredCosts>) -> Result<Points, ReplayError> {
    match costs {
        Some(costs) => costs.points(rule).ok_or_else(|| ReplayError::NotMeasured(rule.to_owned())),
        None => Ok(printed(inputs, rule)?),
    }
}
