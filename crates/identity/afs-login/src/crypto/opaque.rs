//! Configuration of OPAQUE, the passphrase protocol (RFC 9807).

use argon2::{Algorithm, Argon2, Params, Version};
use opaque_ke::errors::InternalError;
use opaque_ke::generic_array::{ArrayLength, GenericArray};
use opaque_ke::ksf::Ksf;
use opaque_ke::{CipherSuite, Ristretto255, TripleDh};
use sha2::Sha512;

/// OPAQUE-3DH over ristretto255 with SHA-512.
pub(crate) struct Suite;

impl CipherSuite for Suite {
    type OprfCs = Ristretto255;
    type KeyExchange = TripleDh<Ristretto255, Sha512>;
    type Ksf = Stretching;
}

/// Key stretching of passphrases: Argon2id with 64 MiB and three passes, RFC 9106's second recommendation but for its
/// lanes, which help only a machine with idle processors. The client does the work, never the server.
#[derive(Default)]
pub(crate) struct Stretching(());

/// The stretching of the protocol's version 1.
pub(crate) fn stretching() -> Stretching {
    Stretching(())
}

const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
const LANES: u32 = 1;
/// OPAQUE salts the stretched value with the server's secret; Argon2's own salt is all zero, as in RFC 9807.
const SALT: [u8; argon2::RECOMMENDED_SALT_LEN] = [0; argon2::RECOMMENDED_SALT_LEN];

impl Ksf for Stretching {
    fn hash<L: ArrayLength<u8>>(
        &self,
        input: GenericArray<u8, L>,
    ) -> Result<GenericArray<u8, L>, InternalError> {
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|_| InternalError::KsfError)?;
        let mut output = GenericArray::default();
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(&input, &SALT, &mut output)
            .map_err(|_| InternalError::KsfError)?;
        Ok(output)
    }
}
