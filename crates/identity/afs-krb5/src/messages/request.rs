//! KDC-REQ, AP-REQ and Authenticator: the request of a client (RFC 4120, sections 5.4.1 and 5.5.1).

use super::{Checksum, EncryptedData, KerberosString, PrincipalName};
use der::Sequence;
use der::asn1::{AnyRef, BitStringRef, GeneralizedTime, OctetStringRef};

/// A request to a KDC.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct KdcReq<'a> {
    /// [`PVNO`](super::PVNO).
    #[asn1(context_specific = "1")]
    pub pvno: u8,
    /// Message type.
    #[asn1(context_specific = "2")]
    pub msg_type: u8,
    /// Pre-authentication data, which authenticates the client.
    #[asn1(context_specific = "3")]
    pub padata: Vec<PaData<'a>>,
    /// The request body: an encoded [`KdcReqBody`], the same bytes that the checksum covers.
    #[asn1(context_specific = "4")]
    pub req_body: AnyRef<'a>,
}

/// An element of pre-authentication data.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct PaData<'a> {
    /// Its type.
    #[asn1(context_specific = "1")]
    pub padata_type: i32,
    /// Its value.
    #[asn1(context_specific = "2")]
    pub padata_value: &'a OctetStringRef,
}

/// Body of a request.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct KdcReqBody<'a> {
    /// Options of the ticket.
    #[asn1(context_specific = "0")]
    pub kdc_options: BitStringRef<'a>,
    /// The service's realm.
    #[asn1(context_specific = "2")]
    pub realm: KerberosString,
    /// The service.
    #[asn1(context_specific = "3")]
    pub sname: PrincipalName,
    /// Requested end of validity.
    #[asn1(context_specific = "5")]
    pub till: GeneralizedTime,
    /// Random number that the reply repeats.
    #[asn1(context_specific = "7")]
    pub nonce: u32,
    /// Encryption types for the session key, best first.
    #[asn1(context_specific = "8")]
    pub etype: Vec<i32>,
}

/// A ticket, and proof that the sender has its session key.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct ApReq<'a> {
    /// [`PVNO`](super::PVNO).
    #[asn1(context_specific = "0")]
    pub pvno: u8,
    /// Message type of AP-REQ.
    #[asn1(context_specific = "1")]
    pub msg_type: u8,
    /// None are used here.
    #[asn1(context_specific = "2")]
    pub ap_options: BitStringRef<'a>,
    /// The Ticket, unchanged.
    #[asn1(context_specific = "3")]
    pub ticket: AnyRef<'a>,
    /// An [`Authenticator`], encrypted.
    #[asn1(context_specific = "4")]
    pub authenticator: EncryptedData<'a>,
}

/// Proof that the sender has the session key.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct Authenticator<'a> {
    /// [`PVNO`](super::PVNO).
    #[asn1(context_specific = "0")]
    pub authenticator_vno: u8,
    /// The client's realm.
    #[asn1(context_specific = "1")]
    pub crealm: KerberosString,
    /// The client.
    #[asn1(context_specific = "2")]
    pub cname: PrincipalName,
    /// Checksum of the request body.
    #[asn1(context_specific = "3")]
    pub cksum: Checksum<'a>,
    /// Microseconds of `ctime`.
    #[asn1(context_specific = "4")]
    pub cusec: u32,
    /// The client's time.
    #[asn1(context_specific = "5")]
    pub ctime: GeneralizedTime,
}
