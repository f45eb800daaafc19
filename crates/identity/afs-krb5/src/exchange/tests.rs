//! Tests of the exchange with recorded replies of an MIT KDC.

use super::*;
use crate::cache::Cache;
use crate::samples::{AFS, ALICE, CACHE, ISSUED, NONCE, REFUSAL, REPLY, TICKET_GRANTING};
use afs_rpc::{EnvRef, Parts};
use proptest::prelude::*;

const NOW: UnixTime = UnixTime { secs: ISSUED + 60, nanos: 123_456_789 };

fn env() -> EnvRef {
    Parts::default().with_random(|out| out.fill(7)).shared()
}

fn granting() -> Credential {
    let server = Principal::parse(TICKET_GRANTING, "").unwrap();
    Cache::decode(CACHE).unwrap().find(&server, NOW).unwrap().clone()
}

fn afs() -> Principal {
    Principal::parse(AFS, "").unwrap()
}

#[test]
fn a_request_proves_who_asks_and_for_what() {
    let (granting, afs) = (granting(), afs());
    let bytes = Exchange::new(&granting, &afs, &env()).request(NOW, &env()).unwrap();
    let request: KdcReq<'_> = MessageTag::TGS_REQ.decode(&bytes).unwrap();
    let body: KdcReqBody<'_> = request.req_body.decode_as().unwrap();
    assert_eq!((body.realm.0.as_str(), body.nonce), ("KERB.TEST", NONCE));
    assert!(body.sname.is(&afs));

    let proof: ApReq<'_> = MessageTag::AP_REQ.decode(request.padata[0].padata_value.as_bytes()).unwrap();
    assert_eq!(proof.ticket.to_der().unwrap(), granting.ticket);
    let key = granting.key.secret.expose();
    let plain = EncType::Aes256Sha1.decrypt(key, 7, proof.authenticator.cipher.as_bytes()).unwrap();
    let authenticator: Authenticator<'_> = MessageTag::AUTHENTICATOR.decode(&plain).unwrap();
    assert!(authenticator.cname.is(&Principal::parse(ALICE, "").unwrap()));
    assert_eq!((unix_time(authenticator.ctime).secs, authenticator.cusec), (NOW.secs, 123_456));
    let mic = MicKey::new(EncType::Aes256Sha1, key, 6).unwrap();
    let mut checksum = vec![0; mic.mac_len()];
    mic.sign(&request.req_body.to_der().unwrap(), &[], &mut checksum).unwrap();
    assert_eq!((authenticator.cksum.cksumtype, authenticator.cksum.checksum.as_bytes()), (16, &*checksum));
}

#[test]
fn the_answer_of_a_kdc_is_a_ticket() {
    let (granting, afs) = (granting(), afs());
    let ticket = Exchange::new(&granting, &afs, &env()).reply(REPLY).unwrap();
    assert_eq!((ticket.client.to_string(), ticket.server.to_string()), (ALICE.into(), AFS.into()));
    assert_eq!((ticket.key.enctype, ticket.key.secret.expose().len()), (18, 32));
    assert_eq!(ticket.ends, granting.ends);
    assert!(ticket.starts.secs >= ISSUED);
    assert_eq!(MessageTag::of(&ticket.ticket), Some(MessageTag::TICKET));
}

#[test]
fn an_answer_to_another_request_is_none() {
    let (granting, afs) = (granting(), afs());
    let other = Principal::parse("host/a@KERB.TEST", "").unwrap();
    let reply = |service: &Principal, env: &EnvRef| Exchange::new(&granting, service, env).reply(REPLY);
    let other_world = Parts::default().with_random(|out| out.fill(9)).shared();
    assert_eq!(reply(&afs, &other_world), Err(ExchangeError::Other("request")));
    assert_eq!(reply(&other, &env()), Err(ExchangeError::Other("service")));
    let mut of_bob = granting.clone();
    of_bob.client.components[0] = "bob".into();
    assert_eq!(Exchange::new(&of_bob, &afs, &env()).reply(REPLY), Err(ExchangeError::Other("user")));
    let mut other_key = granting.clone();
    other_key.key.secret = Secret::new(vec![1; 32]);
    let wrong = Exchange::new(&other_key, &afs, &env()).reply(REPLY);
    assert_eq!(wrong, Err(ExchangeError::Crypto(CryptoError::Integrity)));
}

#[test]
fn a_refusal_says_why() {
    let (granting, afs) = (granting(), afs());
    let error = Exchange::new(&granting, &afs, &env()).reply(REFUSAL).unwrap_err();
    assert!(error.is_unknown_service());
    assert_eq!(
        error.to_string(),
        "the realm does not know the service (Kerberos error 7, 'LOOKING_UP_SERVER')"
    );
}

#[test]
fn a_key_of_an_old_type_is_said_so() {
    let (mut granting, afs) = (granting(), afs());
    granting.key.enctype = 23;
    let error = Exchange::new(&granting, &afs, &env()).request(NOW, &env()).unwrap_err();
    assert_eq!(error, ExchangeError::KeyType(23));
}

proptest! {
    #[test]
    fn damage_is_an_error(at in 0..REPLY.len(), byte in any::<u8>()) {
        let mut answer = REPLY.to_vec();
        answer[at] = byte;
        let _ = Exchange::new(&granting(), &afs(), &env()).reply(&answer);
    }

    #[test]
    fn garbage_is_an_error(tag in prop::sample::select(vec![0x6d_u8, 0x7e, 0x30]), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let answer = [&[tag], &*bytes].concat();
        prop_assert!(Exchange::new(&granting(), &afs(), &env()).reply(&answer).is_err());
    }
}
