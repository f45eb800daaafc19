//! The decoders of a service's calls as a table, and the check that decoding, encoding and decoding again changes nothing.

use crate::xdr::{Decode, Encode, Reader};
use std::fmt::Debug;

/// The decoders of one call's arguments and results.
pub(crate) type Decoders = (fn(&[u8]), fn(&[u8]));

/// Decodes; if that succeeds, encoding and decoding again must give an equal value.
pub(crate) fn survives<T: Encode + Decode + Debug>(bytes: &[u8]) {
    if let Ok(value) = T::decode(&mut Reader::new(bytes)) {
        let encoded = value.to_bytes();
        let again = T::from_bytes(&encoded).map(|again| again.to_bytes());
        assert_eq!(again.as_ref(), Ok(&encoded), "{value:?}");
    }
}
