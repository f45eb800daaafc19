//! A peer that says what it likes.

use afs_datapath::capability::{Capability, DriveId, KeyEpoch, Nonce, Nonces, Proof, Secret};
use afs_datapath::frame::RequestId;
use afs_datapath::frame::{
    Decoder, Event, HandleNumber, Hello, Message, Presented, VERSION, Welcome, encode_data,
};
use afs_env::ByteStream;
use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use bytes::BytesMut;

/// Where what was made for one connection is presented.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sent {
    /// On that connection.
    Here,
    /// On another connection of the same client.
    AgainByTheSame,
    /// By another client.
    ByAnother,
    /// To a drive with another id, key and epoch.
    ToAnother(DriveId, KeyEpoch),
}

/// A stream with the frames of the protocol, and without its rules.
pub struct Raw {
    pub stream: Box<dyn ByteStream>,
    decoder: Decoder,
    received: BytesMut,
}

impl Raw {
    pub fn new(stream: Box<dyn ByteStream>) -> Self {
        Self { stream, decoder: Decoder::default(), received: BytesMut::new() }
    }

    /// Sends bytes; whether they were taken.
    pub async fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    pub async fn send(&mut self, message: &Message) -> bool {
        self.bytes(&message.to_frame()).await
    }

    pub async fn data(&mut self, request: u32, bytes: &[u8]) -> bool {
        self.bytes(&encode_data(RequestId(request), bytes.len())).await && self.bytes(bytes).await
    }

    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.decoder.next(&mut self.received).unwrap() {
                return Some(event);
            }
            match self.stream.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next message that is no sign of life.
    pub async fn message(&mut self) -> Option<Message> {
        loop {
            match self.next().await? {
                Event::Message(Message::Alive) => {}
                Event::Message(message) => return Some(message),
                Event::Data(..) => panic!("bytes"),
            }
        }
    }

    pub async fn greet(&mut self) -> (Welcome, Nonces) {
        let client = Nonce([9; 32]);
        assert!(self.send(&Message::Hello(Hello { version: VERSION, nonce: client })).await);
        match self.message().await {
            Some(Message::Welcome(welcome)) => (welcome, Nonces { drive: welcome.nonce, client }),
            other => panic!("{other:?}"),
        }
    }

    pub async fn present(
        &mut self,
        handle: u32,
        capability: &Capability,
        secret: &Secret,
        nonces: &Nonces,
    ) -> bool {
        let proof = Presented(Proof::new(capability, secret, nonces));
        self.send(&Message::Present { handle: HandleNumber(handle), capability: *capability, proof }).await
    }
}
