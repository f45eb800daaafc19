//! What programs do to files in worlds of troubles: changes, and reads of a whole file.

use afs_rpc::BoxFuture;
use afs_venus::NodeId;

use super::*;

/// What a program does to a file.
#[derive(Clone, Debug)]
pub enum Change {
    Whole,
    Part(usize, usize),
    Length(usize),
    Remove,
}

/// A file after a change by which bytes are written.
pub fn apply(before: Option<&Vec<u8>>, change: &Change, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut file = before.cloned().unwrap_or_default();
    match change {
        Change::Whole => file = bytes.to_vec(),
        Change::Part(from, length) => {
            file.resize(file.len().max(from + length), 0);
            file[*from..from + length].copy_from_slice(bytes);
        }
        Change::Length(length) => file.resize(*length, 0),
        Change::Remove => return None,
    }
    Some(file)
}

/// The change as a program makes it.
pub fn perform(
    name: String,
    change: Change,
    bytes: Vec<u8>,
) -> impl FnOnce(Client) -> BoxFuture<'static, afs_venus::Result<()>> {
    |client| {
        Box::pin(async move {
            match change {
                Change::Whole => client.put(&name, &bytes).await,
                Change::Part(from, _) => {
                    let handle = client.open(&name, OpenFlags::WRITE).await?;
                    let written = client.venus.write(handle, from as u64, bytes.into()).await.map(drop);
                    let closed = client.venus.flush(handle, 0).await;
                    client.venus.release(handle).await.ok();
                    written.and(closed)
                }
                Change::Length(length) => {
                    let node = client.find(&name).await?.node;
                    let set = SetAttr { size: Some(length as u64), ..SetAttr::default() };
                    client.venus.setattr(node, None, set).await.map(drop)
                }
                Change::Remove => client.venus.unlink(NodeId::ROOT, name.as_bytes()).await.map(drop),
            }
        })
    }
}

/// A read of a whole file, perhaps by a machine that has dropped what it had cached.
pub fn look(
    name: String,
    flushes: bool,
) -> impl FnOnce(Client) -> BoxFuture<'static, afs_venus::Result<Vec<u8>>> {
    move |client| {
        Box::pin(async move {
            if flushes {
                client.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await?;
            }
            client.get(&name).await
        })
    }
}
