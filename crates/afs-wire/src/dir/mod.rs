//! Directory pages: the data of a directory, as file servers keep it, clients cache it and dumps carry it.
//!
//! A directory is up to 1023 pages of 2048 bytes, each of 64 slots. An entry takes one slot or a few, within one
//! page; a hash table in page 0 leads to it. Positions never change, so a reader may continue where it stopped. All
//! algorithms are those of OpenAFS, first fit included: a client that repeats its own change in its cached copy gets
//! the same bytes.
//!
//! Everything works page by page through [`Pages`] and [`PagesMut`], and touches few pages: a look-up those of one
//! hash chain, an edit one or two more. When an edit answers an error, pages may have been changed already only if
//! the error came from the pages themselves ([`DirError::Pages`]); the caller must then throw its copy away.
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

/// What a name stands for: an object in the same volume.
pub type Target = (VnodeId, Uniquifier);

/// The pages of a directory, to read.
pub trait Pages {
    /// Why a page cannot be had.
    type Error;

    /// How many pages there are: the directory's length divided by [`PAGE_LEN`].
    fn count(&self) -> u16;

    /// One of the `count` pages.
    ///
    /// # Errors
    /// The page cannot be had.
    fn page(&mut self, number: u16) -> Result<&Page, Self::Error>;
}

/// The pages of a directory, to change.
pub trait PagesMut: Pages {
    /// One of the `count` pages, which is about to be changed.
    ///
    /// # Errors
    /// The page cannot be had.
    fn page_mut(&mut self, number: u16) -> Result<&mut Page, Self::Error>;

    /// Adds a page of zeros at the end. The directory never asks for more than [`PAGES_MAX`].
    ///
    /// # Errors
    /// The page cannot be had.
    fn append(&mut self) -> Result<&mut Page, Self::Error>;
}

/// Why a directory operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirError<E> {
    /// A page cannot be had.
    #[error("{0}")]
    Pages(E),
    /// The name is there already.
    #[error("the name exists")]
    Exists,
    /// The name is not there.
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
    /// The code that file servers answer, except for an error of the pages themselves.
    ///
    /// # Errors
    /// What the pages said.
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

/// Whether an entry can have this name.
///
/// # Errors
/// [`DirError::BadName`].
pub fn check_name<E>(name: &[u8]) -> Result<(), DirError<E>> {
    let good = (1..=NAME_MAX).contains(&name.len()) && !name.iter().any(|&c| c == 0 || c == b'/');
    if good { Ok(()) } else { Err(DirError::BadName) }
}
