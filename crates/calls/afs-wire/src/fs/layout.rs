//! Layouts of files: in which chunks of which drives their bytes lie, and what a client needs to read them there.

use std::net::Ipv4Addr;

use super::{DriveCapability, ListedParts, SERVICE};
use crate::error::AbortCode;
use crate::ids::{DataVersion, Fid};
use crate::xdr::{BoundedVec, Fixed};

/// Most drives of one layout.
pub const LAYOUT_DRIVES_MAX: usize = 3;
/// Most parts of one layout.
pub const LISTED_PARTS_MAX: usize = 1024;
/// Most copies of one part.
pub const LAYOUT_COPIES_MAX: usize = 3;
/// Most files of one [`GetLayout`].
pub const LAYOUT_FILES_MAX: usize = 32;

/// Files whose layouts are wanted.
pub type LayoutRequests = BoundedVec<LayoutRequest, LAYOUT_FILES_MAX>;
/// The outcomes, in the order of the requests.
pub type LayoutOutcomes = BoundedVec<LayoutOutcome, LAYOUT_FILES_MAX>;

/// In the place of a list's terms and binding: the drive sends each chunk when the file server has commanded it.
pub const LIST_COMMANDED: Fixed<40> = Fixed([0; 40]);
/// In that place: the client fetches each chunk from an object store, by an address that it gets by a command.
pub const LIST_ADDRESSED: Fixed<40> = Fixed([0xff; 40]);

xdr_struct! {
    /// A drive, and a capability for it that is good for all chunks of the layout there.
    ///
    /// Or a bucket: without address, port, fingerprint and capability. Its copies are there for `seconds` of the capability.
    pub struct LayoutDrive {
        /// Its address; 0.0.0.0 for a bucket.
        pub address: Ipv4Addr,
        /// Its TCP port.
        pub port: u16,
        /// Whether it is to be used without TLS.
        pub clear: bool,
        /// Its id.
        pub drive: Fixed<16>,
        /// SHA-256 of its public key, as in [`DataPathReply`](super::DataPathReply).
        pub fingerprint: Fixed<32>,
        /// The capability.
        pub capability: DriveCapability,
    }
}

xdr_struct! {
    /// A range of a file whose layout is wanted.
    pub struct LayoutRequest {
        /// The file.
        pub fid: Fid,
        /// The version that it has.
        pub version: DataVersion,
        /// First byte of the range.
        pub start: u64,
        /// Its end.
        pub end: u64,
    }
}

xdr_struct! {
    /// Where the bytes of a range of a file are.
    pub struct FileLayout {
        /// The drives.
        pub drives: BoundedVec<LayoutDrive, LAYOUT_DRIVES_MAX>,
        /// Terms and binding of the list of chunks at each drive, in the form of `docs/protocol/data-path.md`. [`LIST_COMMANDED`] and
        /// [`LIST_ADDRESSED`] where there is none.
        pub lists: BoundedVec<Fixed<40>, LAYOUT_DRIVES_MAX>,
        /// In order. What lies between them is zeros; the first and last may reach beyond the range.
        pub parts: ListedParts,
        /// Where the layout ends. The client asks for the rest from there.
        pub end: u64,
    }
}

xdr_struct! {
    /// The layout of a range of a file, or why there is none.
    pub struct LayoutOutcome {
        /// Zero if it was given; else the layout is empty.
        pub error: AbortCode,
        /// The layout.
        pub layout: FileLayout,
    }
}

impl From<Result<FileLayout, AbortCode>> for LayoutOutcome {
    fn from(given: Result<FileLayout, AbortCode>) -> Self {
        let none = || FileLayout {
            drives: BoundedVec::default(),
            lists: BoundedVec::default(),
            parts: ListedParts::default(),
            end: 0,
        };
        let error = given.as_ref().err().copied().unwrap_or(AbortCode::OK);
        Self { error, layout: given.unwrap_or_else(|_| none()) }
    }
}

impl LayoutOutcome {
    /// The layout.
    ///
    /// # Errors
    /// Why it was not given.
    pub fn into_layout(self) -> Result<FileLayout, AbortCode> {
        if self.error == AbortCode::OK { Ok(self.layout) } else { Err(self.error) }
    }
}

calls! {
    service SERVICE;

    /// Asks where the bytes of ranges of files are, for a client that reads them at the drives. Each is decided by itself, and requires what
    /// FetchData requires; one that is refused does not affect the others: EOPNOTSUPP where the volume's bytes do not travel that way, or no
    /// drive can be used now; EAGAIN if the file has not this version; VBUSY while its rights or its data are changing. Several share
    /// [`LISTED_PARTS_MAX`] parts. EINVAL for no file.
    0x414E_443B "GetLayout" GetLayout { wanted: LayoutRequests } -> GetLayoutReply {
        /// In the order of the requests.
        outcomes: LayoutOutcomes,
    };
}
