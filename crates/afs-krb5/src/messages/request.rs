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
    /// Which request.
    #[asn1(context_specific = "2")]
    pub msg_type: u8,
    /// How the client proves who it is.
    #[asn1(context_specific = "3")]
    pub padata: Vec<PaData<'a>>,
    /// What it asks for: an encoded [`KdcReqBody`], the very bytes that are signed.
    #[asn1(context_specific = "4")]
    pub req_body: AnyRef<'a>,
}

/// A piece of authentication.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct PaData<'a> {
    /// What kind.
    #[asn1(context_specific = "1")]
    pub padata_type: i32,
    /// The piece.
    #[asn1(context_specific = "2")]
    pub padata_value: &'a OctetStringRef,
}

/// What is asked for.
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
    /// Wished end.
    #[asn1(context_specific = "5")]
    pub till: GeneralizedTime,
    /// A random number that the reply repeats.
    #[asn1(context_specific = "7")]
    pub nonce: u32,
    /// Encryption types for the session key, best first.
    #[asn1(context_specific = "8")]
    pub etype: Vec<i32>,
}

/// A ticket, and a proof that the sender has its session key.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct ApReq<'a> {
    /// [`PVNO`](super::PVNO).
    #[asn1(context_specific = "0")]
    pub pvno: u8,
    /// AP-REQ's.
    #[asn1(context_specific = "1")]
    pub msg_type: u8,
    /// None here.
    #[asn1(context_specific = "2")]
    pub ap_options: BitStringRef<'a>,
    /// The Ticket, as it came.
    #[asn1(context_specific = "3")]
    pub ticket: AnyRef<'a>,
    /// An [`Authenticator`], encrypted.
    #[asn1(context_specific = "4")]
    pub authenticator: EncryptedData<'a>,
}

/// The proof.
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
    /// Checksum of the request's body.
    #[asn1(context_specific = "3")]
    pub cksum: Checksum<'a>,
    /// Microseconds within the second of `ctime`.
    #[asn1(context_specific = "4")]
    pub cusec: u32,
    /// The client's clock.
    #[asn1(context_specific = "5")]
    pub ctime: GeneralizedTime,
}
