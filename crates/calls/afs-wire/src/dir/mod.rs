//! Directory pages: the data of a directory in file servers, client caches and dumps.
//!
//! A directory is up to 1023 pages of 2048 bytes, each of 64 slots. An entry takes one slot or a few, within one
//! page; a hash table in page 0 leads to it. Positions never change, so a reader may continue where it stopped. All
//! algorithms are those of OpenAFS, first fit included: a client that repeats its own change in its cached copy gets
//! the same bytes.
//!
//! Everything works page by page through [`Pages`] and [`PagesMut`], and touches few pages: a look-up those of one
//! hash chain, an edit one or two more. When an edit returns an error, pages may have been changed already only if
//! the error came from the pages themselves ([`DirError::Pages`]); the caller must then discard its copy.
//!
//! Source: `docs/protocol/directory.md` "1. Pages and slots" to "4. Worked example".

mod blob;
mod check;
mod edit;
mod find;
mod hash;
mod page;
mod walk;

pub use blob::{BadLength, Blob};
pub use check::{Summary, check};
pub use edit::{create, insert, remove, replace};
pub use find::lookup;
pub use hash::bucket;
pub use walk::{Entry, entry_at_or_after, is_empty};

use crate::error::{AbortCode, Errno};
use crate::ids::{Uniquifier, VnodeId};

/// Bytes of a page.
pub const PAGE_LEN: usize = 2048;
/// Most pages of a directory.
pub const PAGES_MAX: u16 = 1023;
/// Longest name that the format holds, in bytes. Clients' own limit is 255.
pub const NAME_MAX: usize = 256;

/// One page.
pub type Page = [u8; PAGE_LEN];

/// Target of a name: an object in the same volume.
pub type Target = (VnodeId, Uniquifier);

/// Read access to the pages of a directory.
pub trait Pages {
    /// Why a page is not available.
    type Error;

    /// How many pages there are: the directory's length divided by [`PAGE_LEN`].
    fn count(&self) -> u16;

    /// One of the `count` pages.
    ///
    /// # Errors
    /// The page is not available.
    fn page(&mut self, number: u16) -> Result<&Page, Self::Error>;
}

/// Write access to the pages of a directory.
pub trait PagesMut: Pages {
    /// One of the `count` pages, which is about to be changed.
    ///
    /// # Errors
    /// The page is not available.
    fn page_mut(&mut self, number: u16) -> Result<&mut Page, Self::Error>;

    /// Appends a page of zeros. Never called beyond [`PAGES_MAX`].
    ///
    /// # Errors
    /// The page is not available.
    fn append(&mut self) -> Result<&mut Page, Self::Error>;
}

/// Why a directory operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirError<E> {
    /// A page is not available.
    #[error("{0}")]
    Pages(E),
    /// The name exists.
    #[error("the name exists")]
    Exists,
    /// The name does not exist.
    #[error("no such name")]
    NotFound,
    /// No room for the name is left, and no further page is allowed.
    #[error("the directory is full")]
    Full,
    /// The name is empty, over [`NAME_MAX`] bytes, or has a NUL or slash.
    #[error("not a valid name for a directory entry")]
    BadName,
    /// The pages contradict themselves.
    #[error("the directory is damaged: {0}")]
    Damaged(&'static str),
}

impl<E> DirError<E> {
    /// The abort code of file servers, except for an error of the pages themselves.
    ///
    /// # Errors
    /// The error of the pages.
    pub fn to_abort_code(self) -> Result<AbortCode, E> {
        match self {
            Self::Pages(error) => Err(error),
            Self::Exists => Ok(Errno::EEXIST.to_uae()),
            Self::NotFound => Ok(Errno::ENOENT.to_uae()),
            Self::Full => Ok(Errno::EFBIG.to_uae()),
            Self::BadName => Ok(Errno::EINVAL.to_uae()),
            Self::Damaged(_) => Ok(AbortCode::VSALVAGE),
        }
    }
}

/// Checks that an entry can have this name.
///
/// # Errors
/// [`DirError::BadName`].
pub fn check_name<E>(name: &[u8]) -> Result<(), DirError<E>> {
    let good = (1..=NAME_MAX).contains(&name.len()) && !name.iter().any(|&c| c == 0 || c == b'/');
    if good { Ok(()) } else { Err(DirError::BadName) }
}
