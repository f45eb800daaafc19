//! The dump stream: a volume as a sequence of bytes, as written by `vos dump` and read by `vos restore`.
//!
//! [`DumpReader`] takes a stream in pieces of any size and returns [`Event`]s; it holds one small item at most, and
//! file data are slices of the input. [`DumpWriter`] produces the same bytes as OpenAFS's writer: the same tags in
//! the same order.
//!
//! The reader accepts tags in any order, reads absent ones as zero, accepts several volume parts, skips unknown tags
//! whose size is known, and refuses everything else with its position. It checks the grammar and the sizes; the
//! restoring program must check the contents.
//!
//! Source: `docs/protocol/dump.md`.

mod error;
mod header;
mod item;
mod reader;
mod tags;
mod vnode;
mod writer;

pub use error::{DumpError, Problem};
pub use header::{DumpHeader, VolumeFields, WEEK};
pub use reader::{DumpReader, Event, Ignored, VnodeEnd};
pub use vnode::VnodeFields;
pub use writer::{DumpWriter, vnode_len};

use crate::dir::{PAGE_LEN, PAGES_MAX};

/// Longest name in a dump, in bytes. Readers truncate longer ones.
pub const NAME_MAX: usize = 31;
/// Longest offline message, in bytes. Readers truncate longer ones.
pub const MESSAGE_MAX: usize = 127;
/// Most pairs of dates in the header of a merged dump.
pub const SPANS_MAX: usize = 50;
/// Longest data of a directory, in bytes: just under 2 MiB.
pub const DIRECTORY_LEN_MAX: u64 = PAGES_MAX as u64 * PAGE_LEN as u64;
/// Longest text of a link, in bytes: 16 KiB. Clients make links of 1023 bytes at most.
pub const LINK_LEN_MAX: u64 = 16 << 10;

/// Bytes of the record of an unchanged vnode.
pub const BARE_VNODE_LEN: u64 = 9;
/// Bytes of the end.
pub const END_LEN: u64 = 5;

const BEGIN_MAGIC: u32 = 0xB3A1_1322;
const END_MAGIC: u32 = 0x3A21_4B6E;
const VERSION: u32 = 1;
const DUMP_SECTION: u8 = 1;
const VOLUME_SECTION: u8 = 2;
const VNODE_SECTION: u8 = 3;
const END_SECTION: u8 = 4;
/// Section bytes are below, tags are from here on.
const FIRST_TAG: u8 = 0x15;
