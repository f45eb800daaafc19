//! What a client of a drive hears, compared with what it may hear.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use afs_datapath::capability::Nonce;
use afs_datapath::frame::{Event, Failure, Goodbye, Message, OPEN_END, RequestId};
use afs_wire::ids::Fid;

use super::line::Ear;
use super::reached::Reached;
use super::watched::{byte_at, length_of};

/// What a connection has heard, and may hear.
pub struct Heard {
    pub reached: Reached,
    pub is_changed: Arc<AtomicBool>,
    pub drive: Option<Nonce>,
    pub expected: BTreeMap<u32, Expected>,
}

/// What a request may bring.
#[derive(Default)]
pub struct Expected {
    /// The file and where its bytes begin, of a read of one.
    pub of: Option<(Fid, u64)>,
    pub credit: u64,
    pub announced: Option<u64>,
    pub came: u64,
    pub is_over: bool,
}

/// Compares what comes with what may come, to the end of the stream.
pub async fn listen(mut ear: Ear, heard: Arc<Mutex<Heard>>) {
    while let Some(event) = ear.next().await {
        heard.lock().unwrap().hear(event);
    }
}

impl Heard {
    fn hear(&mut self, event: Event) {
        let is_changed = self.is_changed.load(Ordering::Relaxed);
        match event {
            Event::Data(request, piece) if is_changed => drop((request, piece)),
            Event::Data(request, piece) => self.bytes(request, &piece),
            Event::Message(Message::Welcome(welcome)) => {
                assert!(self.drive.is_none(), "a second welcome");
                self.drive = Some(welcome.nonce);
                self.reached.note("greeted");
            }
            Event::Message(message) => self.message(message, is_changed),
        }
    }

    fn bytes(&mut self, request: RequestId, piece: &[u8]) {
        let expected = self.expected.get_mut(&request.0).expect("bytes that nobody asked for");
        let len = piece.len() as u64;
        let left = expected.announced.expect("bytes before their announcement").checked_sub(expected.came);
        assert!(left.is_some_and(|left| len <= left), "more bytes than announced");
        expected.credit = expected.credit.checked_sub(len).expect("bytes without credit");
        if let Some((fid, start)) = expected.of {
            let at = start + expected.came;
            let is_right = piece.iter().zip(at..).all(|(byte, at)| *byte == byte_at(fid, at));
            assert!(is_right, "other bytes than those of {fid} at {at}");
        }
        expected.came += len;
        if expected.announced == Some(expected.came) {
            self.reached.note("read to its end");
        }
    }

    fn message(&mut self, message: Message, is_changed: bool) {
        match message {
            Message::Announce { request, length, .. } => self.announced(request, length, is_changed),
            Message::Stored { request, .. } => self.over(request, "stored", is_changed),
            Message::Performed { request, .. } => self.over(request, "performed", is_changed),
            Message::Failed { request, failure } => self.over(request, name_of(failure), is_changed),
            Message::Credit { .. } => self.reached.note("credited"),
            Message::Alive => {}
            Message::Goodbye(Goodbye::Violation) => self.reached.note("told of a violation"),
            Message::Goodbye(Goodbye::Version) => self.reached.note("told of another version"),
            Message::Goodbye(_) => self.reached.note("told of the end"),
            other => panic!("a drive does not send {other:?}"),
        }
    }

    fn announced(&mut self, request: RequestId, length: u64, is_changed: bool) {
        let Some(expected) = self.expected.get_mut(&request.0).filter(|_| !is_changed) else { return };
        match expected.announced {
            None => {
                let most = expected.of.and_then(|(fid, _)| length_of(fid)).unwrap_or(OPEN_END);
                assert!(length <= most, "{length} bytes of a file that has {most}");
            }
            Some(all) => {
                assert!(all == OPEN_END && length == expected.came, "the end of a stream at {length}")
            }
        }
        if expected.announced.is_some() {
            self.reached.note("stream to its end");
        }
        expected.announced = Some(length);
    }

    /// A request ends once.
    fn over(&mut self, request: RequestId, how: &'static str, is_changed: bool) {
        self.reached.note(how);
        if let Some(expected) = self.expected.get_mut(&request.0).filter(|_| !is_changed) {
            assert!(!expected.is_over, "request {request} has ended twice");
            expected.is_over = true;
        }
    }
}

fn name_of(failure: Failure) -> &'static str {
    match failure {
        Failure::Refused(_) => "refused",
        Failure::Busy => "busy",
        Failure::Stalled => "stalled",
        Failure::NoHandle => "no handle",
        _ => "otherwise failed",
    }
}
