//! Bounded record of what the adversary hears on streams of the data path: the bytes that each client sent.

use std::collections::VecDeque;
use std::net::SocketAddr;

use afs_datapath::capability::Capability;
use afs_datapath::frame::{Decoder, Event, Message};
use afs_sim::Seen;
use afs_wire::ids::{DataVersion, Fid};
use bytes::{Bytes, BytesMut};

/// The bytes that a client sent to a drive, from the first one on.
struct Conversation {
    client: SocketAddr,
    bytes: BytesMut,
}

/// The latest conversations.
#[derive(Default)]
pub struct StreamsHeard(VecDeque<Conversation>);

impl StreamsHeard {
    /// Records bytes from a client to a drive.
    pub fn learn(&mut self, seen: &Seen) {
        if self.0.iter().all(|known| known.client != seen.from) {
            if self.0.len() == CONVERSATIONS_MAX {
                self.0.pop_front();
            }
            self.0.push_back(Conversation { client: seen.from, bytes: BytesMut::new() });
        }
        let Some(known) = self.0.iter_mut().find(|known| known.client == seen.from) else { return };
        let room = BYTES_MAX.saturating_sub(known.bytes.len());
        known.bytes.extend_from_slice(seen.data.get(..room).unwrap_or(&seen.data));
    }

    /// What each client sent, the latest conversation last.
    #[must_use]
    pub fn conversations(&self) -> Vec<Bytes> {
        self.0.iter().map(|known| known.bytes.clone().freeze()).collect()
    }

    /// The arguments of the capabilities that clients presented. Their secrets are on no stream.
    #[must_use]
    pub fn presented(&self) -> Vec<Capability> {
        let of = |message: Message| match message {
            Message::Present { capability, .. } => Some(capability),
            _ => None,
        };
        self.messages().filter_map(of).collect()
    }

    /// The files and versions that clients asked for.
    #[must_use]
    pub fn asked_for(&self) -> Vec<(Fid, DataVersion)> {
        let of = |message: Message| match message {
            Message::Read { fid, version, .. } => Some((fid, version)),
            _ => None,
        };
        self.messages().filter_map(of).collect()
    }

    fn messages(&self) -> impl Iterator<Item = Message> {
        self.0.iter().flat_map(|known| messages(known.bytes.clone()))
    }
}

/// The messages in the bytes of a conversation.
fn messages(mut bytes: BytesMut) -> Vec<Message> {
    let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
    while let Ok(Some(event)) = decoder.next(&mut bytes) {
        if let Event::Message(message) = event {
            messages.push(message);
        }
    }
    messages
}

/// Clients have one connection each, unless it breaks.
const CONVERSATIONS_MAX: usize = 8;
/// Bytes of a conversation. What follows them is not recorded.
const BYTES_MAX: usize = 256 << 10;
