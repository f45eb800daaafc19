//! Frames of the data path: a header of three words and a body.
//!
//! All but the bytes of files are small [`Message`]s. Bytes travel in frames of up to [`DATA_MAX`] with a head of
//! [`HEADER_LEN`], so that they are neither copied when they are sent ([`encode_data`]) nor when they arrive ([`Decoder`]).
//! Source: `docs/protocol/data-path.md`.

mod chunk_fields;
mod chunk_reply;
mod chunk_request;
mod chunk_request_code;
mod content;
mod decoder;
mod failure;
mod header;
mod hello;
mod message;
mod store;

pub use chunk_reply::{ChunkReply, DriveStatus};
pub use chunk_request::{
    CHUNKS_MAX, ChunkRequest, KeyBytes, LIVE_MAX, RANGE_LEN, RANGES_BYTES_MAX, STAGED_CHUNKS_MAX,
    STAGED_LEN_MAX, SUM_LEN,
};
pub use content::Content;
pub use decoder::{Decoder, Event, FrameError};
pub use failure::{Failure, Goodbye};
pub use header::{DATA_MAX, HEADER_LEN, MESSAGE_MAX, encode_data};
pub use hello::{Hello, MAGIC, VERSION, Welcome};
pub use message::{HandleNumber, Message, OPEN_END, Presented, RequestId};
pub use store::{RANGES_MAX, StoreDescription};
