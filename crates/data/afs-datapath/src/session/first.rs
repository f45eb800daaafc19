//! The first frames of a connection, before it has a driver.

use afs_env::ByteStream;
use afs_env::io::{AsyncReadExt, AsyncWriteExt};
use bytes::BytesMut;

use super::Lost;
use crate::frame::{Decoder, Event, Message};

/// Writes one message.
pub(super) async fn write_first(stream: &mut Box<dyn ByteStream>, message: &Message) -> Result<(), Lost> {
    stream.write_all(&message.to_frame()).await?;
    Ok(stream.flush().await?)
}

/// Reads one message. What came behind it stays in the buffer.
pub(super) async fn read_first(
    stream: &mut Box<dyn ByteStream>,
    received: &mut BytesMut,
) -> Result<Message, Lost> {
    let mut decoder = Decoder::default();
    loop {
        match decoder.next(received)? {
            Some(Event::Message(message)) => return Ok(message),
            Some(Event::Data(..)) => return Err(Lost::Violation("bytes before the first message")),
            None => {}
        }
        received.reserve(FIRST);
        if stream.read_buf(received).await? == 0 {
            return Err(Lost::Cut);
        }
    }
}

/// Bytes that are read at once.
const FIRST: usize = 4096;
