//! XDR helpers for counted opaque data, and the size limit of tokens.

use afs_wire::xdr::Encode;

/// Appends a counted opaque with its padding.
pub(super) fn put_opaque(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u32).encode(out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(&[0; 3][..bytes.len().wrapping_neg() & 3]);
}

/// Longest token, in bytes, so that it fits in a RESPONSE.
pub(super) const TOKEN_MAX: usize = 12 << 10;
