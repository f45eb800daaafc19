//! Costs of calls measured on a server, from a file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest file in bytes.
const FILE_LEN_MAX: u64 = 1 << 20;

/// Counts of calls for capabilities and layouts of a client that goes on using its files, as its mount counted them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmClient {
    /// Minutes that were counted.
    pub minutes: u32,
    /// Files that it opened in each, none of whose bytes were cached.
    pub opens_per_minute: u32,
    /// Directories in which they are.
    pub directories: u32,
    /// Calls in a minute, by name.
    pub calls_per_minute: BTreeMap<String, f64>,
}

impl WarmClient {
    fn is_valid(&self) -> bool {
        self.opens_per_minute > 0 && self.calls_per_minute.values().all(|count| *count >= 0.0)
    }
}

/// Costs by the names of Table 6 of Gibson et al. 1997 (`FetchStatus`, `FetchData`, `getattr`, ...), as JSON:
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
        assert!(
            costs.is_ok_and(|costs| costs.calls().eq([("FetchData", &[(0.0, 30.0), (1000.0, 2e6)][..])]))
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
