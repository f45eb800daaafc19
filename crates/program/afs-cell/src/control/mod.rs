//! Control socket: a Unix-domain socket in the state directory, for the owner of a running cell.
//!
//! The owner of the cell is every process that may open the socket (mode 0600) and has the user id of the cell's
//! process, or is root's. A request carries one call to one of the cell's services, as bytes; the cell makes the call
//! as its administrator and returns the bytes of the reply. The network is not involved.

mod client;
mod error;
pub(crate) mod frame;
mod server;

pub use client::ControlClient;
pub use error::ControlError;
pub use frame::{ControlReply, ControlRequest, Statistics};
pub use server::{ControlServer, Handler};
