//! The interface for reads of objects in object stores, by addresses that a file server signed.

use std::ops::Range;

use afs_rpc::BoxFuture;
use bytes::Bytes;

/// Reads ranges of objects over HTTP.
///
/// The address comes from a file server, which may lie: an implementation decides which addresses it uses (over TLS, to other hosts),
/// sends nothing that says who reads, follows no redirection, and takes no more bytes than the range has.
pub trait ObjectReader: Send + Sync + 'static {
    /// All bytes of a range, which has at most 4 MiB. Dropping the future ends the request; it has no time limit of its own.
    fn read(&self, address: &str, range: Range<u64>) -> BoxFuture<'static, Result<Bytes, ObjectError>>;
}

/// Why a range of an object was not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectError {
    /// The address is none, or is not to be used from here.
    Forbidden,
    /// No connection to the store was opened.
    Unreachable,
    /// No complete reply came.
    Broken,
    /// The store replied this status in the place of 206.
    Status(u16),
    /// The reply has more or fewer bytes than the range.
    Length,
}
