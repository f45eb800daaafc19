//! The TGS exchange of RFC 4120, section 3.3: a request to a KDC for the ticket of a service, and its reply.

use crate::cache::{Credential, SessionKey};
use crate::messages::{
    ApReq, Authenticator, Checksum, EncKdcRepPart, EncryptedData, KdcRep, KdcReq, KdcReqBody, KrbError,
    MessageTag, PVNO, PaData,
};
use crate::principal::Principal;
use afs_auth::Secret;
use afs_auth::crypto::{CryptoError, EncType, MicKey};
use afs_rpc::{EnvRef, UnixTime};
use der::asn1::{AnyRef, BitStringRef, GeneralizedTime, OctetStringRef};
use der::{Decode, Encode};
use std::time::Duration;
use zeroize::Zeroizing;

/// Why an exchange gave no ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// The KDC refused.
    #[error("{meaning} (Kerberos error {code}{})", said(.text))]
    Refused {
        /// Error code of RFC 4120, section 7.5.9.
        code: i32,
        /// Meaning of the code.
        meaning: &'static str,
        /// Text from the KDC.
        text: String,
    },
    /// The session key of the ticket-granting ticket has an unsupported encryption type.
    #[error(
        "the session key of the tickets is of encryption type {0}, which cannot be used to ask for others; AES is needed"
    )]
    KeyType(i32),
    /// A key does not fit its type, or the reply is encrypted with another key.
    #[error("the reply of the KDC is not to be trusted: {0}")]
    Crypto(#[from] CryptoError),
    /// A message is malformed.
    #[error("a message of Kerberos is not well formed: {0}")]
    Form(#[from] der::Error),
    /// The reply does not belong to the request.
    #[error("the reply of the KDC is for another {0}")]
    Other(&'static str),
}

/// The text that a KDC adds to its refusal, for a message.
fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(", '{}'", text.escape_default()) }
}

impl ExchangeError {
    /// Whether the KDC does not know the service; another KDC may know it.
    pub fn is_unknown_service(&self) -> bool {
        matches!(self, Self::Refused { code: KrbError::SERVICE_UNKNOWN, .. })
    }
}

/// Key usages (RFC 4120, section 7.5.1).
mod usage {
    pub const TGS_REQ_CHECKSUM: u32 = 6;
    pub const TGS_REQ_AUTHENTICATOR: u32 = 7;
    pub const TGS_REP: u32 = 8;
}

/// Type of pre-authentication data that contains an AP-REQ.
const PA_TGS_REQ: i32 = 1;
/// Encryption types for the session key, best first. rxkad derives 56 bits from any of them, and all its servers know
/// the first two.
const ENCTYPES: [i32; 5] = [18, 17, 20, 19, 23];
/// Longest text of a KDC that is shown, in characters.
const TEXT_MAX: usize = 200;

/// One exchange: the ticket that authenticates it, the requested service, and the nonce that ties the reply to the
/// request.
#[derive(Debug)]
pub struct Exchange<'a> {
    granting: &'a Credential,
    service: &'a Principal,
    nonce: u32,
}

impl<'a> Exchange<'a> {
    /// An exchange with the KDC that issued or trusts `granting`, a ticket of its ticket-granting service.
    pub fn new(granting: &'a Credential, service: &'a Principal, env: &EnvRef) -> Self {
        let mut nonce = [0; 4];
        env.random(&mut nonce);
        // Some KDCs treat the nonce as a signed number.
        Self { granting, service, nonce: u32::from_be_bytes(nonce) >> 1 }
    }

    /// Encodes the request.
    ///
    /// # Errors
    /// The ticket or its key cannot be used.
    pub fn request(&self, now: UnixTime, env: &EnvRef) -> Result<Vec<u8>, ExchangeError> {
        let body = self.body()?;
        let proof = self.proof(&body, now, env)?;
        let request = KdcReq {
            pvno: PVNO,
            msg_type: MessageTag::TGS_REQ.number(),
            padata: vec![PaData { padata_type: PA_TGS_REQ, padata_value: OctetStringRef::new(&proof)? }],
            req_body: AnyRef::from_der(&body)?,
        };
        Ok(MessageTag::TGS_REQ.encode(request)?)
    }

    fn body(&self) -> Result<Vec<u8>, ExchangeError> {
        let body = KdcReqBody {
            kdc_options: BitStringRef::from_bytes(&[0; 4])?,
            realm: self.service.realm.as_str().into(),
            sname: self.service.into(),
            till: kerberos_time(self.granting.ends)?,
            nonce: self.nonce,
            etype: ENCTYPES.to_vec(),
        };
        Ok(body.to_der()?)
    }

    /// An AP-REQ with a checksum of the body.
    fn proof(&self, body: &[u8], now: UnixTime, env: &EnvRef) -> Result<Vec<u8>, ExchangeError> {
        let (enctype, key) = self.key()?;
        let mic = MicKey::new(enctype, key, usage::TGS_REQ_CHECKSUM)?;
        let mut checksum = vec![0; mic.mac_len()];
        mic.sign(body, &[], &mut checksum)?;
        let authenticator = Authenticator {
            authenticator_vno: PVNO,
            crealm: self.granting.client.realm.as_str().into(),
            cname: (&self.granting.client).into(),
            cksum: Checksum { cksumtype: checksum_type(enctype), checksum: OctetStringRef::new(&checksum)? },
            cusec: now.nanos / 1000,
            ctime: kerberos_time(now)?,
        };
        let plain = MessageTag::AUTHENTICATOR.encode(authenticator)?;
        let cipher = enctype.encrypt(key, usage::TGS_REQ_AUTHENTICATOR, &plain, env)?;
        let etype = enctype.number();
        let proof = ApReq {
            pvno: PVNO,
            msg_type: MessageTag::AP_REQ.number(),
            ap_options: BitStringRef::from_bytes(&[0; 4])?,
            ticket: AnyRef::from_der(&self.granting.ticket)?,
            authenticator: EncryptedData { etype, kvno: None, cipher: OctetStringRef::new(&cipher)? },
        };
        Ok(MessageTag::AP_REQ.encode(proof)?)
    }

    fn key(&self) -> Result<(EncType, &[u8]), ExchangeError> {
        let key = &self.granting.key;
        let enctype = EncType::from_number(key.enctype).filter(|enctype| enctype.is_for_rxgk());
        Ok((enctype.ok_or(ExchangeError::KeyType(key.enctype))?, key.secret.expose()))
    }

    /// Decodes the ticket in a reply.
    ///
    /// # Errors
    /// The KDC refuses, or the reply does not belong to the request.
    pub fn reply(&self, answer: &[u8]) -> Result<Credential, ExchangeError> {
        if MessageTag::of(answer) == Some(MessageTag::KRB_ERROR) {
            return Err(refusal(&MessageTag::KRB_ERROR.decode(answer)?));
        }
        let reply: KdcRep<'_> = MessageTag::TGS_REP.decode(answer)?;
        let client = &self.granting.client;
        if reply.crealm.0 != client.realm || !reply.cname.is(client) {
            return Err(ExchangeError::Other("user"));
        }
        let (enctype, key) = self.key()?;
        let plain = enctype.decrypt(key, usage::TGS_REP, reply.enc_part.cipher.as_bytes())?;
        let plain = Zeroizing::new(plain);
        let part: EncKdcRepPart<'_> = MessageTag::ENC_TGS_REP_PART.decode(&plain)?;
        self.check(&part)?;
        self.credential(&part, reply.ticket)
    }

    fn check(&self, part: &EncKdcRepPart<'_>) -> Result<(), ExchangeError> {
        if part.nonce != i64::from(self.nonce) {
            return Err(ExchangeError::Other("request"));
        }
        if part.srealm.0 != self.service.realm || !part.sname.is(self.service) {
            return Err(ExchangeError::Other("service"));
        }
        Ok(())
    }

    fn credential(&self, part: &EncKdcRepPart<'_>, ticket: AnyRef<'_>) -> Result<Credential, ExchangeError> {
        let ticket = ticket.to_der()?;
        if MessageTag::of(&ticket) != Some(MessageTag::TICKET) {
            return Err(ExchangeError::Other("kind of ticket"));
        }
        let secret = Secret::new(part.key.keyvalue.as_bytes().to_vec());
        Ok(Credential {
            client: self.granting.client.clone(),
            server: self.service.clone(),
            key: SessionKey { enctype: part.key.keytype, secret },
            starts: unix_time(part.starttime.unwrap_or(part.authtime)),
            ends: unix_time(part.endtime),
            ticket,
        })
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Exchange<'_> {
    /// The reply with its encrypted part changed by `change`.
    pub(crate) fn resealed(
        &self,
        answer: &[u8],
        change: impl FnOnce(&[u8]) -> Vec<u8>,
        env: &EnvRef,
    ) -> Vec<u8> {
        let seal = || -> Result<Vec<u8>, ExchangeError> {
            let mut reply: KdcRep<'_> = MessageTag::TGS_REP.decode(answer)?;
            let (enctype, key) = self.key()?;
            let plain = change(&enctype.decrypt(key, usage::TGS_REP, reply.enc_part.cipher.as_bytes())?);
            let cipher = enctype.encrypt(key, usage::TGS_REP, &plain, env)?;
            reply.enc_part.cipher = OctetStringRef::new(&cipher)?;
            Ok(MessageTag::TGS_REP.encode(reply)?)
        };
        seal().unwrap_or_default()
    }
}

fn refusal(error: &KrbError<'_>) -> ExchangeError {
    let text = error.e_text.as_ref().map_or("", |text| text.0.as_str());
    let text = text.chars().take(TEXT_MAX).collect();
    ExchangeError::Refused { code: error.error_code, meaning: error.meaning(), text }
}

/// The checksum type that belongs to an encryption type (RFC 3962 and RFC 8009).
fn checksum_type(enctype: EncType) -> i32 {
    match enctype {
        EncType::Aes128Sha1 => 15,
        EncType::Aes256Sha1 => 16,
        // For the newer types it is the number of the encryption type.
        other => other.number(),
    }
}

fn kerberos_time(time: UnixTime) -> der::Result<GeneralizedTime> {
    GeneralizedTime::from_unix_duration(Duration::from_secs(time.secs))
}

fn unix_time(time: GeneralizedTime) -> UnixTime {
    UnixTime { secs: time.to_unix_duration().as_secs(), nanos: 0 }
}

#[cfg(test)]
mod tests;
