//! Rate and latency of small calls, many in flight.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use afs_rpc::{EnvExt, Stall};
use afs_wire::fs::{CreateFile, FetchStatus, Name, RemoveFile, SetStatus};
use afs_wire::ids::Mode;
use serde::{Deserialize, Serialize};

use super::Target;
use super::error::LoadError;
use super::latency::{Latency, Times};

/// Number of successful calls, with the time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// Calls made, all of which succeeded.
    pub calls: u32,
    /// Calls in flight at a time.
    pub in_flight: u32,
    /// From the first request to the last reply.
    pub seconds: f64,
    /// Calls per second.
    pub per_second: f64,
    /// Times of single calls.
    pub latency: Latency,
}

/// Fetches the status of the target's directory `calls` times, `in_flight` at a time.
///
/// # Errors
/// The first call that fails ends the measurement.
pub async fn statuses(target: &Target, calls: u32, in_flight: u32) -> Result<Rate, LoadError> {
    many(target, calls, in_flight, |target, _| async move {
        target.call(&FetchStatus { fid: target.directory }).await.map(drop)
    })
    .await
}

/// Creates `calls` empty files in the target's directory, `in_flight` at a time, and removes them again. Each is
/// durable when its call returns. The rate is that of the creations alone.
///
/// # Errors
/// The first call that fails ends the measurement; files may then be left behind, named `load-N`.
pub async fn creations(target: &Target, calls: u32, in_flight: u32) -> Result<Rate, LoadError> {
    let rate = names(target, calls, in_flight).await?;
    many(target, calls, in_flight, |target, number| async move {
        let request = RemoveFile { dir: target.directory, name: name(number) };
        target.call(&request).await.map(drop)
    })
    .await?;
    Ok(rate)
}

/// Creates `calls` empty files named `load-N` in the target's directory, `in_flight` at a time, and leaves them there.
///
/// # Errors
/// The first call that fails ends the measurement.
pub async fn names(target: &Target, calls: u32, in_flight: u32) -> Result<Rate, LoadError> {
    many(target, calls, in_flight, |target, number| async move {
        let status = SetStatus { mode: Some(Mode(0o644)), ..SetStatus::default() };
        let request = CreateFile { dir: target.directory, name: name(number), status };
        target.call(&request).await.map(drop)
    })
    .await
}

fn name(number: u32) -> Name {
    Name::truncated(format!("load-{number}").as_bytes())
}

/// Runs `one` for 0..`calls`, `in_flight` at a time. Also after an error it returns when none is in flight any more.
pub(super) async fn many<F, W>(target: &Target, calls: u32, in_flight: u32, one: F) -> Result<Rate, LoadError>
where
    F: Fn(Target, u32) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Result<(), LoadError>> + Send,
{
    let next = Arc::new(AtomicU32::new(0));
    let start = target.env.now();
    let worker = || {
        let (target, next, one) = (target.clone(), next.clone(), one.clone());
        async move {
            let mut times = Times::new()?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    return Ok(times);
                }
                let begun = target.env.now();
                one(target.clone(), number).await?;
                times.add(target.env.now().saturating_since(begun));
            }
        }
    };
    let workers: Vec<_> =
        (0..in_flight).map(|_| target.env.start_with_result(Stall::Brief, worker())).collect();
    let mut done = Vec::with_capacity(workers.len());
    for worker in workers {
        done.push(worker.await.map_err(|_| LoadError::Lost).flatten());
    }
    let mut times = Times::new()?;
    for worker in done {
        times.join(&worker?)?;
    }
    let seconds = target.env.now().saturating_since(start).as_secs_f64();
    Ok(Rate { calls, in_flight, seconds, per_second: f64::from(calls) / seconds, latency: times.latency() })
}
