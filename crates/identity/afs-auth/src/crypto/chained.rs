//! Interleaved encryption and checksum.

use aes::cipher::consts::U16;
use aes::cipher::{Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockSizeUser};

use super::mac::HmacKey;

/// Division of the text into pieces for the checksum.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    /// Bytes of the first piece, whole blocks.
    pub(super) first: usize,
    /// Bytes of every other one, whole blocks.
    pub(super) step: usize,
    /// Whether the checksum covers the cipher text, or the plain text.
    pub(super) of_cipher_text: bool,
}

/// CBC from a zero vector and a checksum, piece by piece in turn. Each chain mostly waits for its own last step; an
/// out-of-order processor runs both at once, as long as neither depends on the other. So the checksum of cipher text
/// is one piece late. This is half as fast again as one after the other.
pub(super) struct Chained<'a> {
    /// Whole blocks; encrypted in place.
    pub(super) text: &'a mut [u8],
    pub(super) mac: &'a mut HmacKey,
    pub(super) pieces: Pieces,
    /// Becomes the last cipher block.
    pub(super) last: &'a mut Block<Self>,
}

impl BlockSizeUser for Chained<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Chained<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, cipher: &B) {
        let Pieces { first, step, of_cipher_text } = self.pieces;
        let (head, tail) = self.text.split_at_mut(first.min(self.text.len()));
        let (mut before, mut done) = (Block::<Self>::default(), &[][..]);
        for piece in std::iter::once(head).chain(tail.chunks_mut(step)) {
            self.mac.update(if of_cipher_text { done } else { piece });
            encrypt(cipher, &mut before, piece);
            done = piece;
        }
        if of_cipher_text {
            self.mac.update(done);
        }
        *self.last = before;
    }
}

#[inline(always)]
fn encrypt<B: BlockCipherEncBackend<BlockSize = U16>>(cipher: &B, before: &mut Block<B>, piece: &mut [u8]) {
    let (blocks, _) = Block::<B>::slice_as_chunks_mut(piece);
    let mut chain = *before;
    for block in blocks {
        chain.iter_mut().zip(block.iter()).for_each(|(byte, plain)| *byte ^= plain);
        cipher.encrypt_block((&mut chain).into());
        *block = chain;
    }
    *before = chain;
}
