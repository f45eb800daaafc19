//! Pseudo-header that binds a sealed packet to its position: `docs/protocol/rxgk.md` "6. Packets (DATA only)".

use afs_rx::PacketContext;

/// Bytes of a pseudo-header.
pub(super) const LEN: usize = 24;

/// Bytes of a pseudo-header before the length of the data.
pub(super) const PLACE_LEN: usize = 20;

/// The pseudo-header of a packet with this much data.
pub(super) fn pseudo_header(packet: &PacketContext, data_len: usize) -> [u8; LEN] {
    let words = [
        packet.epoch.0,
        packet.cid_and_channel,
        packet.call,
        packet.seq,
        u32::from(packet.security_index),
        data_len as u32,
    ];
    let mut out = [0; LEN];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_be_bytes();
    }
    out
}
