//! The null class, index 0: no header, no checksum, no challenge.

use super::*;

/// The client's half of an unprotected connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullClient;

/// Offers unprotected connections, and is the server's half of each.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullServer;

const REPORT: SecurityReport = SecurityReport { kind: 1, level: 0, flags: 0, expires: 0 };

impl PacketSecurity for NullClient {
    fn index(&self) -> u8 {
        0
    }
    fn protects(&self) -> bool {
        false
    }
    fn seal(&self, _: &PacketContext, _: &mut Vec<u8>) -> Result<u16, SecurityError> {
        Ok(0)
    }
    fn open(&self, _: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        Ok(payload)
    }
    fn report(&self) -> SecurityReport {
        REPORT
    }
}

impl ClientSecurity for NullClient {
    /// A null server never challenges, so a challenge comes from another program.
    fn respond(&mut self, _: &Challenge<'_>) -> Result<Response, SecurityError> {
        Err(SecurityError { code: crate::error::code::PROTOCOL_ERROR })
    }
}

impl PacketSecurity for NullServer {
    fn index(&self) -> u8 {
        0
    }
    fn protects(&self) -> bool {
        false
    }
    fn seal(&self, _: &PacketContext, _: &mut Vec<u8>) -> Result<u16, SecurityError> {
        Ok(0)
    }
    fn open(&self, _: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        Ok(payload)
    }
    fn report(&self) -> SecurityReport {
        REPORT
    }
}

impl ServerSession for NullServer {
    fn is_authenticated(&self, _: Instant) -> bool {
        true
    }
    fn challenge(&mut self, _: Instant, _: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        Vec::new()
    }
    fn verify(&mut self, _: &Proof<'_>) -> Result<Verified, SecurityError> {
        Ok(Verified::default())
    }
}

impl ServerSecurity for NullServer {
    fn index(&self) -> u8 {
        0
    }
    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(NullServer)
    }
}
