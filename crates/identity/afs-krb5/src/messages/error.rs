//! KRB-ERROR: the refusal of a KDC (RFC 4120, sections 5.9.1 and 7.5.9).

use super::{KerberosString, PrincipalName};
use der::Sequence;
use der::asn1::{AnyRef, GeneralizedTime};

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct KrbError<'a> {
    /// [`PVNO`](super::PVNO).
    #[asn1(context_specific = "0")]
    pub pvno: u8,
    /// Message type of KRB-ERROR.
    #[asn1(context_specific = "1")]
    pub msg_type: u8,
    /// The client's time, from the request.
    #[asn1(context_specific = "2", optional = "true")]
    pub ctime: Option<AnyRef<'a>>,
    /// Microseconds of `ctime`.
    #[asn1(context_specific = "3", optional = "true")]
    pub cusec: Option<AnyRef<'a>>,
    /// The KDC's time.
    #[asn1(context_specific = "4")]
    pub stime: GeneralizedTime,
    /// Microseconds of `stime`.
    #[asn1(context_specific = "5")]
    pub susec: AnyRef<'a>,
    /// Error code.
    #[asn1(context_specific = "6")]
    pub error_code: i32,
    /// The client's realm.
    #[asn1(context_specific = "7", optional = "true")]
    pub crealm: Option<AnyRef<'a>>,
    /// The client.
    #[asn1(context_specific = "8", optional = "true")]
    pub cname: Option<AnyRef<'a>>,
    /// The service's realm.
    #[asn1(context_specific = "9")]
    pub realm: KerberosString,
    /// The service.
    #[asn1(context_specific = "10")]
    pub sname: PrincipalName,
    /// Text for the error.
    #[asn1(context_specific = "11", optional = "true")]
    pub e_text: Option<KerberosString>,
    /// Not used.
    #[asn1(context_specific = "12", optional = "true")]
    pub e_data: Option<AnyRef<'a>>,
}

impl KrbError<'_> {
    /// Error code: the realm does not know the service.
    pub const SERVICE_UNKNOWN: i32 = 7;

    /// Meaning of the code, for a message.
    pub fn meaning(&self) -> &'static str {
        match self.error_code {
            6 => "the realm does not know the user",
            Self::SERVICE_UNKNOWN => "the realm does not know the service",
            12 => "the realm's policy forbids it",
            14 => "the realm has no key of a type that is understood here",
            23 => "the password has expired",
            29 => "a service of the realm is away",
            31 | 41 => "the ticket or the request was damaged on the way",
            32 => "the tickets have expired; get new ones with `kinit`",
            33 => "the tickets are not valid yet",
            36 => "the tickets are not for this user",
            37 => "the clock of this machine and that of the KDC differ too much",
            44 => "the ticket is for a key that the realm has replaced; get new ones with `kinit`",
            52 => "the answer does not fit a datagram, and the KDC takes no TCP",
            68 => "the KDC is not of that realm",
            _ => "see section 7.5.9 of RFC 4120",
        }
    }
}
