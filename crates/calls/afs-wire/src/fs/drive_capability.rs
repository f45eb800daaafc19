//! Capabilities for drives: GetCapability, a call of our own that gives several at once, and one together with statuses.

use super::{CapabilitySecret, Fids, Promises, SERVICE, Statuses, VolSync};
use crate::error::AbortCode;
use crate::ids::Fid;
use crate::xdr::{BoundedVec, ByteString, Fixed};

/// Most capabilities in one call.
pub const CAPABILITIES_WANTED_MAX: usize = 32;

/// Public arguments of a capability, in the form of `docs/protocol/data-path.md`. Opaque here.
pub type CapabilityArguments = ByteString<128>;
/// Capabilities that are wanted.
pub type CapabilityRequests = BoundedVec<CapabilityRequest, CAPABILITIES_WANTED_MAX>;
/// The outcomes, in the order of the requests.
pub type CapabilityOutcomes = BoundedVec<CapabilityOutcome, CAPABILITIES_WANTED_MAX>;

/// In the place of a drive's id: the drive of the file server itself.
pub const OWN_DRIVE: Fixed<16> = Fixed([0; 16]);

id! {
    /// Access that a capability permits, as bits: [`CapabilityAccess::READ`], [`CapabilityAccess::WRITE`].
    pub struct CapabilityAccess(u32);
}

impl CapabilityAccess {
    /// Reading.
    pub const READ: Self = Self(1);
    /// Writing.
    pub const WRITE: Self = Self(2);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

xdr_struct! {
    /// A capability that is wanted.
    pub struct CapabilityRequest {
        /// A file; or a directory, for its files.
        pub fid: Fid,
        /// What it is to permit.
        pub access: CapabilityAccess,
        /// Id of the drive, one of those of layouts of the file; or [`OWN_DRIVE`].
        pub drive: Fixed<16>,
    }
}

xdr_struct! {
    /// A capability for a drive.
    pub struct DriveCapability {
        /// What it permits.
        pub arguments: CapabilityArguments,
        /// The proof of having been given it.
        pub secret: CapabilitySecret,
        /// Seconds until it expires.
        pub seconds: u32,
    }
}

impl DriveCapability {
    /// The place of one, empty.
    pub fn none() -> Self {
        Self { arguments: CapabilityArguments::default(), secret: CapabilitySecret([0; 32]), seconds: 0 }
    }
}

xdr_struct! {
    /// A capability, or why there is none.
    pub struct CapabilityOutcome {
        /// Zero if it was given; else the rest means nothing.
        pub error: AbortCode,
        /// The capability.
        pub capability: DriveCapability,
        /// Of a drive that layouts name: it believes no binding of an earlier generation.
        pub valid_from: u64,
    }
}

impl CapabilityOutcome {
    /// One that was not given.
    pub fn refused(error: AbortCode) -> Self {
        Self { error, capability: DriveCapability::none(), valid_from: 0 }
    }

    /// One that was given for the file server's own drive.
    pub fn given(capability: DriveCapability) -> Self {
        Self { error: AbortCode::OK, capability, valid_from: 0 }
    }

    /// The capability.
    ///
    /// # Errors
    /// Why it was not given.
    pub fn into_capability(self) -> Result<DriveCapability, AbortCode> {
        if self.error == AbortCode::OK { Ok(self.capability) } else { Err(self.error) }
    }
}

calls! {
    service SERVICE;

    /// Asks for capabilities that permit reading or writing a file, and usually the other files of its directory, at the file server's own
    /// drive; or reading, again, what layouts say of another one. For a directory it is one for all of its files, which the access list of the
    /// directory gives, at the own drive alone. Each requires the right that FetchData, or StoreData, does, and one that is refused does not
    /// affect the others: EACCES also where no capability can express the caller's rights: the calls may still work. Of the own drive
    /// RXGEN_OPCODE where there is none; of another one as [`GetLayout`](super::GetLayout), EOPNOTSUPP also where it is none of the
    /// file server's. EINVAL for none.
    0x414E_443C "GetCapability" GetCapability { wanted: CapabilityRequests } -> GetCapabilityReply {
        /// In the order of the requests.
        outcomes: CapabilityOutcomes,
    };

    /// Reads many statuses as [`InlineBulkStatus`](super::InlineBulkStatus), and asks for a capability in the same call.
    0x414E_4429 "StatusAndCapability" StatusAndCapability {
        fids: Fids,
        /// Usually for the directory in which the objects are.
        wanted: CapabilityRequest,
    } -> StatusAndCapabilityReply {
        statuses: Statuses,
        callbacks: Promises,
        sync: VolSync,
        outcome: CapabilityOutcome,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, DecodeError, Encode};

    fn outcome() -> CapabilityOutcome {
        let arguments = CapabilityArguments::truncated(&[7; 88]);
        let secret = CapabilitySecret([9; 32]);
        CapabilityOutcome::given(DriveCapability { arguments, secret, seconds: 300 })
    }

    #[test]
    fn a_refusal_is_no_capability_and_what_was_given_stays_as_it_is() {
        assert_eq!(CapabilityOutcome::refused(AbortCode::VBUSY).into_capability(), Err(AbortCode::VBUSY));
        let given = outcome().into_capability().unwrap();
        assert_eq!(CapabilityOutcome::given(given), outcome());
    }

    #[test]
    fn requests_and_outcomes_are_bounded() {
        let request =
            CapabilityRequest { fid: Fid::default(), access: CapabilityAccess::READ, drive: OWN_DRIVE };
        let wanted = CapabilityRequests::first_of(vec![request; CAPABILITIES_WANTED_MAX + 9]);
        let call = GetCapability { wanted };
        let mut bytes = call.to_bytes();
        assert_eq!(bytes.len(), 4 + CAPABILITIES_WANTED_MAX * 32);
        assert_eq!(GetCapability::from_bytes(&bytes), Ok(call));
        bytes[3] += 1;
        assert!(matches!(GetCapability::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
        let outcomes = CapabilityOutcomes::first_of(vec![outcome(); CAPABILITIES_WANTED_MAX]);
        let reply = GetCapabilityReply { outcomes };
        let mut bytes = reply.to_bytes();
        assert_eq!(bytes.len(), 4 + CAPABILITIES_WANTED_MAX * (4 + 4 + 88 + 32 + 4 + 8));
        assert_eq!(GetCapabilityReply::from_bytes(&bytes), Ok(reply));
        bytes[3] += 1;
        assert!(matches!(GetCapabilityReply::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
    }

    #[test]
    fn arguments_are_bounded() {
        let arguments = CapabilityArguments::truncated(&[7; 128]);
        let reply = DriveCapability { arguments, secret: CapabilitySecret([9; 32]), seconds: 300 };
        let mut bytes = reply.to_bytes();
        assert_eq!(bytes.len(), 4 + 128 + 32 + 4);
        assert_eq!(DriveCapability::from_bytes(&bytes), Ok(reply));
        bytes[3] = 129;
        assert!(matches!(DriveCapability::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
    }

    #[test]
    fn no_secret_is_printed() {
        assert!(!format!("{:?}", outcome()).contains("9, 9"));
    }
}
