//! One small call after the other, for as long as something else goes on.

use afs_wire::fs::FetchStatus;
use serde::{Deserialize, Serialize};

use super::Target;
use super::error::LoadError;
use super::latency::{Latency, Times};

/// Times of small operations that were made one after the other.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Repeated {
    /// Number of the operations, all of which succeeded.
    pub calls: u32,
    /// Their times.
    pub latency: Latency,
}

/// Fetches the status of the target's directory, one call after the other, until `enough` is true of the number of
/// calls made.
///
/// # Errors
/// The first call that fails ends the measurement.
pub async fn statuses_until(target: &Target, enough: impl Fn(u32) -> bool) -> Result<Repeated, LoadError> {
    let (mut times, mut calls) = (Times::new()?, 0);
    while !enough(calls) {
        let begun = target.env.now();
        target.call(&FetchStatus { fid: target.directory }).await?;
        times.add(target.env.now().saturating_since(begun));
        calls += 1;
    }
    Ok(Repeated { calls, latency: times.latency() })
}
