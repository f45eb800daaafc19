//! The trait of object stores: put, get a range, list, delete.

use std::ops::Range;
use std::time::SystemTime;

use afs_drive::BoxFuture;
use bytes::Bytes;

/// The reply to a request, or why there is none.
pub type Reply<T> = BoxFuture<Result<T, Failure>>;

/// The objects of one drive in a store. A key is relative to the drive's prefix.
///
/// Each method makes one attempt; the drive decides whether to try again. An object that was put can be read at once. A
/// listing may be late: it may lack objects of the last moments, and have some that were deleted.
pub trait Bucket: Send + Sync + 'static {
    /// Stores an object if none has its key.
    ///
    /// # Errors
    /// [`Failure::Exists`] if one has; it is unchanged then.
    fn put_new(&self, key: &str, body: Vec<Bytes>) -> Reply<()>;

    /// A range of an object; less where the object ends before the range does.
    ///
    /// # Errors
    /// [`Failure::Missing`] if there is no such object.
    fn get(&self, key: &str, range: Range<u64>) -> Reply<Bytes>;

    /// Objects whose keys begin with `prefix` and come after `after`, in the order of their keys, as many as the store
    /// gives at a time (at most [`Page::OBJECTS_MAX`]).
    fn list(&self, prefix: &str, after: Option<&str>) -> Reply<Page>;

    /// Deletes an object. Deleting one that does not exist is no error.
    fn delete(&self, key: &str) -> Reply<()>;

    /// Whether requests to the store go without encryption. Default: no.
    fn is_clear(&self) -> bool {
        false
    }

    /// An address of HTTP(S) by which its holder reads a range of an object, and nothing else, for so many seconds from `at` on.
    /// No request is made. Default: the store has none.
    ///
    /// # Errors
    /// [`Failure::Denied`] without credentials.
    fn signed_address(
        &self,
        _key: &str,
        _range: Range<u64>,
        _at: SystemTime,
        _seconds: u32,
    ) -> Reply<String> {
        Box::pin(async { Err(Failure::Refused("this store signs no addresses".into())) })
    }
}

/// A part of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Objects, in the order of their keys.
    pub objects: Vec<Listed>,
    /// Whether others may follow.
    pub more: bool,
}

impl Page {
    /// The most objects of one page.
    pub const OBJECTS_MAX: usize = 1000;
}

/// An object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// Its length in bytes.
    pub len: u64,
}

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An object with the key exists.
    #[error("an object with this key exists")]
    Exists,
    /// No object has the key.
    #[error("there is no such object")]
    Missing,
    /// The store asks to be called less, or is unable for the moment; nothing was done.
    #[error("the store is busy: {0}")]
    Busy(String),
    /// No complete reply came; it is unknown whether the request was served.
    #[error("no complete reply: {0}")]
    Broken(String),
    /// The credentials are wrong, expired or insufficient.
    #[error("the store refuses the credentials: {0}")]
    Denied(String),
    /// Anything else, which another attempt does not change.
    #[error("{0}")]
    Refused(String),
}
