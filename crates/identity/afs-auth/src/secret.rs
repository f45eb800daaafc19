//! Key material that is wiped on drop and never shown.

use std::fmt;

use zeroize::Zeroizing;

/// Key material. Wiped when dropped, never shown, compared in constant time.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes themselves, for the cipher that needs them.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let differing = |(a, b): (&u8, &u8)| a ^ b;
        let differences = self.0.iter().zip(other.0.iter()).map(differing).fold(0, |all, one| all | one);
        self.0.len() == other.0.len() && std::hint::black_box(differences) == 0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}
