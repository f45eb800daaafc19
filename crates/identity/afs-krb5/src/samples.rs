//! Recorded data of MIT Kerberos 1.20, for tests and as seeds for fuzzing. The realm no longer exists, and its keys are
//! worthless.

/// The cache of [`ALICE`] after `kinit` and a request for the ticket of [`AFS`].
pub const CACHE: &[u8] = include_bytes!("samples/alice.ccache");
/// A TGS-REP for [`AFS`] to the holder of the tickets of [`CACHE`], with the nonce `NONCE`.
pub const REPLY: &[u8] = include_bytes!("samples/afs.tgs-rep");
/// A KRB-ERROR: the realm does not know the service.
pub const REFUSAL: &[u8] = include_bytes!("samples/unknown.krb-error");
/// The nonce of [`REPLY`].
#[cfg(test)]
pub const NONCE: u32 = 0x0383_8383;
/// Time at which the tickets of [`CACHE`] were issued, in Unix seconds.
pub const ISSUED: u64 = 1_795_264_776;
/// The user.
#[cfg(test)]
pub const ALICE: &str = "alice@KERB.TEST";
/// The service that gives tickets.
pub const TICKET_GRANTING: &str = "krbtgt/KERB.TEST@KERB.TEST";
/// The cell's service.
pub const AFS: &str = "afs/kerb.test@KERB.TEST";
