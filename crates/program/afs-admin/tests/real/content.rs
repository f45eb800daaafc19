//! Content of volumes, written and read at their store.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use afs_admin::ServerPartition;
use afs_volume::{Actor, StoreData, Volume, VolumeError};
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, Uniquifier, ViceId, VnodeId, VolumeId};
use bytes::Bytes;

use super::cell::Cell;

const ADMIN: Actor = Actor { id: ViceId(1), administrator: true };

/// Files and directories of a volume: version, length and digest of their data, by number.
pub type Content = BTreeMap<(VnodeId, Uniquifier), (u32, usize, u64)>;

/// Writes a file in the root directory of a volume; creates it if needed.
pub fn write(cell: &Cell, at: ServerPartition, volume: VolumeId, name: &str, bytes: &[u8]) {
    let volume = cell.store(at).volume(volume).expect("the volume is there");
    let (name, bytes) = (name.as_bytes().to_vec(), bytes.to_vec());
    cell.on_server(at, async move { put(&volume, name, bytes).await }).expect("it can be written");
}

async fn put(volume: &Arc<Volume>, name: Vec<u8>, bytes: Vec<u8>) -> Result<(), VolumeError> {
    let (root, id) = (Fid::root(volume.id()), volume.id());
    let fid = volume
        .update(move |tx| {
            let directory = tx.vnode(root)?;
            match tx.lookup(&directory, &name)? {
                Some((vnode, unique)) => Ok(Fid::new(id, vnode, unique)),
                None => Ok(tx.create_file(root, &name, &SetStatus::default(), ADMIN)?.object.fid(id)),
            }
        })
        .await?;
    let mut writer = volume.write_data(0)?;
    let file_length = bytes.len() as u64;
    writer.push(Bytes::from(bytes)).await?;
    let data = writer.finish().await?;
    let store = StoreData { fid, file_length, status: SetStatus::default(), expected: None };
    volume.update(move |tx| tx.store_data(store, data, ADMIN).map(drop)).await
}

/// Removes a file from the root directory of a volume.
pub fn remove(cell: &Cell, at: ServerPartition, volume: VolumeId, name: &str) {
    let volume = cell.store(at).volume(volume).expect("the volume is there");
    let (root, name) = (Fid::root(volume.id()), name.as_bytes().to_vec());
    let removed = cell.on_server(at, async move {
        volume.update(move |tx| tx.remove_file(root, &name, ADMIN).map(drop)).await
    });
    removed.expect("it can be removed");
}

/// The complete content of a volume.
pub fn content(cell: &Cell, at: ServerPartition, volume: VolumeId) -> Content {
    let volume = cell.store(at).volume(volume).unwrap_or_else(|| panic!("volume {volume} is not on {at}"));
    cell.on_server(at, async move { read(&volume).await }).expect("it can be read")
}

async fn read(volume: &Arc<Volume>) -> Result<Content, VolumeError> {
    let mut all = Content::new();
    for directories in [true, false] {
        for record in volume.vnodes_after(directories, VnodeId(0), 1000)? {
            let mut reader = volume.read_data(record.fid(volume.id()), 0, u64::MAX)?;
            let mut bytes = Vec::new();
            while let Some(part) = reader.next().await? {
                bytes.extend_from_slice(&part);
            }
            let mut digest = DefaultHasher::new();
            bytes.hash(&mut digest);
            // A dump has the lower half; the upper one counts restores at a server.
            let told = (record.data_version.0 as u32, bytes.len(), digest.finish());
            all.insert((record.vnode, record.unique), told);
        }
    }
    Ok(all)
}
