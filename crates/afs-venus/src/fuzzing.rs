//! What the fuzz target runs: any bytes, which must be read without a panic.

/// The index of a disk cache. Of each record the length and the checksum are made right where its first byte says so.
pub fn cache_index(bytes: &[u8]) {
    crate::cache::read_any_index(bytes);
}
