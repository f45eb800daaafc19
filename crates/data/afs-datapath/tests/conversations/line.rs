//! One end of a stream whose frames the script changes and cuts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afs_datapath::frame::{Decoder, Event, Message, RequestId, encode_data};
use afs_env::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use afs_env::sync::Notify;
use afs_env::{ByteStream, EnvExt, EnvRef};
use bytes::BytesMut;

use super::PATIENCE;
use super::script::Script;

type Stream = Box<dyn ByteStream>;

/// The sending half.
pub struct Line {
    env: EnvRef,
    half: WriteHalf<Stream>,
    /// Whether any frame was sent otherwise than it was made: then nobody knows what the other end has understood.
    pub is_changed: Arc<AtomicBool>,
    /// The same of any line of the conversation.
    is_any_changed: Arc<AtomicBool>,
}

/// The receiving half.
pub struct Ear {
    half: ReadHalf<Stream>,
    decoder: Decoder,
    received: BytesMut,
    gate: Arc<Gate>,
}

/// Whether an end reads at present.
#[derive(Default)]
pub struct Gate {
    is_shut: AtomicBool,
    opened: Notify,
}

impl Gate {
    pub fn shut(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
    }

    pub fn open(&self) {
        self.is_shut.store(false, Ordering::Relaxed);
        self.opened.notify_waiters();
    }

    async fn pass(&self) {
        loop {
            let opened = self.opened.notified();
            if !self.is_shut.load(Ordering::Relaxed) {
                return;
            }
            opened.await;
        }
    }
}

pub fn halves(env: &EnvRef, stream: Stream, is_any_changed: Arc<AtomicBool>) -> (Line, Ear, Arc<Gate>) {
    let (read, write) = split(stream);
    let gate = Arc::<Gate>::default();
    let line = Line { env: env.clone(), half: write, is_changed: Arc::default(), is_any_changed };
    let ear = Ear { half: read, decoder: Decoder::default(), received: BytesMut::new(), gate: gate.clone() };
    (line, ear, gate)
}

impl Line {
    /// Sends a message, as it is or as the script says; whether the stream took it.
    pub async fn send(&mut self, message: &Message, script: &mut Script) -> bool {
        self.frame(message.to_frame().to_vec(), script).await
    }

    /// Sends bytes of a file in frames of at most `most`.
    pub async fn data(&mut self, request: u32, bytes: &[u8], most: usize, script: &mut Script) -> bool {
        for piece in bytes.chunks(most.max(1)) {
            let mut frame = encode_data(RequestId(request), piece.len()).to_vec();
            frame.extend_from_slice(piece);
            if !self.frame(frame, script).await {
                return false;
            }
        }
        true
    }

    /// Sends bytes that may be no frame.
    pub async fn raw(&mut self, bytes: &[u8]) -> bool {
        self.note_change();
        self.write(bytes).await
    }

    fn note_change(&self) {
        self.is_changed.store(true, Ordering::Relaxed);
        self.is_any_changed.store(true, Ordering::Relaxed);
    }

    /// Most frames go whole; some in two pieces, and a few with a byte changed, or without their end.
    async fn frame(&mut self, mut frame: Vec<u8>, script: &mut Script) -> bool {
        match script.byte() {
            0xf0 => {
                let at = script.word() as usize % frame.len();
                frame[at] ^= script.byte().max(1);
                self.note_change();
            }
            0xf1 => {
                frame.truncate(script.word() as usize % frame.len());
                self.note_change();
            }
            0xe0..=0xef => {
                let rest = frame.split_off(script.word() as usize % frame.len());
                if !self.write(&frame).await {
                    return false;
                }
                self.env.sleep(script.pause()).await;
                frame = rest;
            }
            _ => {}
        }
        self.write(&frame).await
    }

    /// # Panics
    /// If the other end neither takes the bytes nor ends the stream.
    async fn write(&mut self, bytes: &[u8]) -> bool {
        let writing = async {
            self.half.write_all(bytes).await?;
            self.half.flush().await
        };
        self.env.timeout(PATIENCE, writing).await.expect("the other end neither reads nor leaves").is_ok()
    }
}

impl Ear {
    /// The next event; `None` at the end of the stream.
    ///
    /// # Panics
    /// If the end of the crate sends what is no frame.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) =
                self.decoder.next(&mut self.received).expect("frames of the crate are frames")
            {
                return Some(event);
            }
            self.gate.pass().await;
            match self.half.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}
