//! Fuzz targets: arbitrary bytes must be read without a panic.

/// The index of a disk cache. The first byte of each record determines whether its length and checksum are made valid.
pub fn cache_index(bytes: &[u8]) {
    crate::cache::read_any_index(bytes);
}

/// A list of pins.
pub fn pin_list(bytes: &[u8]) {
    crate::cache::read_any_pins(bytes);
}

/// A record of unsaved data.
pub fn unsaved_record(bytes: &[u8]) {
    crate::cache::read_any_unsaved(bytes);
}
