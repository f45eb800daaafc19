//! Entry points of fuzz targets: each function takes any bytes and must not panic.

use afs_wire::xdr::{Decode, Encode};
use bytes::BytesMut;

use crate::capability::Capability;
use crate::frame::{DATA_MAX, Decoder, Event};

/// Frames of either end, whole and in pieces of any size; the first byte chooses the size.
pub fn data_path(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let whole = frames(bytes, bytes.len().max(1));
    let pieces = frames(bytes, usize::from(*first).max(1));
    assert_eq!(whole, pieces, "the frames depend on how the bytes arrive");
    if let Ok(capability) = Capability::from_bytes(bytes) {
        assert_eq!(capability.to_bytes(), bytes, "two forms of one capability");
    }
}

/// The messages in some bytes, and how many bytes of files are among them.
fn frames(bytes: &[u8], size: usize) -> (Vec<Event>, usize, bool) {
    let (mut decoder, mut received) = (Decoder::default(), BytesMut::new());
    let (mut messages, mut data) = (Vec::new(), 0);
    for piece in bytes.chunks(size) {
        received.extend_from_slice(piece);
        loop {
            match decoder.next(&mut received) {
                Ok(Some(Event::Data(_, piece))) => data += piece.len(),
                Ok(Some(Event::Message(message))) => {
                    let again = again(&message.to_frame());
                    assert_eq!(again.as_ref(), Some(&message), "a message is not what it encodes to");
                    messages.push(Event::Message(message));
                }
                Ok(None) => break,
                Err(_) => return (messages, data, false),
            }
        }
        assert!(decoder.missing() <= DATA_MAX);
    }
    (messages, data, true)
}

fn again(frame: &[u8]) -> Option<crate::frame::Message> {
    match Decoder::default().next(&mut BytesMut::from(frame)) {
        Ok(Some(Event::Message(message))) => Some(message),
        _ => None,
    }
}
