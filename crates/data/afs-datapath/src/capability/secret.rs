//! The secret of a capability.

use std::fmt;

use zeroize::Zeroizing;

/// The secret of a capability: who has it may present the capability. Wiped when dropped, never shown.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; Self::LEN]>);

impl Secret {
    /// Bytes of a secret.
    pub const LEN: usize = 32;

    /// Takes the bytes, as a reply of the file server brought them.
    #[must_use]
    pub fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for the reply that carries them to the holder.
    #[must_use]
    pub fn expose(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
