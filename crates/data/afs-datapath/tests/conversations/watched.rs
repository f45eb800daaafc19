//! Files of a drive that compare every access with the capabilities that were given, and count the bytes that a session holds.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use afs_datapath::capability::{Access, ByteRange, Capability, Group, Refusal, StreamName, TicketId};
use afs_datapath::session::{
    Chunks, Failure, Objects, Opened, Pieces, ReadRequest, StoreRequest, StreamRequest, Taken,
};
use afs_env::{BoxFuture, EnvExt, EnvRef};
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;

use super::issued::Issued;
use super::reached::Reached;

pub const VOLUME: VolumeId = VolumeId(536_870_913);
pub const VERSION: DataVersion = DataVersion(3);

/// A file; its directory is 1 for vnodes below 100, and 3 for others.
pub fn file(vnode: u32) -> Fid {
    Fid::new(VOLUME, VnodeId(vnode), Uniquifier(7))
}

pub fn directory(vnode: u32) -> Fid {
    Fid::new(VOLUME, VnodeId(vnode), Uniquifier(1))
}

fn parent(fid: Fid) -> Fid {
    directory(if fid.vnode.0 < 100 { 1 } else { 3 })
}

/// The byte of a file at a place.
pub fn byte_at(fid: Fid, at: u64) -> u8 {
    (at ^ (at >> 8) ^ u64::from(fid.vnode.0).wrapping_mul(31)) as u8
}

/// Length of a file, if there is one.
pub fn length_of(fid: Fid) -> Option<u64> {
    match fid.vnode.0 {
        2 => Some(1000),
        4 => Some(0),
        6 => Some(3 << 20),
        102 => Some(600_000),
        _ => None,
    }
}

/// How slow the objects are, and whether they fail.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub piece_max: usize,
    pub pause: Duration,
    /// Before the first bytes of a store are taken.
    pub first_pause: Duration,
    pub fails_after: Option<usize>,
}

pub struct Watched {
    pub env: EnvRef,
    pub issued: Issued,
    pub manner: Mutex<Manner>,
    pub reached: Reached,
    /// Bytes of replies that are still in memory.
    pub held: Arc<AtomicUsize>,
    /// Whether some connection has sent a frame that was changed: bytes may be others then.
    pub is_changed: Arc<AtomicBool>,
    begun: Mutex<BTreeSet<StreamName>>,
}

impl Watched {
    pub fn new(env: EnvRef, manner: Manner, reached: Reached) -> Arc<Self> {
        Arc::new(Self {
            issued: Issued::new(env.clone()),
            env,
            manner: Mutex::new(manner),
            reached,
            held: Arc::default(),
            is_changed: Arc::default(),
            begun: Mutex::default(),
        })
    }

    pub fn manner(&self) -> Manner {
        *self.manner.lock().unwrap()
    }

    fn check(&self, capability: &Capability, access: Access, fid: Fid, range: ByteRange) {
        assert!(self.issued.is_good(capability), "by a capability that is not good: {capability:?}");
        assert!(capability.access.permits(access), "{access:?} by {capability:?}");
        let is_covered = match capability.group {
            Group::File(file) => file == fid,
            Group::Directory(directory) => directory.volume == fid.volume,
            Group::Volume(volume) => volume == fid.volume,
            Group::Stream(stream) => stream.fid() == fid,
            _ => false,
        };
        let within = capability.range;
        assert!(is_covered, "{fid} by {capability:?}");
        assert!(
            within.start() <= range.start() && range.end() <= within.end(),
            "{range:?} by {capability:?}"
        );
    }

    /// A stream begins once.
    fn begin(&self, request: &StreamRequest, access: Access) -> Result<(), Failure> {
        self.check(&request.capability, access, request.stream.fid(), ByteRange::ALL);
        let is_first = self.begun.lock().unwrap().insert(request.stream);
        if is_first { Ok(()) } else { Err(Refusal::Revoked.into()) }
    }

    /// Without a pause no other task runs.
    async fn pause(&self, pause: Duration) {
        if !pause.is_zero() {
            self.env.sleep(pause).await;
        }
    }

    /// Bytes whose holders are counted.
    pub fn counted(&self, bytes: Vec<u8>) -> Bytes {
        self.held.fetch_add(bytes.len(), Ordering::Relaxed);
        Bytes::from_owner(Counted { bytes, held: self.held.clone() })
    }
}

struct Counted {
    bytes: Vec<u8>,
    held: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// The objects of one drive.
pub struct Files(pub Arc<Watched>);

impl Objects for Files {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        let me = self.0.clone();
        me.check(&request.capability, Access::READ, request.fid, request.range);
        Box::pin(async move {
            let fid = request.fid;
            if request.capability.group.parent().is_some_and(|wanted| wanted != parent(fid)) {
                return Err(Refusal::OtherObject.into());
            }
            let file_length = length_of(fid).ok_or(Failure::NoObject)?;
            if request.version != VERSION {
                return Err(Failure::OtherVersion);
            }
            let [at, end] = [request.range.start(), request.range.end()].map(|at| at.min(file_length));
            me.reached.note("read begun");
            let pieces =
                Rest { watched: me, fid, at, end, given: 0, capability: Some(request.capability), late: 0 };
            Ok(Opened { file_length, length: end - at, pieces: Box::new(pieces) })
        })
    }

    fn store(&self, request: StoreRequest, bytes: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        let me = self.0.clone();
        me.check(&request.capability, Access::WRITE, request.description.fid, request.description.extent());
        me.reached.note("store begun");
        Box::pin(async move {
            let came = me.drain(bytes, Some(request.capability), 512 << 10).await?;
            assert_eq!(came, request.description.total(), "a store ended with other bytes than its ranges");
            Ok(TicketId(1))
        })
    }

    fn open_stream(&self, request: StreamRequest) -> BoxFuture<'static, Result<Box<dyn Pieces>, Failure>> {
        let me = self.0.clone();
        let begun = me.begin(&request, Access::READ);
        Box::pin(async move {
            begun?;
            me.reached.note("stream begun");
            let fid = request.stream.fid();
            let pieces: Box<dyn Pieces> =
                Box::new(Rest { watched: me, fid, at: 0, end: 700_000, given: 0, capability: None, late: 0 });
            Ok(pieces)
        })
    }

    fn take_stream(&self, request: StreamRequest, bytes: Taken) -> BoxFuture<'static, Result<(), Failure>> {
        let me = self.0.clone();
        let begun = me.begin(&request, Access::WRITE);
        Box::pin(async move {
            begun?;
            me.reached.note("stream begun");
            me.drain(bytes, None, 2 << 20).await.map(drop)
        })
    }

    fn chunks(&self) -> Option<&dyn Chunks> {
        Some(self)
    }
}

impl Watched {
    /// Takes all bytes of a request, of which at most `window` may wait. Returns how many they were.
    pub async fn drain(
        &self,
        mut bytes: Taken,
        capability: Option<Capability>,
        window: usize,
    ) -> Result<u64, Failure> {
        let (manner, mut came, mut waiting) = (self.manner(), 0, 0);
        self.pause(manner.first_pause).await;
        loop {
            self.pause(manner.pause).await;
            // Credit for what is taken here leaves when this task waits: until then there is what had waited.
            let (next, has_waited) = next_of(&mut bytes).await;
            let Some(piece) = next? else { return Ok(came) };
            if let Some(capability) = &capability {
                assert!(self.issued.is_good(capability), "bytes by {capability:?} after its end");
            }
            waiting = if has_waited || !manner.pause.is_zero() { 0 } else { waiting + piece.len() };
            assert!(waiting <= window, "{waiting} bytes waited");
            self.check_sent(&piece);
            came += piece.len() as u64;
            if manner.fails_after.is_some_and(|most| came > most as u64) {
                return Err(Failure::NoSpace);
            }
        }
    }

    /// Senders put one value into all bytes.
    fn check_sent(&self, piece: &[u8]) {
        let is_uniform = piece.iter().all(|byte| *byte == SENT);
        assert!(is_uniform || self.is_changed.load(Ordering::Relaxed), "bytes that nobody sent");
    }
}

/// The value of all bytes that scripts send.
pub const SENT: u8 = 0x5a;

/// The next bytes, and whether they had to be waited for.
async fn next_of(bytes: &mut Taken) -> (Result<Option<Bytes>, Failure>, bool) {
    let mut next = pin!(bytes.next());
    let mut has_waited = false;
    poll_fn(|cx| match next.as_mut().poll(cx) {
        Poll::Ready(next) => Poll::Ready((next, has_waited)),
        Poll::Pending => {
            has_waited = true;
            Poll::Pending
        }
    })
    .await
}

/// Bytes that are still to be given.
struct Rest {
    watched: Arc<Watched>,
    fid: Fid,
    at: u64,
    end: u64,
    given: usize,
    /// Of a read of a file.
    capability: Option<Capability>,
    /// Pieces after the capability had ended.
    late: usize,
}

impl Pieces for Rest {
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        Box::pin(async move {
            let manner = self.watched.manner();
            self.watched.pause(manner.pause).await;
            if self.capability.as_ref().is_some_and(|capability| !self.watched.issued.is_good(capability)) {
                // The session looks after each piece whether it may send it.
                self.late += 1;
                assert_eq!(self.late, 1, "another piece was read after the end of a capability");
            }
            if manner.fails_after.is_some_and(|most| self.given > most) {
                return Err(Failure::Io);
            }
            let len = most.min(manner.piece_max).min(usize::try_from(self.end - self.at).unwrap());
            let piece = (self.at..self.at + len as u64).map(|at| byte_at(self.fid, at)).collect();
            (self.at, self.given) = (self.at + len as u64, self.given + len);
            Ok(self.watched.counted(piece))
        })
    }
}
