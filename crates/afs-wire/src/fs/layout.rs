//! Layout of a file: in which chunks of which drives its bytes lie, and what a client needs to read them there.

use std::net::Ipv4Addr;

use super::{CapabilityOutcome, GetCapabilityReply, ObjectAddress, SERVICE};
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
