//! Basic types of messages (RFC 4120, section 5.2).

use crate::principal::Principal;
use der::asn1::OctetStringRef;
use der::{DecodeValue, EncodeValue, FixedTag, Header, Length, Reader, Sequence, Tag, Writer};

/// A string in a message: in Kerberos a GeneralString with ASCII contents; UTF-8 is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KerberosString(pub String);

impl From<&str> for KerberosString {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl FixedTag for KerberosString {
    const TAG: Tag = Tag::GeneralString;
}

impl<'a> DecodeValue<'a> for KerberosString {
    type Error = der::Error;

    fn decode_value<R: Reader<'a>>(reader: &mut R, header: Header) -> der::Result<Self> {
        let bytes = reader.read_vec(header.length())?;
        String::from_utf8(bytes).map(Self).map_err(|_| Self::TAG.value_error().into())
    }
}

impl EncodeValue for KerberosString {
    fn value_len(&self) -> der::Result<Length> {
        Length::try_from(self.0.len())
    }

    fn encode_value(&self, writer: &mut impl Writer) -> der::Result<()> {
        writer.write(self.0.as_bytes())
    }
}

/// A principal without its realm.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct PrincipalName {
    /// The kind of name; a hint that is never compared.
    #[asn1(context_specific = "0")]
    pub name_type: i32,
    /// The components.
    #[asn1(context_specific = "1")]
    pub name_string: Vec<KerberosString>,
}

/// Name type of users and most services.
const NT_PRINCIPAL: i32 = 1;

impl From<&Principal> for PrincipalName {
    fn from(principal: &Principal) -> Self {
        let name_string = principal.components.iter().map(|c| KerberosString(c.clone())).collect();
        Self { name_type: NT_PRINCIPAL, name_string }
    }
}

impl PrincipalName {
    /// Whether it equals this principal, apart from the realm.
    pub fn is(&self, principal: &Principal) -> bool {
        self.name_string.iter().map(|c| &c.0).eq(&principal.components)
    }
}

/// Encrypted data.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct EncryptedData<'a> {
    /// Encryption type.
    #[asn1(context_specific = "0")]
    pub etype: i32,
    /// Version number of the service's key.
    #[asn1(context_specific = "1", optional = "true")]
    pub kvno: Option<i64>,
    /// Confounder, content and checksum.
    #[asn1(context_specific = "2")]
    pub cipher: &'a OctetStringRef,
}

/// A key in an encrypted message. Not `Debug`: it must not be shown.
#[derive(Clone, PartialEq, Eq, Sequence)]
pub struct EncryptionKey<'a> {
    /// Encryption type.
    #[asn1(context_specific = "0")]
    pub keytype: i32,
    /// The key.
    #[asn1(context_specific = "1")]
    pub keyvalue: &'a OctetStringRef,
}

/// A keyed checksum.
#[derive(Clone, Debug, PartialEq, Eq, Sequence)]
pub struct Checksum<'a> {
    /// Type of the checksum, from the registry of RFC 3961.
    #[asn1(context_specific = "0")]
    pub cksumtype: i32,
    /// The checksum.
    #[asn1(context_specific = "1")]
    pub checksum: &'a OctetStringRef,
}
