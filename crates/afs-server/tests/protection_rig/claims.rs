//! Security class without proof: the server believes the identity that a client gives.

use std::sync::Arc;

use afs_rpc::{Class, Credential, Level, Principal, Protection, SecuritySource};
use afs_rx::{
    Challenge, ClientSecurity, Identity, Instant, PacketContext, PacketSecurity, Proof, Response,
    SecurityError, ServerSecurity, ServerSession, Verified,
};
use bytes::Bytes;

use super::Role;

const INDEX: u8 = 2;

/// Gives an identity.
pub struct ClaimSource(String);

struct ClaimClient(String);

/// Believes it.
pub struct ClaimServer;

#[derive(Default)]
struct ClaimSession(Option<Arc<Credential>>);

impl ClaimSource {
    pub fn of(role: Role) -> Self {
        ClaimSource(match role {
            Role::User(name) => name.into(),
            Role::Foreign(name, cell) => format!("{name} {cell}"),
            _ => "/key".into(),
        })
    }
}

impl SecuritySource for ClaimSource {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn session(&self) -> Box<dyn ClientSecurity> {
        Box::new(ClaimClient(self.0.clone()))
    }
}

macro_rules! clear_packets {
    ($half:ident) => {
        impl PacketSecurity for $half {
            fn index(&self) -> u8 {
                INDEX
            }
            fn seal(&mut self, _: &PacketContext, _: &mut Vec<u8>) -> Result<u16, SecurityError> {
                Ok(0)
            }
            fn open(&mut self, _: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
                Ok(payload)
            }
        }
    };
}

clear_packets!(ClaimClient);
clear_packets!(ClaimSession);

impl ClientSecurity for ClaimClient {
    fn respond(&mut self, _: &Challenge<'_>) -> Result<Response, SecurityError> {
        Ok(Response { payload: self.0.as_bytes().to_vec(), checksum: 0 })
    }
}

impl ServerSecurity for ClaimServer {
    fn index(&self) -> u8 {
        INDEX
    }

    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(ClaimSession::default())
    }
}

impl ServerSession for ClaimSession {
    fn is_authenticated(&self, _: Instant) -> bool {
        self.0.is_some()
    }

    fn challenge(&mut self, _: Instant, _: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        vec![0; 4]
    }

    fn verify(&mut self, proof: &Proof<'_>) -> Result<Verified, SecurityError> {
        let claim = std::str::from_utf8(proof.payload).unwrap();
        let principal = match claim.split_once(' ') {
            _ if claim == "/key" => Principal::CellKey,
            Some((name, cell)) => Principal::Named { name: name.into(), cell: Some(cell.into()) },
            None => Principal::Named { name: claim.into(), cell: None },
        };
        let protection = Protection { class: Class::Rxgk, level: Level::Crypt };
        self.0 = Some(Arc::new(Credential { principal, protection, expires: None, callback: None }));
        Ok(Verified::default())
    }

    fn identity(&self) -> Option<Identity> {
        self.0.clone().map(|credential| credential as Identity)
    }
}
