//! A reader of five chunks, page by page: with fetches that wait for it, and with one that runs while it reads.

use super::link::Link;
use super::streams::fetch;
use super::{CHUNK, PAGE};
use crate::error::LabError;
use crate::load::LoadError;
use afs_rpc::{Connection, EnvExt, EnvRef, Stall};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Chunks of a reading.
const CHUNKS: usize = 5;
/// Rx packets of the fetches: the smallest of [`PACKETS`](super::PACKETS).
const PACKETS: usize = 0;

/// Times of a reading in turn with its fetches, and of one beside them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readings {
    pub(super) in_turn: Duration,
    pub(super) beside: Duration,
}

/// One reading of each kind.
pub(super) fn read(link: &Link) -> Result<Readings, LabError> {
    let calls = link.calls(PACKETS).ok_or(LabError::Lost)?;
    let (env, timed) = (link.system.env(), |work: &mut dyn FnMut() -> Result<(), LoadError>| {
        let begun = Instant::now();
        work().map(|()| begun.elapsed()).map_err(LabError::Calls)
    });
    let in_turn = timed(&mut || link.system.block_on(in_turn(&calls)))?;
    let beside = timed(&mut || link.system.block_on(beside(&env, &calls)))?;
    Ok(Readings { in_turn, beside })
}

async fn in_turn(calls: &Connection) -> Result<(), LoadError> {
    for _ in 0..CHUNKS {
        fetch(calls, CHUNK as u64).await?;
        pages();
    }
    Ok(())
}

/// The next chunk is fetched while the pages of one are read.
async fn beside(env: &EnvRef, calls: &Connection) -> Result<(), LoadError> {
    let begin = || {
        let calls = calls.clone();
        env.start_with_result(Stall::Brief, async move { fetch(&calls, CHUNK as u64).await })
    };
    let mut ahead = begin();
    for number in 0..CHUNKS {
        ahead.await.map_err(|_| LoadError::Lost)??;
        ahead = if number + 1 < CHUNKS { begin() } else { break };
        pages();
    }
    pages();
    Ok(())
}

/// What a reader does with the pages of a chunk: copies each, and looks at each byte some times.
fn pages() {
    let chunk = vec![7_u8; CHUNK];
    for page in chunk.chunks_exact(PAGE) {
        let copy = black_box(page.to_vec());
        for _ in 0..LOOKS {
            black_box(
                copy.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte))),
            );
        }
    }
}

/// A reader with as much work as a fetch has, roughly: without any, there is nothing to run beside.
const LOOKS: u32 = 4;
