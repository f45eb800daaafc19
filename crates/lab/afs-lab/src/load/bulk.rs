//! Throughput of storing and fetching one large file.

use afs_wire::fs::{CreateFile, FetchData64, Name, RemoveFile, SetStatus, StoreData64};
use afs_wire::ids::{Fid, Mode};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use std::sync::LazyLock;

use super::Target;
use super::error::{During, LoadError};

/// Bytes transferred, with the time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Throughput {
    /// Bytes of file data.
    pub bytes: u64,
    /// From the request to the end of the reply.
    pub seconds: f64,
    /// Bytes a second.
    pub per_second: f64,
}

const PIECE: usize = 1 << 20;

/// Creates a file of `length` bytes in the target's directory by one store. Durable when it returns.
///
/// # Errors
/// The error of a call.
pub async fn store(target: &Target, length: u64) -> Result<(Fid, Throughput), LoadError> {
    let status = SetStatus { mode: Some(Mode(0o644)), ..SetStatus::default() };
    let create = CreateFile { dir: target.directory, name: name(), status };
    let fid = target.call(&create).await?.fid;
    Ok((fid, put(target, fid, length).await?))
}

/// Stores `length` bytes as the whole of an existing file, by one call. Durable when it returns.
///
/// # Errors
/// The error of the call.
pub(crate) async fn put(target: &Target, fid: Fid, length: u64) -> Result<Throughput, LoadError> {
    let pattern = pattern();
    let start = target.env.now();
    let request = StoreData64 { fid, status: SetStatus::default(), position: 0, length, file_length: length };
    let mut call = target.files.open(&request).await.during("StoreData64")?;
    let mut left = length;
    while left > 0 {
        let piece = left.min(PIECE as u64) as usize;
        call.write(pattern.slice(..piece)).await.during("StoreData64")?;
        left -= piece as u64;
    }
    call.finish_request().during("StoreData64")?;
    call.finish::<StoreData64>().await.during("StoreData64")?;
    Ok(throughput(target, start, length))
}

/// Fetches the `length` bytes that [`store`] stored, and compares them.
///
/// # Errors
/// The error of a call, or the first wrong byte.
pub async fn fetch(target: &Target, fid: Fid, length: u64) -> Result<Throughput, LoadError> {
    let pattern = pattern();
    let start = target.env.now();
    let request = FetchData64 { fid, position: 0, length: length.cast_signed() };
    let mut call = target.files.open(&request).await.during("FetchData64")?;
    call.finish_request().during("FetchData64")?;
    let count = call.read_exact(8).await.during("FetchData64")?;
    let count = count.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    if count != length {
        return Err(LoadError::WrongLength { got: count, want: length });
    }
    let mut position = 0;
    while position < length {
        let max = (length - position).min(PIECE as u64) as usize;
        let pieces = call.read_pieces(max).await.during("FetchData64")?;
        if pieces.is_empty() {
            return Err(LoadError::WrongLength { got: position, want: length });
        }
        for piece in pieces {
            compare(&pattern, position, &piece)?;
            position += piece.len() as u64;
        }
    }
    call.finish::<FetchData64>().await.during("FetchData64")?;
    Ok(throughput(target, start, length))
}

/// Removes the file that [`store`] created.
///
/// # Errors
/// The error of the call.
pub async fn remove(target: &Target) -> Result<(), LoadError> {
    let remove = RemoveFile { dir: target.directory, name: name() };
    target.call(&remove).await.map(drop)
}

fn name() -> Name {
    Name::truncated(b"load-bulk")
}

/// One piece of a repeating pattern, with a period (a prime) that divides no chunk, page or packet size.
fn pattern() -> Bytes {
    static PATTERN: LazyLock<Bytes> =
        LazyLock::new(|| (0..PIECE).map(|position| (position % 251) as u8).collect());
    PATTERN.clone()
}

fn compare(pattern: &Bytes, position: u64, got: &[u8]) -> Result<(), LoadError> {
    let (mut position, mut got) = (position, got);
    while !got.is_empty() {
        let at = (position % PIECE as u64) as usize;
        let count = got.len().min(PIECE - at);
        let want = &pattern[at..at + count];
        if let Some(bad) = (0..count).find(|&n| got[n] != want[n]).filter(|_| got[..count] != *want) {
            return Err(LoadError::WrongData {
                position: position + bad as u64,
                got: got[bad],
                want: want[bad],
            });
        }
        position += count as u64;
        got = &got[count..];
    }
    Ok(())
}

fn throughput(target: &Target, start: afs_rpc::Instant, bytes: u64) -> Throughput {
    let seconds = target.env.now().saturating_since(start).as_secs_f64();
    Throughput { bytes, seconds, per_second: bytes as f64 / seconds }
}
