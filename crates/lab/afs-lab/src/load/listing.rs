//! Listing of directories with attributes by one client, and the latency of another client's small calls
//! meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_rpc::EnvExt;
use afs_wire::dir::{Blob, PAGE_LEN, PAGES_MAX};
use afs_wire::fs::{FIDS_MAX, FetchData64, Fids, InlineBulkStatus};
use afs_wire::ids::Fid;
use serde::{Deserialize, Serialize};

use super::Target;
use super::calls::{Rate, many};
use super::error::{During, LoadError};
use super::latency::Latency;
use super::repeated::{Repeated, statuses_until};

/// A directory that was read, with the status of each of its entries.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Listing {
    /// Names in it, without `.` and `..`.
    pub entries: usize,
    /// From the first request to the last reply.
    pub seconds: f64,
    /// The calls for the statuses, of 50 entries each.
    pub bulk: Rate,
}

/// Results of a client while another one lists.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Beside {
    /// The directories, one after the other.
    pub listings: Vec<Listing>,
    /// Number of statuses that the other client fetched meanwhile, one after the other.
    pub calls: u32,
    /// Times of these calls.
    pub latency: Latency,
}

/// Lists `directories` one after the other at `listing`, with `in_flight` calls for statuses at a time, and
/// meanwhile fetches the status of the directory of `asking`, one call at a time. The two should be clients
/// with sockets of their own.
///
/// # Errors
/// The first call that fails ends the measurement.
pub async fn beside(
    asking: &Target,
    listing: &Target,
    directories: Vec<Fid>,
    in_flight: u32,
) -> Result<Beside, LoadError> {
    let listed = Arc::new(AtomicBool::new(false));
    let (lister, done) = (listing.clone(), listed.clone());
    let listings = listing.env.spawn_with_result(async move {
        let listings = list_all(&lister, &directories, in_flight).await;
        done.store(true, Ordering::Release);
        listings
    });
    let Repeated { calls, latency } = statuses_until(asking, |_| listed.load(Ordering::Acquire)).await?;
    let listings = listings.await.map_err(|_| LoadError::Lost)??;
    Ok(Beside { listings, calls, latency })
}

async fn list_all(target: &Target, directories: &[Fid], in_flight: u32) -> Result<Vec<Listing>, LoadError> {
    let mut listings = Vec::with_capacity(directories.len());
    for directory in directories {
        listings.push(list(target, *directory, in_flight).await?);
    }
    Ok(listings)
}

/// Reads a directory and fetches the status of all its entries, `in_flight` calls at a time.
///
/// # Errors
/// The first call that fails, or an entry without a status.
pub async fn list(target: &Target, directory: Fid, in_flight: u32) -> Result<Listing, LoadError> {
    let start = target.env.now();
    let fids = entries(directory, read(target, directory).await?)?;
    let pieces: Arc<Vec<Fids>> =
        Arc::new(fids.chunks(FIDS_MAX).map(|some| Fids::first_of(some.to_vec())).collect());
    let count = pieces.len() as u32;
    let bulk = many(target, count, in_flight, move |target, number| {
        let fids = pieces.get(number as usize).cloned().unwrap_or_default();
        async move { statuses_of(&target, fids).await }
    })
    .await?;
    let seconds = target.env.now().saturating_since(start).as_secs_f64();
    Ok(Listing { entries: fids.len(), seconds, bulk })
}

/// The data of a directory, whose length the server gives.
async fn read(target: &Target, directory: Fid) -> Result<Vec<u8>, LoadError> {
    const NAME: &str = "FetchData64";
    const LONGEST: usize = PAGES_MAX as usize * PAGE_LEN;
    let request = FetchData64 { fid: directory, position: 0, length: LONGEST as i64 };
    let mut call = target.files.open(&request).await.during(NAME)?;
    call.finish_request().during(NAME)?;
    let length = call.read_exact(8).await.during(NAME)?;
    let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)).min(LONGEST);
    let mut data = Vec::new();
    while data.len() < length {
        let pieces = call.read_pieces(length - data.len()).await.during(NAME)?;
        if pieces.is_empty() {
            return Err(LoadError::WrongLength { got: data.len() as u64, want: length as u64 });
        }
        pieces.iter().for_each(|piece| data.extend_from_slice(piece));
    }
    call.finish::<FetchData64>().await.during(NAME)?;
    Ok(data)
}

fn entries(directory: Fid, data: Vec<u8>) -> Result<Vec<Fid>, LoadError> {
    let pages = Blob::from_bytes(data).map_err(|_| LoadError::BadDirectory)?;
    let named = pages.entries(0).filter(|entry| ![b".".as_slice(), b".."].contains(&entry.name));
    Ok(named.map(|entry| Fid { vnode: entry.vnode, unique: entry.unique, ..directory }).collect())
}

async fn statuses_of(target: &Target, fids: Fids) -> Result<(), LoadError> {
    let asked = fids.len();
    let reply = target.call(&InlineBulkStatus { fids }).await?;
    let answered = reply.statuses.iter().filter(|status| status.checked().is_ok()).count();
    if answered == asked { Ok(()) } else { Err(LoadError::NoStatus { answered, asked }) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use afs_wire::dir;
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    #[test]
    fn a_listing_has_every_name_but_the_directory_and_its_parent() {
        let root = (VnodeId(1), Uniquifier(1));
        let mut pages = Blob::create(root, root);
        for number in 1..=300_u32 {
            let target = (VnodeId(2 * number), Uniquifier(number + 1));
            dir::insert(&mut pages, format!("entry-{number}").as_bytes(), target).unwrap();
        }
        let directory = Fid::root(VolumeId(7));
        let listed = entries(directory, pages.into_bytes()).unwrap();
        assert_eq!(listed.len(), 300);
        assert!(listed.iter().all(|fid| fid.volume == VolumeId(7) && fid.vnode.0 == 2 * (fid.unique.0 - 1)));
        assert!(matches!(entries(directory, vec![0; 100]), Err(LoadError::BadDirectory)));
    }
}
