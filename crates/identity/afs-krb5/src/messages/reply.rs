//! KDC-REP: the reply of a KDC (RFC 4120, section 5.4.2).

use super::{EncryptedData, EncryptionKey, KerberosString, PrincipalName};
use der::Sequence;
use der::asn1::{AnyRef, BitStringRef, GeneralizedTime};

/// A reply with a ticket for the client.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct KdcRep<'a> {
    /// [`PVNO`](super::PVNO).
    #[asn1(context_specific = "0")]
    pub pvno: u8,
    /// Message type.
    #[asn1(context_specific = "1")]
    pub msg_type: u8,
    /// Not used.
    #[asn1(context_specific = "2", optional = "true")]
    pub padata: Option<AnyRef<'a>>,
    /// The client's realm.
    #[asn1(context_specific = "3")]
    pub crealm: KerberosString,
    /// The client.
    #[asn1(context_specific = "4")]
    pub cname: PrincipalName,
    /// The Ticket.
    #[asn1(context_specific = "5")]
    pub ticket: AnyRef<'a>,
    /// An [`EncKdcRepPart`], encrypted for the client.
    #[asn1(context_specific = "6")]
    pub enc_part: EncryptedData<'a>,
}

/// Description of the ticket for the client. Not `Debug`: it contains the session key.
#[derive(Clone, PartialEq, Eq, Sequence)]
pub struct EncKdcRepPart<'a> {
    /// The session key.
    #[asn1(context_specific = "0")]
    pub key: EncryptionKey<'a>,
    /// Not used.
    #[asn1(context_specific = "1")]
    pub last_req: AnyRef<'a>,
    /// Nonce of the request.
    #[asn1(context_specific = "2")]
    pub nonce: i64,
    /// Not used.
    #[asn1(context_specific = "3", optional = "true")]
    pub key_expiration: Option<GeneralizedTime>,
    /// Options of the ticket.
    #[asn1(context_specific = "4")]
    pub flags: BitStringRef<'a>,
    /// Time of the initial authentication.
    #[asn1(context_specific = "5")]
    pub authtime: GeneralizedTime,
    /// Start of the ticket's validity; `authtime` if absent.
    #[asn1(context_specific = "6", optional = "true")]
    pub starttime: Option<GeneralizedTime>,
    /// End of the ticket's validity.
    #[asn1(context_specific = "7")]
    pub endtime: GeneralizedTime,
    /// Not used.
    #[asn1(context_specific = "8", optional = "true")]
    pub renew_till: Option<GeneralizedTime>,
    /// The service's realm.
    #[asn1(context_specific = "9")]
    pub srealm: KerberosString,
    /// The service.
    #[asn1(context_specific = "10")]
    pub sname: PrincipalName,
    /// Not used.
    #[asn1(context_specific = "11", optional = "true")]
    pub caddr: Option<AnyRef<'a>>,
    /// Not used (RFC 6806).
    #[asn1(context_specific = "12", optional = "true")]
    pub encrypted_pa_data: Option<AnyRef<'a>>,
}
