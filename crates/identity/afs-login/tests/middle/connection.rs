//! Connection of a man in the middle: hears all messages, and changes, cuts, exchanges or repeats one of them, or sends one too early.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use afs_login::client::Ask;
use afs_rpc::{CallError, Connection};
use afs_wire::login::SshStart;
use afs_wire::rpc::{Request, decode_arguments, decode_reply, encode_call};
use afs_wire::xdr::Encode;
use bytes::Bytes;

/// What becomes of one message. Places are fractions of its length.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Attack {
    /// A bit is changed.
    Flip(f64),
    /// It ends at some byte.
    Cut(f64),
    /// Bytes follow it.
    Lengthen,
    /// One of the same kind takes its place, of another login; or the same with the rest of it after some word.
    Exchange(f64),
    /// One of another kind takes its place.
    OtherKind(f64),
    /// A request is made twice, and the second reply counts.
    Twice,
    /// The request that ended an earlier login is made before it.
    Early,
    /// The host key in a reply is this one.
    HostKey([u8; 32]),
}

impl Attack {
    /// Nobody is kept from a login by it.
    pub fn is_harmless(self) -> bool {
        matches!(self, Attack::Lengthen | Attack::Twice | Attack::Early)
    }
}

/// All messages so far: whether it is a request, the name of its call, and its bytes.
pub type Tape = Arc<Mutex<Vec<(bool, &'static str, Vec<u8>)>>>;

/// The connection that the man in the middle makes of another one.
#[derive(Clone)]
pub struct Middle {
    service: Connection,
    /// The number of the message that suffers it: requests and replies in order.
    attack: Option<(usize, Attack)>,
    pub tape: Tape,
    seen: Arc<AtomicUsize>,
    /// Whether what arrived is not what was sent.
    pub changed: Arc<AtomicBool>,
}

impl Middle {
    pub fn listening(service: Connection, tape: &Tape) -> Self {
        let (seen, changed) = Default::default();
        Self { service, attack: None, tape: tape.clone(), seen, changed }
    }

    pub fn attacking(service: Connection, tape: &Tape, message: usize, attack: Attack) -> Self {
        Self { attack: Some((message, attack)), ..Self::listening(service, tape) }
    }

    /// The latest request of a kind.
    pub fn heard<R: Request>(&self) -> R {
        let tape = self.tape.lock().unwrap();
        let (.., request) = tape.iter().rev().find(|(sent, name, _)| *sent && *name == R::NAME).unwrap();
        decode_arguments(&request[4..]).unwrap()
    }

    /// The attack on the message that is due, which is put on the tape.
    fn due(&self, is_request: bool, name: &'static str, message: &[u8]) -> Option<Attack> {
        let at = self.seen.fetch_add(1, Ordering::SeqCst);
        self.tape.lock().unwrap().push((is_request, name, message.to_vec()));
        self.attack.filter(|(due, _)| *due == at).map(|(_, attack)| attack)
    }

    async fn send(&self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        let mut call = self.service.begin(Bytes::copy_from_slice(request), true).await?;
        Ok(call.read_to_end(1 << 16).await?.to_vec())
    }

    async fn sent<R: Request>(&self, request: &R) -> Result<R::Reply, CallError> {
        let request = encode_call(request);
        let attack = self.due(true, R::NAME, &request);
        let forged = self.forged(attack, true, R::NAME, &request);
        let same = decode_arguments::<R>(forged.get(4..).unwrap_or_default()).map(|now| encode_call(&now));
        // The letters of a name may change their case.
        self.note(same.is_ok_and(|now| now.eq_ignore_ascii_case(&request) && now[..4] == forged[..4]));
        match attack {
            Some(Attack::Twice) => drop(self.send(&forged).await),
            Some(Attack::Early) => {
                drop(self.send(&self.recorded(true, |name| name.ends_with("Finish"))).await)
            }
            _ => {}
        }
        let reply = self.send(&forged).await?;
        let attack = self.due(false, R::NAME, &reply);
        let forged = self.forged(attack, false, R::NAME, &reply);
        let told = decode_reply::<R>(&forged);
        self.note(told.as_ref().is_ok_and(|told| reply.starts_with(&told.to_bytes())));
        Ok(told?)
    }

    fn note(&self, is_same: bool) {
        self.changed.fetch_or(!is_same, Ordering::SeqCst);
    }

    fn forged(&self, attack: Option<Attack>, is_request: bool, name: &str, message: &[u8]) -> Vec<u8> {
        // Of a request the number of its call stays.
        let kept = if is_request { 4 } else { 0 };
        let byte = |place: f64| kept + ((message.len() - kept) as f64 * place) as usize;
        match attack {
            None | Some(Attack::Twice | Attack::Early) => message.to_vec(),
            Some(Attack::Flip(place)) => {
                let bit = ((message.len() - kept) as f64 * 8.0 * place) as usize;
                let mut forged = message.to_vec();
                forged[kept + bit / 8] ^= 1 << (bit % 8);
                forged
            }
            Some(Attack::Cut(place)) => message[..byte(place)].to_vec(),
            Some(Attack::Lengthen) => [message, &[7; 1000]].concat(),
            Some(Attack::Exchange(place)) => {
                let other = self.recorded(is_request, |of| of == name);
                let word = byte(place).min(other.len()) / 4 * 4;
                if place < 0.3 { other } else { [&message[..word], &other[word..]].concat() }
            }
            Some(Attack::OtherKind(_)) => self.recorded(is_request, |of| of != name),
            Some(Attack::HostKey(key)) => with_host_key(message, &key),
        }
    }

    /// The first message of a kind on the tape, which is of an earlier login.
    fn recorded(&self, is_request: bool, is_of: impl Fn(&str) -> bool) -> Vec<u8> {
        let tape = self.tape.lock().unwrap();
        let found = tape.iter().find(|(request, name, _)| *request == is_request && is_of(name));
        found.map(|(.., message)| message.clone()).unwrap_or_default()
    }
}

impl Ask for Middle {
    fn ask<R: Request>(&self, request: &R) -> impl Future<Output = Result<R::Reply, CallError>> + Send {
        self.sent(request)
    }
}

fn with_host_key(reply: &[u8], key: &[u8; 32]) -> Vec<u8> {
    let mut reply = decode_reply::<SshStart>(reply).unwrap();
    reply.host_key = afs_wire::login::Fixed(*key);
    reply.to_bytes()
}
