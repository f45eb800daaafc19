//! Layout of a file: in which chunks of which drives its bytes lie, and what a client needs to read them there.

use std::net::Ipv4Addr;

use super::{CapabilityOutcome, GetCapabilityReply, ObjectAddress, SERVICE};
use crate::error::AbortCode;
use crate::ids::{DataVersion, Fid};
use crate::rpc::Nothing;
use crate::xdr::{BoundedVec, Fixed};

/// Most drives of one layout.
pub const LAYOUT_DRIVES_MAX: usize = 3;
/// Most parts of one layout.
pub const LAYOUT_PARTS_MAX: usize = 256;
/// Most copies of one part.
pub const LAYOUT_COPIES_MAX: usize = 3;

/// Most renewals in one call.
pub const LAYOUT_RENEWALS_MAX: usize = 32;

/// Most files of one [`GetLayouts`].
pub const LAYOUT_FILES_MAX: usize = 32;
/// Most parts of one file there.
pub const LAYOUT_FILE_PARTS_MAX: usize = 8;

/// Files whose layouts are wanted.
pub type LayoutRequests = BoundedVec<LayoutRequest, LAYOUT_FILES_MAX>;
/// The outcomes, in the order of the requests.
pub type LayoutOutcomes = BoundedVec<LayoutOutcome, LAYOUT_FILES_MAX>;
/// Capabilities of layouts that are asked for again.
pub type LayoutRenewals = BoundedVec<LayoutRenewal, LAYOUT_RENEWALS_MAX>;
/// The outcomes, in the order of the requests.
pub type LayoutsRenewed = BoundedVec<LayoutRenewed, LAYOUT_RENEWALS_MAX>;

/// In the place of a binding: the drive sends the chunk to a client when the file server has commanded it.
pub const COMMANDED: Fixed<48> = Fixed([0; 48]);
/// In the place of a binding: the client fetches the whole chunk from an object store, by an address that it gets by [`GetAddress`].
pub const ADDRESSED: Fixed<48> = Fixed([0xff; 48]);
/// Longest time that such an address is good for, in seconds.
pub const OBJECT_ADDRESS_LIFE_MAX: u32 = 60;

xdr_struct! {
    /// A drive, and a capability for it that is good for all chunks of the layout there.
    ///
    /// Or a bucket: without address, port, fingerprint and capability. Its copies are [`ADDRESSED`] for `seconds` of the capability.
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
        pub capability: GetCapabilityReply,
    }
}

xdr_struct! {
    /// A chunk that has a copy of a part.
    pub struct LayoutCopy {
        /// Its drive: a place in the list of drives.
        pub drive: u32,
        /// Id, length, checksum, in the form of `docs/protocol/data-path.md`.
        pub chunk: Fixed<24>,
        /// Where the part begins in it.
        pub offset: u32,
        /// Terms and binding, in that form. [`COMMANDED`]: each transfer is to be commanded, by [`Deliver`].
        /// [`ADDRESSED`]: the part is the whole chunk, in a bucket.
        pub binding: Fixed<48>,
    }
}

xdr_struct! {
    /// A part of a file.
    pub struct LayoutPart {
        /// Its first byte.
        pub start: u64,
        /// Its bytes.
        pub length: u32,
        /// Where they are; none for bytes that only the file server gives.
        pub copies: BoundedVec<LayoutCopy, LAYOUT_COPIES_MAX>,
    }
}

xdr_struct! {
    /// A file whose layout is wanted, from its first byte on.
    pub struct LayoutRequest {
        /// The file.
        pub fid: Fid,
        /// The version that it has.
        pub version: DataVersion,
    }
}

xdr_struct! {
    /// The layout of the first parts of a file, or why there is none.
    pub struct LayoutOutcome {
        /// Zero if it was given; else the rest means nothing.
        pub error: AbortCode,
        /// As in the reply of [`GetLayout`].
        pub drives: BoundedVec<LayoutDrive, LAYOUT_DRIVES_MAX>,
        /// The same.
        pub parts: BoundedVec<LayoutPart, LAYOUT_FILE_PARTS_MAX>,
        /// Where it ends; the rest of a file with more parts is asked for by [`GetLayout`].
        pub end: u64,
    }
}

impl LayoutOutcome {
    /// One that was not given.
    pub fn refused(error: AbortCode) -> Self {
        Self { error, drives: BoundedVec::default(), parts: BoundedVec::default(), end: 0 }
    }

    /// One that was given: `None` for one with more parts than there is room for.
    pub fn given(reply: GetLayoutReply) -> Option<Self> {
        let GetLayoutReply { drives, parts, end } = reply;
        let parts = BoundedVec::try_from(parts.into_vec()).ok()?;
        Some(Self { error: AbortCode::OK, drives, parts, end })
    }

    /// The layout, as GetLayout replies it.
    ///
    /// # Errors
    /// Why it was not given.
    pub fn into_reply(self) -> Result<GetLayoutReply, AbortCode> {
        let Self { error, drives, parts, end } = self;
        match error {
            AbortCode::OK => {
                Ok(GetLayoutReply { drives, parts: BoundedVec::first_of(parts.into_vec()), end })
            }
            error => Err(error),
        }
    }
}

xdr_struct! {
    /// A capability that is asked for again.
    pub struct LayoutRenewal {
        /// A file of which the client has a layout. The capability is for all for which that of the layout was.
        pub fid: Fid,
        /// The drive's id.
        pub drive: Fixed<16>,
    }
}

xdr_struct! {
    /// A capability that was given again, or why it was not.
    pub struct LayoutRenewed {
        /// The capability.
        pub outcome: CapabilityOutcome,
        /// The drive believes no binding of an earlier generation.
        pub valid_from: u64,
    }
}

calls! {
    service SERVICE;

    /// Asks where the bytes of a range of a file are, for a client that reads them at the drives. Requires what FetchData
    /// requires. EOPNOTSUPP where the volume's bytes do not travel that way, or no drive can be used now; EAGAIN if the
    /// file has not this version; VBUSY while its rights or its data are changing.
    0x414E_4423 "GetLayout" GetLayout { fid: Fid, version: DataVersion, start: u64, end: u64 } -> GetLayoutReply {
        /// The drives.
        drives: BoundedVec<LayoutDrive, LAYOUT_DRIVES_MAX>,
        /// In order. What lies between them is zeros; the first and last may reach beyond the range.
        parts: BoundedVec<LayoutPart, LAYOUT_PARTS_MAX>,
        /// Where the layout ends. The client asks for the rest from there.
        end: u64,
    };

    /// Asks for the layouts of several files, each as by [`GetLayout`] from its first byte on. One that is refused does not affect the
    /// others. EINVAL for no file.
    0x414E_442D "GetLayouts" GetLayouts { wanted: LayoutRequests } -> GetLayoutsReply {
        /// In the order of the requests.
        outcomes: LayoutOutcomes,
    };

    /// Asks for capabilities of layouts again, each as by [`GetLayout`]. One that is refused does not affect the others. EOPNOTSUPP of one
    /// where the volume's bytes do not travel that way, or the drive cannot be used now, or is none of the file server's.
    0x414E_442A "RenewLayouts" RenewLayouts { wanted: LayoutRenewals } -> RenewLayoutsReply {
        /// In the order of the requests.
        outcomes: LayoutsRenewed,
    };

    /// Has a drive send the part of a file in which a position is to the client, which waits there for the transfer of this number.
    /// Requires what FetchData requires. EOPNOTSUPP where the volume's transfers are not commanded; EAGAIN, VBUSY as for
    /// [`GetLayout`]; ENXIO if the drive has no copy of the part that may be sent, or cannot be told.
    0x414E_4427 "Deliver" Deliver {
        fid: Fid,
        version: DataVersion,
        position: u64,
        /// The drive's id.
        drive: Fixed<16>,
        /// The client's number for the transfer.
        transfer: Fixed<16>,
    } -> Nothing;

    /// Asks for an address by which the chunk with the part of a file in which a position is can be fetched from its object store, by
    /// the holder of the address, until it expires. Requires what FetchData requires, at each call. EOPNOTSUPP where the volume's
    /// bytes do not travel that way; EAGAIN as for [`GetLayout`]; ENXIO if the part is not this whole chunk, durable in this bucket.
    0x414E_442B "GetAddress" GetAddress {
        fid: Fid,
        version: DataVersion,
        position: u64,
        /// The bucket's id in the layout.
        drive: Fixed<16>,
        /// The chunk, as in [`LayoutCopy`].
        chunk: Fixed<24>,
    } -> GetAddressReply {
        /// An address of HTTP(S). Its signature covers the header `Range` of the request, so that no other bytes can be read by it.
        address: ObjectAddress,
        /// First byte of the object that the request names in its range.
        start: u64,
        /// Bytes of the range: those of the chunk.
        length: u32,
        /// Seconds until it expires, at most [`OBJECT_ADDRESS_LIFE_MAX`].
        seconds: u32,
    };
}
