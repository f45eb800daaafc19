//! Security object of a connection, behind a lock of its own that packets share, so that its ciphers run without the endpoint's
//! lock and beside one another.

use crate::Instant;
use crate::ids::Side;
use crate::security::{
    Challenge, ClientSecurity, Identity, Overhead, PacketContext, PacketSecurity, Proof, Response,
    SecurityError, SecurityReport, ServerSession, Verified,
};
use bytes::Bytes;
use std::sync::Arc;

use parking_lot::RwLock;

/// The object of either side.
enum Class {
    Client(Box<dyn ClientSecurity>),
    Server(Box<dyn ServerSession>),
}

/// Security object of a connection, and a copy of its properties. The copy changes only with a handshake and is read
/// without the object's lock, which threads share while they seal or open packets; a handshake has it alone.
pub(crate) struct Security {
    class: Arc<RwLock<Class>>,
    side: Side,
    index: u8,
    properties: Properties,
}

/// The object's properties.
struct Properties {
    overhead: Overhead,
    protects: bool,
    keeps_data: bool,
    authenticated: bool,
    identity: Option<Identity>,
}

/// The object's ciphers, for use without the endpoint's lock, by any number of threads at a time.
#[derive(Clone)]
pub(crate) struct Cipher(Arc<RwLock<Class>>);

/// Why a packet failed to open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotOpened {
    pub(crate) failure: SecurityError,
    /// The error because of which no further packet will open.
    pub(crate) ended: Option<SecurityError>,
}

impl Class {
    fn packets(&self) -> &dyn PacketSecurity {
        match self {
            Class::Client(client) => &**client,
            Class::Server(session) => &**session,
        }
    }

    fn properties(&self, now: Instant) -> Properties {
        let packets = self.packets();
        let (authenticated, identity) = match self {
            Class::Client(_) => (true, None),
            Class::Server(session) => (session.is_authenticated(now), session.identity()),
        };
        Properties {
            overhead: packets.overhead(),
            protects: packets.protects(),
            keeps_data: packets.keeps_data(),
            authenticated,
            identity,
        }
    }
}

impl Security {
    pub(crate) fn client(class: Box<dyn ClientSecurity>, now: Instant) -> Self {
        Self::new(Class::Client(class), Side::Client, now)
    }

    pub(crate) fn server(class: Box<dyn ServerSession>, now: Instant) -> Self {
        Self::new(Class::Server(class), Side::Server, now)
    }

    fn new(class: Class, side: Side, now: Instant) -> Self {
        let (index, properties) = (class.packets().index(), class.properties(now));
        Security { class: Arc::new(RwLock::new(class)), side, index, properties }
    }

    pub(crate) fn side(&self) -> Side {
        self.side
    }

    pub(crate) fn index(&self) -> u8 {
        self.index
    }

    pub(crate) fn overhead(&self) -> Overhead {
        self.properties.overhead
    }

    pub(crate) fn protects(&self) -> bool {
        self.properties.protects
    }

    pub(crate) fn keeps_data(&self) -> bool {
        self.properties.keeps_data
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.properties.authenticated
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        self.properties.identity.clone()
    }

    pub(crate) fn cipher(&self) -> Cipher {
        Cipher(self.class.clone())
    }

    pub(crate) fn authenticates_packets(&self) -> bool {
        self.class.read().packets().authenticates_packets()
    }

    pub(crate) fn report(&self) -> SecurityReport {
        self.class.read().packets().report()
    }

    /// A client's response to a challenge; `None` at a server.
    pub(crate) fn respond(&mut self, challenge: &Challenge<'_>) -> Option<Result<Response, SecurityError>> {
        let mut class = self.class.write();
        let Class::Client(client) = &mut *class else { return None };
        let answer = client.respond(challenge);
        self.properties = class.properties(challenge.now);
        Some(answer)
    }

    /// A server's challenge; `None` at a client.
    pub(crate) fn challenge(&self, now: Instant, random: &mut dyn FnMut(&mut [u8])) -> Option<Vec<u8>> {
        match &mut *self.class.write() {
            Class::Client(_) => None,
            Class::Server(session) => Some(session.challenge(now, random)),
        }
    }

    /// A server's verification of a response; `None` at a client.
    pub(crate) fn verify(&mut self, proof: &Proof<'_>) -> Option<Result<Verified, SecurityError>> {
        let mut class = self.class.write();
        let Class::Server(session) = &mut *class else { return None };
        let verified = session.verify(proof);
        self.properties = class.properties(proof.now);
        Some(verified)
    }
}

impl Cipher {
    pub(crate) fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, SecurityError> {
        self.0.read().packets().seal(packet, payload)
    }

    pub(crate) fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, NotOpened> {
        let class = self.0.read();
        let opened = class.packets().open(packet, payload);
        opened.map_err(|failure| NotOpened { failure, ended: class.packets().ended() })
    }
}
