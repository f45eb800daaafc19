//! Incremental decoder of frames, which gives out the bytes of files as they arrive.

use afs_wire::xdr::DecodeError;
use bytes::{Bytes, BytesMut};

use super::header::{HEADER_LEN, Header, Kind};
use super::{Message, RequestId};

/// What the decoder found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A whole message.
    Message(Message),
    /// Bytes of a request, not empty: all of a Data frame, or the part of it that has arrived.
    Data(RequestId, Bytes),
}

/// Why bytes are no frame. Nothing that follows them can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A kind that does not exist.
    #[error("{0} is no kind of frame")]
    Kind(u32),
    /// A length that a frame of this kind cannot have.
    #[error("a frame of {0} bytes")]
    Length(u32),
    /// A request where there can be none, or none where there must be one.
    #[error("request {0} in a frame of this kind")]
    Request(RequestId),
    /// A body that is no message of its kind.
    #[error(transparent)]
    Body(#[from] DecodeError),
}

/// Takes frames from a buffer of received bytes. It keeps nothing but a number itself, and needs at most
/// [`HEADER_LEN`] + [`MESSAGE_MAX`](super::MESSAGE_MAX) bytes in the buffer to continue.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The Data frame in progress: its request, and how many of its bytes are still to come.
    data: Option<(RequestId, usize)>,
}

impl Decoder {
    /// The next event in the bytes received so far, which it takes from the buffer; `None` if more are needed.
    ///
    /// # Errors
    /// [`FrameError`], after which the decoder must not be used.
    pub fn next(&mut self, received: &mut BytesMut) -> Result<Option<Event>, FrameError> {
        loop {
            if self.data.is_some() {
                return Ok(self.next_data(received));
            }
            let Some(header) = received.first_chunk::<HEADER_LEN>() else { return Ok(None) };
            let header = Header::decode(header)?;
            if header.kind != Kind::Data {
                return next_message(header, received);
            }
            drop(received.split_to(HEADER_LEN));
            self.data = (header.length > 0).then_some((header.request, header.length));
        }
    }

    /// Bytes of the present frame that are still to come: worth as much room in the buffer.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.data.map_or(0, |(_, left)| left)
    }

    fn next_data(&mut self, received: &mut BytesMut) -> Option<Event> {
        let (request, left) = self.data.filter(|_| !received.is_empty())?;
        let bytes = received.split_to(left.min(received.len())).freeze();
        self.data = (bytes.len() < left).then_some((request, left - bytes.len()));
        Some(Event::Data(request, bytes))
    }
}

fn next_message(header: Header, received: &mut BytesMut) -> Result<Option<Event>, FrameError> {
    let len = HEADER_LEN + header.length;
    if received.len() < len {
        return Ok(None);
    }
    let frame = received.split_to(len);
    Message::decode(header, &frame[HEADER_LEN..]).map(|message| Some(Event::Message(message)))
}
