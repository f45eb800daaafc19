//! Cost of a new connection: its first call, with identification and authentication.

use std::sync::Arc;

use afs_rpc::Connection;
use afs_wire::fs::FetchStatus;

use super::Target;
use super::calls::{Rate, many};
use super::error::LoadError;
use crate::spread::Spread;

/// Makes connections to the target's file service, none of which shares its Rx connection with another.
pub type Connect = Arc<dyn Fn() -> Connection + Send + Sync>;

/// Fetches the status of the target's directory over `calls` new connections, one after the other. The times
/// are those of whole first calls.
///
/// # Errors
/// The first call that fails ends the measurement; [`LoadError::Lost`] without any.
pub async fn first_calls(target: &Target, connect: &Connect, calls: u32) -> Result<Spread, LoadError> {
    let mut times = Vec::with_capacity(calls as usize);
    for _ in 0..calls {
        let start = target.env.now();
        first_call(target, connect()).await?;
        times.push(target.env.now().saturating_since(start));
    }
    Spread::of(times).ok_or(LoadError::Lost)
}

/// As [`first_calls`], `in_flight` at a time.
///
/// # Errors
/// The first call that fails ends the measurement.
pub async fn connections(
    target: &Target,
    connect: &Connect,
    calls: u32,
    in_flight: u32,
) -> Result<Rate, LoadError> {
    let connect = connect.clone();
    many(target, calls, in_flight, move |target, _| {
        let connection = connect();
        async move { first_call(&target, connection).await }
    })
    .await
}

async fn first_call(target: &Target, files: Connection) -> Result<(), LoadError> {
    let fresh = Target { files, ..target.clone() };
    fresh.call(&FetchStatus { fid: target.directory }).await.map(drop)
}
