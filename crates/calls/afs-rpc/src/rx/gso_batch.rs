//! GSO batch: datagrams of equal size to one peer, which the kernel can send in one system call.

use afs_rx::Transmit;

/// Most datagrams in one batch: the kernel's limit for segmentation offload.
const DATAGRAMS_MAX: usize = 64;
/// Most bytes in one batch: the largest UDP payload over IPv4.
const BYTES_MAX: usize = 65507;
/// Largest datagram that is copied to join an earlier one. Larger ones come in batches from the endpoint already.
const JOINED_MAX: usize = 1500;

/// One or more datagrams, ready to be sent.
#[derive(Default)]
pub(super) struct GsoBatch {
    transmit: Option<Transmit>,
    datagrams: usize,
    pub(super) buffer: Vec<u8>,
}

/// The batch with index `used`, to be filled, and the one before it.
pub(super) fn next_batch(
    batches: &mut [GsoBatch],
    used: usize,
) -> Option<(&mut GsoBatch, Option<&mut GsoBatch>)> {
    let (before, rest) = batches.split_at_mut_checked(used)?;
    Some((rest.first_mut()?, before.last_mut()))
}

impl GsoBatch {
    /// Begins a batch with the contents of the buffer.
    pub(super) fn start(&mut self, transmit: Transmit) {
        self.datagrams = transmit.segment_size.map_or(1, |size| transmit.len.div_ceil(size.max(1)));
        self.transmit = Some(transmit);
    }

    /// Appends a single datagram to the same peer, if it fits in size: all datagrams of a batch are equally long,
    /// except the last, which may be shorter.
    pub(super) fn join(&mut self, next: &Transmit, data: &[u8]) -> bool {
        let Some(batch) = &mut self.transmit else { return false };
        let size = batch.segment_size.unwrap_or(batch.len);
        let fits = next.segment_size.is_none()
            && next.to == batch.to
            && next.len <= size
            && size <= JOINED_MAX
            && batch.len == size * self.datagrams
            && self.datagrams < DATAGRAMS_MAX
            && batch.len + next.len <= BYTES_MAX;
        let Some(data) = data.get(..next.len).filter(|_| fits) else { return false };
        self.buffer.truncate(batch.len);
        self.buffer.extend_from_slice(data);
        batch.segment_size = Some(size);
        batch.len += next.len;
        self.datagrams += 1;
        true
    }

    /// Empties the batch.
    pub(super) fn clear(&mut self) {
        self.transmit = None;
    }

    pub(super) fn send(&self, send: &mut impl FnMut(&Transmit, &[u8])) {
        if let Some(transmit) = &self.transmit {
            send(transmit, self.buffer.get(..transmit.len).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(port: u16, len: usize) -> (Transmit, Vec<u8>) {
        let to = ([127, 0, 0, 1], port).into();
        (Transmit { to, len, segment_size: None }, vec![u8::try_from(len).unwrap(); len])
    }

    fn batch_of(port: u16, lens: &[usize]) -> (GsoBatch, Vec<bool>) {
        let mut batch = GsoBatch::default();
        let mut joined = Vec::new();
        for (index, len) in lens.iter().enumerate() {
            let (transmit, data) = single(port, *len);
            if index == 0 {
                batch.buffer = data;
                batch.start(transmit);
            } else {
                joined.push(batch.join(&transmit, &data));
            }
        }
        (batch, joined)
    }

    #[test]
    fn equal_ones_join_and_a_shorter_one_ends_the_train() {
        let (batch, joined) = batch_of(1, &[60, 60, 40, 40, 60]);
        assert_eq!(joined, [true, true, false, false]);
        let mut sent = Vec::new();
        batch.send(&mut |t: &Transmit, data: &[u8]| sent.push((t.segment_size, data.to_vec())));
        assert_eq!(sent, [(Some(60), [vec![60; 120], vec![40; 40]].concat())]);
    }

    #[test]
    fn longer_ones_and_other_peers_travel_by_themselves() {
        assert_eq!(batch_of(1, &[40, 60]).1, [false]);
        let (mut batch, _) = batch_of(1, &[40]);
        let (other, data) = single(2, 40);
        assert!(!batch.join(&other, &data));
    }

    #[test]
    fn a_train_is_no_longer_than_the_kernel_allows() {
        let joined = batch_of(1, &[10; 70]).1;
        assert_eq!(joined.iter().filter(|joined| **joined).count(), DATAGRAMS_MAX - 1);
    }
}
