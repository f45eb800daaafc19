//! Calls of Andrew's own that give several capabilities at once, or one together with statuses.
//!
//! Other servers answer "no such call" (-455), as those of Andrew do that are older.

use super::{
    CapabilityAccess, CapabilityArguments, CapabilitySecret, Fids, GetCapabilityReply, Promises, SERVICE,
    Statuses, VolSync,
};
use crate::error::AbortCode;
use crate::ids::Fid;
use crate::xdr::BoundedVec;

/// Most capabilities in one call.
pub const BULK_CAPABILITIES_MAX: usize = 32;

/// Capabilities that are wanted.
pub type CapabilityRequests = BoundedVec<CapabilityRequest, BULK_CAPABILITIES_MAX>;
/// The outcomes, in the order of the requests.
pub type CapabilityOutcomes = BoundedVec<CapabilityOutcome, BULK_CAPABILITIES_MAX>;

xdr_struct! {
    /// A capability that is wanted.
    pub struct CapabilityRequest {
        /// A file; or a directory, for its files.
        pub fid: Fid,
        /// What it is to permit.
        pub access: CapabilityAccess,
    }
}

xdr_struct! {
    /// A capability, or why there is none.
    pub struct CapabilityOutcome {
        /// Zero if it was given; else the rest means nothing.
        pub error: AbortCode,
        /// What it permits.
        pub arguments: CapabilityArguments,
        /// The proof of having been given it.
        pub secret: CapabilitySecret,
        /// Seconds until it expires.
        pub seconds: u32,
    }
}

impl CapabilityOutcome {
    /// One that was not given.
    pub fn refused(error: AbortCode) -> Self {
        let (arguments, secret) = (CapabilityArguments::default(), CapabilitySecret([0; 32]));
        Self { error, arguments, secret, seconds: 0 }
    }

    /// One that was given.
    pub fn given(reply: GetCapabilityReply) -> Self {
        let GetCapabilityReply { arguments, secret, seconds } = reply;
        Self { error: AbortCode::OK, arguments, secret, seconds }
    }

    /// The capability, as GetCapability replies it.
    ///
    /// # Errors
    /// Why it was not given.
    pub fn into_reply(self) -> Result<GetCapabilityReply, AbortCode> {
        let Self { error, arguments, secret, seconds } = self;
        if error == AbortCode::OK {
            Ok(GetCapabilityReply { arguments, secret, seconds })
        } else {
            Err(error)
        }
    }
}

calls! {
    service SERVICE;

    /// Asks for several capabilities, each as by [`GetCapability`](super::GetCapability). For a directory it is one for all
    /// of its files, which the access list of the directory gives. One that is refused does not affect the others.
    0x414E_4428 "BulkCapability" BulkCapability { wanted: CapabilityRequests } -> BulkCapabilityReply {
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
        CapabilityOutcome { error: AbortCode::OK, arguments, secret, seconds: 300 }
    }

    #[test]
    fn a_refusal_is_no_capability_and_what_was_given_stays_as_it_is() {
        assert_eq!(CapabilityOutcome::refused(AbortCode::VBUSY).into_reply(), Err(AbortCode::VBUSY));
        let reply = outcome().into_reply().unwrap();
        assert_eq!(CapabilityOutcome::given(reply), outcome());
    }

    #[test]
    fn requests_and_outcomes_are_bounded() {
        let request = CapabilityRequest { fid: Fid::default(), access: CapabilityAccess::READ };
        let wanted = CapabilityRequests::first_of(vec![request; BULK_CAPABILITIES_MAX + 9]);
        let call = BulkCapability { wanted };
        let mut bytes = call.to_bytes();
        assert_eq!(bytes.len(), 4 + BULK_CAPABILITIES_MAX * 16);
        assert_eq!(BulkCapability::from_bytes(&bytes), Ok(call));
        bytes[3] += 1;
        assert!(matches!(BulkCapability::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
        let outcomes = CapabilityOutcomes::first_of(vec![outcome(); BULK_CAPABILITIES_MAX]);
        let reply = BulkCapabilityReply { outcomes };
        let mut bytes = reply.to_bytes();
        assert_eq!(bytes.len(), 4 + BULK_CAPABILITIES_MAX * (4 + 4 + 88 + 32 + 4));
        assert_eq!(BulkCapabilityReply::from_bytes(&bytes), Ok(reply));
        bytes[3] += 1;
        assert!(matches!(BulkCapabilityReply::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
    }

    #[test]
    fn no_secret_is_printed() {
        assert!(!format!("{:?}", outcome()).contains("9, 9"));
    }
}
