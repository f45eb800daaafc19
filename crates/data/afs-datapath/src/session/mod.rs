//! Both ends of a connection of the data path, over any byte stream.
//!
//! One task of the environment drives a connection: it reads frames, tells the state of the connection about them, and writes what
//! that state has to send. The state ([`link`]) does no I/O and knows no clock. Requests are futures that wait for it.
//!
//! A client uses [`Client`]; a drive is a [`Drive`] with [`Objects`], which [`serve`] offers on a stream, and [`accept`] on all
//! streams of a listener.

mod admission;
mod buffers;
mod chunks;
mod client;
mod commands;
mod connection_table;
mod counters;
mod drive;
mod driver;
mod error;
mod first;
mod limits;
mod link;
mod objects;
mod receiving;
mod request;
mod sending;
mod serving;
mod state;
mod turns;

pub use chunks::{ChunkCall, Chunks, Room};
pub use client::{Arriving, Client, Handle, Leaving, chunk_pieces};
pub use counters::Counts;
pub use drive::Drive;
pub use error::{Error, Lost};
pub use limits::{DriveLimits, Patience};
pub use objects::{Objects, Opened, Pieces, ReadRequest, RefusedRequest, StoreRequest, StreamRequest};
pub use serving::{Taken, accept, serve};

pub use crate::frame::{DATA_MAX, Failure, StoreDescription};
pub use crate::tls::{Fingerprint, Identity, Offer, Security};
