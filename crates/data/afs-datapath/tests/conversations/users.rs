//! Users of a client: each makes one request after another, gives some of them up, and looks at what it gets.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Generation, Group, KeyEpoch, StreamName, Terms,
};
use afs_datapath::frame::{CHUNKS_MAX, ChunkRequest, Failure, OPEN_END, StoreDescription};
use afs_datapath::session::{Arriving, Client, Error, Handle, Leaving, Lost};
use afs_env::{EnvExt, EnvRef};
use bytes::Bytes;

use super::PATIENCE;
use super::drive_moves::{alone, stream};
use super::reached::Reached;
use super::script::Script;
use super::watched::{SENT, VERSION, directory, file};
use super::watched_chunks::{STORE, chunk, chunk_bytes};

/// Most requests of one user.
const REQUESTS_MAX: usize = 12;
/// Most bytes that wait for a reader, of a stream twice as many.
const WAITING_MAX: usize = 1 << 20;

pub struct User {
    pub env: EnvRef,
    pub client: Client,
    pub reached: Reached,
    pub script: Script,
}

impl User {
    /// Makes requests until the script is over. Each ends: whole, with an error, or because it was given up.
    pub async fn work(mut self) {
        for _ in 0..REQUESTS_MAX {
            if self.script.is_over() || self.client.lost().is_some() {
                return;
            }
            let env = self.env.clone();
            let pause = self.script.pause();
            env.sleep(pause).await;
            // Seldom nobody waits for the end.
            let is_given_up = self.script.once_in(8);
            let wait = if is_given_up { self.script.pause() } else { PATIENCE };
            match env.timeout(wait, self.ask()).await {
                Ok(Ok(())) => self.reached.note("whole"),
                Ok(Err(error)) => self.reached.note(name_of(&error)),
                Err(_) if is_given_up => self.reached.note("given up"),
                Err(_) => panic!("a request neither ends nor fails"),
            }
        }
    }

    async fn ask(&mut self) -> Result<(), Error> {
        match self.script.below(10) {
            0..=2 => self.read().await,
            3 | 4 => self.store().await,
            5 => self.receive_stream().await,
            6 => self.send_stream().await,
            7 => self.perform().await,
            _ => self.read_bound().await,
        }
    }

    fn present(&mut self, group: Group, access: Access) -> Result<Handle, Error> {
        let key = key();
        let capability = Capability {
            drive: key.drive(),
            epoch: key.epoch(),
            group,
            access,
            range: ByteRange::ALL,
            expires: u64::MAX,
            generation: Generation(1),
            holder: key.holder(b"host", b"identity"),
        };
        self.client.present(&capability, &key.seal(&capability))
    }

    async fn read(&mut self) -> Result<(), Error> {
        let handle = self.present(Group::Directory(directory(1)), Access::READ)?;
        let (start, len) = (self.script.length(), self.script.length());
        let range = ByteRange::at(start.into(), len.into()).unwrap_or(ByteRange::ALL);
        self.reached.note("read asked");
        let arriving = self.client.read(&handle, file(2), range, VERSION).await?;
        assert!(arriving.length() <= range.len(), "more bytes than were asked for");
        self.drain(arriving, WAITING_MAX).await.map(drop)
    }

    async fn receive_stream(&mut self) -> Result<(), Error> {
        let name = self.stream();
        let handle = self.present(Group::Stream(name), Access::READ)?;
        self.reached.note("stream asked");
        let arriving = self.client.receive_stream(&handle, name).await?;
        assert_eq!(arriving.length(), OPEN_END);
        self.drain(arriving, 2 * WAITING_MAX).await?;
        self.reached.note("stream to its end");
        Ok(())
    }

    fn stream(&mut self) -> StreamName {
        stream(u32::from(self.script.byte() % 4))
    }

    /// Reads to the end: as many bytes as were announced, of which at most `most` have waited.
    async fn drain(&mut self, mut arriving: Arriving, most: usize) -> Result<u64, Error> {
        let (length, pause) = (arriving.length(), self.script.pick(&[0, 0, 1, 500]));
        let (mut came, mut waiting) = (0, 0);
        loop {
            if pause > 0 {
                self.env.sleep(Duration::from_millis(pause)).await;
            }
            // Without a pause nothing arrives meanwhile: that has waited.
            let (next, has_waited) = next_of(&mut arriving).await;
            let Some(piece) = next? else { break };
            waiting = if has_waited || pause > 0 { 0 } else { waiting + piece.len() };
            assert!(!piece.is_empty() && waiting <= most, "{waiting} bytes have waited");
            came += piece.len() as u64;
        }
        assert!(length == OPEN_END || came == length, "{came} bytes of {length}");
        self.reached.note("read to its end");
        Ok(came)
    }

    async fn store(&mut self) -> Result<(), Error> {
        let handle = self.present(Group::Directory(directory(1)), Access::WRITE)?;
        let len = self.script.length();
        let ranges = ByteRange::at(10, len.into()).into_iter().filter(|range| !range.is_empty()).collect();
        let description = StoreDescription::new(file(2), 0, ranges).ok_or(Error::Length)?;
        self.reached.note("store asked");
        let leaving = self.client.store(&handle, &description).await?;
        self.put(leaving, len as usize).await?;
        self.reached.note("stored");
        Ok(())
    }

    async fn send_stream(&mut self) -> Result<(), Error> {
        let name = self.stream();
        let handle = self.present(Group::Stream(name), Access::WRITE)?;
        let len = self.script.length() as usize;
        self.reached.note("stream asked");
        let leaving = self.client.send_stream(&handle, name).await?;
        // A stream has no pace of its own: who sends one decides how long it may take.
        let env = self.env.clone();
        env.timeout(Duration::from_secs(100), self.put(leaving, len)).await.map_err(|_| Error::Stalled)?
    }

    async fn put(&mut self, mut leaving: Leaving, len: usize) -> Result<(), Error> {
        for piece in vec![SENT; len].chunks(self.script.pick(&[5000, 100_000, 300_000])) {
            leaving.put(Bytes::copy_from_slice(piece)).await?;
        }
        leaving.finish().await.map(drop)
    }

    async fn perform(&mut self) -> Result<(), Error> {
        let handle = self.present(Group::Chunks(STORE), Access::MANAGE)?;
        let what = match self.script.below(4) {
            0 => ChunkRequest::Status,
            1 => ChunkRequest::Discard { chunks: vec![chunk(); self.script.pick(&[1, CHUNKS_MAX])] },
            _ => ChunkRequest::Write { length: self.script.length() },
        };
        let bytes = vec![SENT; usize::try_from(what.incoming()).unwrap()];
        self.client.perform(&handle, what, bytes.into()).await?;
        self.reached.note("performed");
        Ok(())
    }

    /// A chunk that is bound is the right one, whatever the drive sends.
    async fn read_bound(&mut self) -> Result<(), Error> {
        let (key, chunk) = (key(), chunk());
        let tag = key.tag(Group::Directory(directory(1)));
        let handle = self.present(Group::Tagged(tag), Access::READ)?;
        let file = key.tag(Group::File(file(2)));
        let terms = Terms { store: STORE, start: 0, end: chunk.len, file, generation: Generation(1) };
        let listed = alone(&key, tag, chunk, terms);
        let range = self.script.pick(&[(0, chunk.len), (65_536, 65_540), (5, 5), (99_000, 100_000)]);
        self.reached.note("bound asked");
        let read = self.client.read_listed(&handle, (chunk, listed), range.0..range.1).await?;
        let right = &chunk_bytes()[range.0 as usize..range.1 as usize];
        assert!(read == right, "other bytes than those of the chunk");
        self.reached.note("bound read");
        Ok(())
    }
}

fn key() -> DriveKey {
    DriveKey::new(DriveId(0xd1), KeyEpoch(5), [7; 32])
}

/// The next bytes, and whether they had to be waited for.
async fn next_of(arriving: &mut Arriving) -> (Result<Option<Bytes>, Error>, bool) {
    let mut next = pin!(arriving.next());
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

fn name_of(error: &Error) -> &'static str {
    match error {
        Error::Failed(Failure::Damaged) => "damaged",
        Error::Failed(_) => "failed",
        Error::Lost(Lost::Violation(_)) => "violated",
        Error::Lost(Lost::Frame(_)) => "no frame",
        Error::Lost(Lost::Silent) => "silent",
        Error::Lost(Lost::Goodbye(_)) => "goodbye",
        Error::Lost(_) => "lost",
        Error::Handles => "no handle",
        Error::Stalled => "stalled",
        Error::Length => "length",
    }
}
