//! Files in memory, as the objects of a drive.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use afs_datapath::capability::{Refusal, StreamName, TicketId};
use afs_datapath::session::{
    Failure, Objects, Opened, Pieces, ReadRequest, StoreRequest, StreamRequest, Taken,
};
use afs_env::BoxFuture;
use afs_wire::ids::{DataVersion, Fid};
use bytes::Bytes;

use super::directory;

pub const VERSION: DataVersion = DataVersion(3);

/// Bytes that differ from place to place and from file to file.
pub fn pattern(fid: Fid, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u32 ^ (at as u32 >> 8) ^ fid.vnode.0.wrapping_mul(31)) as u8).collect()
}

type Stored = BTreeMap<TicketId, (StoreRequest, Vec<u8>)>;

/// The files of a drive, and what was stored there.
#[derive(Default)]
pub struct Files {
    files: Mutex<BTreeMap<Fid, Bytes>>,
    stored: Arc<Mutex<Stored>>,
    /// Bytes that reads were given.
    pub given: Arc<AtomicUsize>,
    takes_nothing: AtomicBool,
    /// Streams that wait for their clients, with the bytes of those that leave.
    streams: Mutex<BTreeMap<StreamName, Bytes>>,
    /// Streams that came to their end.
    taken: Arc<Mutex<BTreeMap<StreamName, Vec<u8>>>>,
}

impl Files {
    /// Adds a file with the pattern.
    pub fn add(&self, fid: Fid, len: usize) -> Vec<u8> {
        let bytes = pattern(fid, len);
        self.files.lock().unwrap().insert(fid, bytes.clone().into());
        bytes
    }

    /// From now on stores wait for ever.
    pub fn take_nothing(&self) {
        self.takes_nothing.store(true, Ordering::Relaxed);
    }

    /// What came under a ticket.
    pub fn stored(&self, ticket: TicketId) -> (StoreRequest, Vec<u8>) {
        self.stored.lock().unwrap()[&ticket].clone()
    }

    /// Adds a stream, which begins once; one that leaves has the pattern.
    pub fn add_stream(&self, stream: StreamName, len: usize) -> Vec<u8> {
        let bytes = pattern(stream.fid(), len);
        self.streams.lock().unwrap().insert(stream, bytes.clone().into());
        bytes
    }

    /// The bytes of a stream that came to its end.
    pub fn taken(&self, stream: StreamName) -> Option<Vec<u8>> {
        self.taken.lock().unwrap().get(&stream).cloned()
    }

    /// All that was stored.
    pub fn all_stored(&self) -> Vec<Vec<u8>> {
        self.stored.lock().unwrap().values().map(|(_, bytes)| bytes.clone()).collect()
    }
}

/// The directory in which a file is.
fn parent(fid: Fid) -> Fid {
    directory(if fid.vnode.0 < 100 { 1 } else { 3 })
}

fn check_parent(fid: Fid, wanted: Option<Fid>) -> Result<(), Failure> {
    match wanted {
        Some(wanted) if wanted != parent(fid) => Err(Refusal::OtherObject.into()),
        _ => Ok(()),
    }
}

impl Objects for Files {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        let file = self.files.lock().unwrap().get(&request.fid).cloned();
        let given = self.given.clone();
        Box::pin(async move {
            check_parent(request.fid, request.capability.group.parent())?;
            let file = file.ok_or(Failure::NoObject)?;
            if request.version != VERSION {
                return Err(Failure::OtherVersion);
            }
            let cut = |at: u64| usize::try_from(at).unwrap().min(file.len());
            let rest = file.slice(cut(request.range.start())..cut(request.range.end()));
            let length = rest.len() as u64;
            Ok(Opened { file_length: file.len() as u64, length, pieces: Box::new(Rest { rest, given }) })
        })
    }

    fn store(
        &self,
        request: StoreRequest,
        mut bytes: Taken,
    ) -> BoxFuture<'static, Result<TicketId, Failure>> {
        let (fid, stored) = (request.description.fid, self.stored.clone());
        let takes_nothing = self.takes_nothing.load(Ordering::Relaxed);
        Box::pin(async move {
            if takes_nothing {
                std::future::pending::<()>().await;
            }
            check_parent(fid, request.capability.group.parent())?;
            let mut all = Vec::new();
            while let Some(piece) = bytes.next().await? {
                all.extend_from_slice(&piece);
            }
            let mut stored = stored.lock().unwrap();
            let ticket = TicketId(1 + stored.len() as u128);
            stored.insert(ticket, (request, all));
            Ok(ticket)
        })
    }

    fn open_stream(&self, request: StreamRequest) -> BoxFuture<'static, Result<Box<dyn Pieces>, Failure>> {
        let (rest, given) = (self.streams.lock().unwrap().remove(&request.stream), self.given.clone());
        Box::pin(async move {
            let pieces: Box<dyn Pieces> = Box::new(Rest { rest: rest.ok_or(Refusal::Revoked)?, given });
            Ok(pieces)
        })
    }

    fn take_stream(
        &self,
        request: StreamRequest,
        mut bytes: Taken,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let (waits, taken) =
            (self.streams.lock().unwrap().remove(&request.stream).is_some(), self.taken.clone());
        let takes_nothing = self.takes_nothing.load(Ordering::Relaxed);
        Box::pin(async move {
            if !waits {
                return Err(Refusal::Revoked.into());
            }
            if takes_nothing {
                std::future::pending::<()>().await;
            }
            let mut all = Vec::new();
            while let Some(piece) = bytes.next().await? {
                all.extend_from_slice(&piece);
            }
            taken.lock().unwrap().insert(request.stream, all);
            Ok(())
        })
    }
}

/// Bytes that are still to be given.
struct Rest {
    rest: Bytes,
    given: Arc<AtomicUsize>,
}

impl Pieces for Rest {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        let piece = self.rest.split_to(most.min(self.rest.len()));
        self.given.fetch_add(piece.len(), Ordering::Relaxed);
        Box::pin(async move { Ok(piece) })
    }
}
