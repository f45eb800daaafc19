//! Costs of calls measured on a server, from a file.

use super::warm_client::WarmClient;
use crate::load::BULK_BY_REQUESTS;
use crate::model::line;
use afs_wire::fs::{CommitRoom, GetRoom, LAYOUT_FILES_MAX};
use afs_wire::rpc::Request;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest file in bytes.
const FILE_LEN_MAX: u64 = 1 << 20;

/// Costs by the names of Table 6 (`FetchStatus`, `FetchData`, `getattr`, ...), as JSON:
/// `{"what": "...", "calls": {"FetchStatus": [[0, 31.5]], "FetchData": [[1, 40], [65536, 210]]}}`. A point is bytes, and
/// microseconds of the server's processor; one point is a fixed cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCosts {
    /// What was measured: the server, its processor, and how.
    pub what: String,
    calls: BTreeMap<String, Vec<(f64, f64)>>,
    /// Calls for capabilities of a client that goes on using its files, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_client: Option<WarmClient>,
}

/// Why a file gives no costs.
#[derive(Debug, thiserror::Error)]
pub enum CostsError {
    /// It cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, std::io::Error),
    /// It is longer than a file of costs can be.
    #[error("{0} is longer than {FILE_LEN_MAX} bytes")]
    Long(PathBuf),
    /// It is not JSON of this form.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// A count of the warm client is negative, or it opened nothing.
    #[error("the calls of the warm client are negative, or of no opens")]
    WarmClient,
    /// The points of a call are none, not in order of bytes, or negative.
    #[error("the points of {0} are none, not in order of bytes, or negative")]
    Points(String),
}

impl MeasuredCosts {
    /// Those of a file.
    ///
    /// # Errors
    /// It cannot be read, or is none of costs.
    pub fn read(path: &Path) -> Result<Self, CostsError> {
        let read = |error| CostsError::Read(path.to_owned(), error);
        if std::fs::metadata(path).map_err(read)?.len() > FILE_LEN_MAX {
            return Err(CostsError::Long(path.to_owned()));
        }
        Self::parse(&std::fs::read_to_string(path).map_err(read)?)
    }

    /// Those of a text.
    ///
    /// # Errors
    /// It is none of costs.
    pub fn parse(text: &str) -> Result<Self, CostsError> {
        let costs: Self = serde_json::from_str(text)?;
        for (call, points) in &costs.calls {
            let is_positive = |(bytes, cost): &(f64, f64)| *bytes >= 0.0 && *cost >= 0.0;
            let is_ordered = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if points.is_empty() || !is_ordered || !points.iter().all(is_positive) {
                return Err(CostsError::Points(call.clone()));
            }
        }
        match &costs.warm_client {
            Some(warm) if !warm.is_valid() => Err(CostsError::WarmClient),
            _ => Ok(costs),
        }
    }

    /// None yet.
    #[must_use]
    pub fn new(what: String) -> Self {
        Self { what, calls: BTreeMap::new(), warm_client: None }
    }

    /// Adds a point, or replaces that of this size.
    pub fn add(&mut self, call: &str, bytes: f64, microseconds: f64) {
        let points = self.calls.entry(call.to_owned()).or_default();
        points.retain(|point| point.0.total_cmp(&bytes).is_ne());
        points.push((bytes, microseconds));
        points.sort_by(|one, next| one.0.total_cmp(&next.0));
    }

    /// Adds a call that costs the mean of others without a size, as the paper's "Others" does.
    pub fn add_mean(&mut self, call: &str, of: &[&str]) {
        let costs: Vec<f64> = of.iter().filter_map(|one| Some(self.calls.get(*one)?.first()?.1)).collect();
        if !costs.is_empty() {
            self.add(call, 0.0, costs.iter().sum::<f64>() / costs.len() as f64);
        }
    }

    /// Gives a call the costs of another.
    pub fn copy(&mut self, call: &str, from: &str) {
        if let Some(points) = self.calls.get(from).cloned() {
            self.calls.insert(call.to_owned(), points);
        }
    }

    /// The calls, each with its points: bytes and microseconds.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &[(f64, f64)])> {
        self.calls.iter().map(|(call, points)| (call.as_str(), points.as_slice()))
    }

    /// Seconds of a call of a size.
    pub(crate) fn seconds(&self, call: &str, bytes: f64) -> Option<f64> {
        at(&self.points(call)?, bytes)
    }

    /// Seconds of the capability calls of the warm client in a minute; `None` if it was not counted, or made a call without a cost.
    pub(crate) fn warm_seconds(&self) -> Option<f64> {
        let warm = self.warm_client.as_ref()?;
        let cost = |call: &str| match call {
            "BulkCapability" => self.seconds(BULK_BY_REQUESTS, warm.directories.into()),
            "RenewLayouts" => self.seconds(call, warm.directories.into()),
            // The most that one can have: fewer are not counted as less.
            "GetLayouts" => self.seconds(call, LAYOUT_FILES_MAX as f64),
            _ => self.seconds(call, 0.0),
        };
        warm.calls_per_minute.iter().map(|(call, count)| Some(cost(call)? * count)).sum()
    }

    /// Microseconds by bytes of a call.
    pub(crate) fn microseconds(&self, call: &str) -> &[(f64, f64)] {
        self.calls.get(call).map_or(&[], Vec::as_slice)
    }

    /// Whether a write is charged what it needs at the server where its bytes are left at drives.
    pub(crate) fn has_drive_writes(&self) -> bool {
        self.drive_write().is_some()
    }

    /// Seconds by bytes of a write whose bytes a client leaves at drives itself: a room and its commit. `None` if these were not measured.
    pub(super) fn drive_write(&self) -> Option<Vec<(f64, f64)>> {
        let commits = self.points(CommitRoom::NAME)?;
        let with_room =
            |(bytes, commit): (f64, f64)| Some((bytes, commit + self.seconds(GetRoom::NAME, bytes)?));
        commits.into_iter().map(with_room).collect()
    }

    /// Whether a call was measured.
    pub(super) fn has(&self, call: &str) -> bool {
        self.calls.contains_key(call)
    }

    /// Seconds by bytes of a call.
    pub(super) fn points(&self, call: &str) -> Option<Vec<(f64, f64)>> {
        let points = self.calls.get(call)?;
        Some(points.iter().map(|(bytes, microseconds)| (*bytes, microseconds / 1e6)).collect())
    }
}

/// Value of points at a size; one point is fixed.
pub(super) fn at(points: &[(f64, f64)], bytes: f64) -> Option<f64> {
    match points {
        [(_, fixed)] => Some(*fixed),
        // A line that is prolonged may not go below nothing.
        points => line(points, bytes).map(|value| value.max(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_costs_is_checked() {
        let of = |points: &str| {
            MeasuredCosts::parse(&format!("{{\"what\": \"x\", \"calls\": {{\"FetchData\": {points}}}}}"))
        };
        let costs = of("[[0, 30], [1000, 2e6]]");
        assert_eq!(
            costs.ok().and_then(|costs| costs.points("FetchData")),
            Some(vec![(0.0, 3e-5), (1000.0, 2.0)])
        );
        for wrong in ["[]", "[[1, 1], [1, 2]]", "[[2, 1], [1, 2]]", "[[0, -1]]", "[[-1, 1]]"] {
            assert!(matches!(of(wrong), Err(CostsError::Points(_))), "{wrong}");
        }
        let warm = |opens: u32, count: f64| {
            let calls = format!(
                "\"opens_per_minute\": {opens}, \"calls_per_minute\": {{\"GetCapability\": {count}}}"
            );
            let warm = format!("{{\"minutes\": 1, \"directories\": 1, {calls}}}");
            MeasuredCosts::parse(&format!("{{\"what\": \"x\", \"calls\": {{}}, \"warm_client\": {warm}}}"))
        };
        assert!(warm(1, 0.5).is_ok());
        for wrong in [warm(0, 0.5), warm(1, -1.0)] {
            assert!(matches!(wrong, Err(CostsError::WarmClient)), "{wrong:?}");
        }
        assert!(matches!(of("7"), Err(CostsError::Form(_))));
        assert!(matches!(MeasuredCosts::parse("{\"calls\": {}}"), Err(CostsError::Form(_))));
    }
}
