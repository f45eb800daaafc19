//! Decrypted contents of a ticket.

use core::time::Duration;

use der::asn1::{AnyRef, BitStringRef, GeneralStringRef, GeneralizedTime, OctetStringRef};
use der::{Result, Tag, TagNumber};

use super::der::{Fields, element, field, field_of, sequence};
use crate::Secret;

/// RFC 4120, section 5.3: `EncTicketPart` is APPLICATION 3.
const PART: u32 = 3;

/// Most components of a client's name: more than any that is accepted.
const COMPONENTS_MAX: usize = 8;

/// `EncTicketPart` of RFC 4120, section 5.3, without the fields that AFS ignores. Times in Unix seconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TicketPart {
    /// Flags; bit 0 of Kerberos is the most significant.
    pub flags: u32,
    /// Encryption type of the session key.
    pub keytype: i32,
    /// The session key.
    pub key: Secret,
    /// The client's realm.
    pub realm: String,
    /// The components of the client's name.
    pub client: Vec<String>,
    /// When the client was authenticated.
    pub authtime: u64,
    /// From when the ticket is valid; `authtime` if there is none.
    pub starttime: Option<u64>,
    /// Its expiry.
    pub endtime: u64,
}

impl TicketPart {
    /// Flag 7: the ticket must be validated before it is used.
    pub const INVALID: u32 = 1 << (31 - 7);

    /// Flag 12: the KDC has checked the realms between the client's and its own.
    pub const TRANSITED_POLICY_CHECKED: u32 = 1 << (31 - 12);

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::of_application(PART, bytes)?;
        let flags = flags(fields.required(0)?);
        let (keytype, key) = session_key(fields.required(1)?)?;
        let realm = text(fields.required(2)?)?;
        let client = components(fields.required(3)?)?;
        let authtime = seconds(fields.required(5)?);
        let starttime = fields.optional(6)?.map(seconds);
        let endtime = seconds(fields.required(7)?);
        Ok(Self { flags, keytype, key, realm, client, authtime, starttime, endtime })
    }

    pub(in crate::rxkad) fn encode(&self) -> Result<Secret> {
        let flags = self.flags.to_be_bytes();
        let starttime = self.starttime.map(|start| field(6, &time(start)?)).transpose()?;
        let key = sequence(&[field(0, &self.keytype)?, field(1, &OctetStringRef::new(self.key.expose())?)?])?;
        let no_realms = sequence(&[field(0, &0)?, field(1, &OctetStringRef::new(&[])?)?])?;
        let whole = sequence(&[
            field(0, &BitStringRef::from_bytes(&flags)?)?,
            field_of(1, &key)?,
            field_of(2, &general_string(&self.realm)?)?,
            field_of(3, &self.encode_client()?)?,
            field_of(4, &no_realms)?,
            field(5, &time(self.authtime)?)?,
            starttime.unwrap_or_default(),
            field(7, &time(self.endtime)?)?,
        ])?;
        element(Tag::Application { constructed: true, number: TagNumber(PART) }, &whole).map(Secret::new)
    }

    /// The type of the name is "unknown", as in OpenAFS's own tickets: it is ignored.
    fn encode_client(&self) -> Result<Vec<u8>> {
        let components = self.client.iter().map(|part| general_string(part)).collect::<Result<Vec<_>>>()?;
        sequence(&[field(0, &0)?, field_of(1, &sequence(&components)?)?])
    }
}

fn flags(bits: BitStringRef<'_>) -> u32 {
    (0..32).fold(0, |flags, at| flags << 1 | u32::from(bits.get(at).unwrap_or(false)))
}

fn session_key(element: AnyRef<'_>) -> Result<(i32, Secret)> {
    let mut fields = Fields::of(element)?;
    let keytype = fields.required(0)?;
    let key = fields.required::<&OctetStringRef>(1)?;
    Ok((keytype, Secret::new(key.as_bytes().to_vec())))
}

fn components(element: AnyRef<'_>) -> Result<Vec<String>> {
    let mut fields = Fields::of(element)?;
    let _name_type: i32 = fields.required(0)?;
    let strings: Vec<GeneralStringRef<'_>> = fields.required(1)?;
    strings.into_iter().take(COMPONENTS_MAX).map(text).collect()
}

fn text(string: GeneralStringRef<'_>) -> Result<String> {
    let text = core::str::from_utf8(string.as_bytes()).map_err(|_| Tag::GeneralString.value_error())?;
    Ok(text.to_owned())
}

fn general_string(text: &str) -> Result<Vec<u8>> {
    element(Tag::GeneralString, text.as_bytes())
}

fn seconds(time: GeneralizedTime) -> u64 {
    time.to_unix_duration().as_secs()
}

fn time(seconds: u64) -> Result<GeneralizedTime> {
    GeneralizedTime::from_unix_duration(Duration::from_secs(seconds))
}
