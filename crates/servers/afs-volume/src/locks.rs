//! Rows of advisory locks, so that locks outlive the process. The store keeps holder and kind as opaque
//! values; their meaning belongs to the file service.

use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::key::LOCKS;
use crate::store::VolumeStore;

/// One lock of one holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptLock {
    /// The object.
    pub fid: Fid,
    /// The holder, as encoded by the file service.
    pub holder: Bytes,
    /// The kind of lock, as encoded by the file service.
    pub kind: u8,
}

/// Length of a fid at the start of a key.
const FID_LEN: usize = 12;

impl VolumeStore {
    /// Writes a lock. Durable when this resolves.
    pub async fn keep_lock(&self, lock: KeptLock) -> Result<(), VolumeError> {
        self.store
            .kv
            .update(move |txn| {
                txn.put(LOCKS, &key(lock.fid, &lock.holder), vec![lock.kind]);
                Ok::<_, VolumeError>(())
            })
            .await?;
        Ok(())
    }

    /// Deletes locks; absent ones are no error.
    pub async fn forget_locks(&self, locks: Vec<(Fid, Bytes)>) -> Result<(), VolumeError> {
        self.store
            .kv
            .update(move |txn| {
                for (fid, holder) in &locks {
                    txn.delete(LOCKS, &key(*fid, holder));
                }
                Ok::<_, VolumeError>(())
            })
            .await?;
        Ok(())
    }

    /// All stored locks, by ascending fid. An invalid row is left out.
    pub fn kept_locks(&self) -> Result<Vec<KeptLock>, VolumeError> {
        let snapshot = self.store.kv.snapshot();
        let mut locks = Vec::new();
        for row in snapshot.range(LOCKS, .., false) {
            let (key, value) = row?;
            locks.extend(decode(&key, &value));
        }
        Ok(locks)
    }
}

fn key(fid: Fid, holder: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(FID_LEN + holder.len());
    for number in [fid.volume.0, fid.vnode.0, fid.unique.0] {
        key.extend_from_slice(&number.to_be_bytes());
    }
    key.extend_from_slice(holder);
    key
}

pub(crate) fn decode(key: &Bytes, value: &[u8]) -> Option<KeptLock> {
    let number = |n: usize| Some(u32::from_be_bytes(key.get(4 * n..4 * n + 4)?.try_into().ok()?));
    let fid =
        Fid { volume: VolumeId(number(0)?), vnode: VnodeId(number(1)?), unique: Uniquifier(number(2)?) };
    let &[kind] = value else { return None };
    Some(KeptLock { fid, holder: key.slice(FID_LEN..), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_locks_are_read_back_and_other_rows_are_left_out() {
        let fid = Fid { volume: VolumeId(7), vnode: VnodeId(2), unique: Uniquifier(9) };
        let row = Bytes::from(key(fid, b"holder"));
        let lock = KeptLock { fid, holder: Bytes::from_static(b"holder"), kind: 1 };
        assert_eq!(decode(&row, &[1]), Some(lock));
        assert_eq!(decode(&row, &[]), None);
        assert_eq!(decode(&row.slice(..11), &[1]), None);
        assert_eq!(decode(&row.slice(..12), &[0]).map(|lock| lock.holder), Some(Bytes::new()));
    }
}
