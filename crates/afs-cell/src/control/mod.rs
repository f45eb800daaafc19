//! Control socket: a Unix-domain socket in the state directory, for the owner of a running cell.
//!
//! Whoever may open the socket (mode 0600) and has the user id of the cell's process, or is root, is
//! the cell's owner. A request carries one call to one of the cell's services, as bytes; the cell makes
//! it as its administrator and sends the bytes of the answer back. Nothing of this reaches the network.

mod client;
mod error;
pub(crate) mod frame;
mod server;

pub use client::ControlClient;
pub use error::ControlError;
pub use frame::{ControlReply, ControlRequest, Statistics};
pub use server::{ControlServer, Handler};
