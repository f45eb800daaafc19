//! Arrays: counted and bounded, and of fixed length.

use super::{Decode, DecodeError, Encode, Reader, TooLong};
use std::ops::Deref;

/// A counted array of at most `MAX` elements: `T<MAX>` in the protocol's notation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoundedVec<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> BoundedVec<T, MAX> {
    /// The bound.
    pub const MAX: usize = MAX;

    /// An empty array.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an element.
    ///
    /// # Errors
    /// [`TooLong`] when there are `MAX` elements already.
    pub fn push(&mut self, value: T) -> Result<(), TooLong> {
        if self.0.len() >= MAX {
            return Err(TooLong { limit: MAX, got: self.0.len() + 1 });
        }
        self.0.push(value);
        Ok(())
    }

    /// The elements as a plain vector.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }

    /// The first `MAX` elements of an iterator; the rest of it is not consumed.
    pub fn first_of(values: impl IntoIterator<Item = T>) -> Self {
        Self(values.into_iter().take(MAX).collect())
    }
}

impl<T, const MAX: usize> Default for BoundedVec<T, MAX> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const MAX: usize> Deref for BoundedVec<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const MAX: usize> TryFrom<Vec<T>> for BoundedVec<T, MAX> {
    type Error = TooLong;

    fn try_from(values: Vec<T>) -> Result<Self, TooLong> {
        match values.len() {
            got if got > MAX => Err(TooLong { limit: MAX, got }),
            _ => Ok(Self(values)),
        }
    }
}

impl<T, const MAX: usize> IntoIterator for BoundedVec<T, MAX> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T, const MAX: usize> IntoIterator for &'a BoundedVec<T, MAX> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Encode, const MAX: usize> Encode for BoundedVec<T, MAX> {
    fn encode(&self, out: &mut Vec<u8>) {
        // The bound keeps the length far below 2^32.
        (self.0.len() as u32).encode(out);
        for value in &self.0 {
            value.encode(out);
        }
    }
}

impl<T: Decode, const MAX: usize> Decode for BoundedVec<T, MAX> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = r.count(MAX)?;
        // Every element takes at least a word, so a count that the bytes cannot hold is refused at once; and the
        // reserved memory stays within the size of the bytes, however much larger than a word an element is in
        // memory.
        let needed = count.saturating_mul(4);
        if needed > r.remaining() {
            return Err(DecodeError::Short { needed, left: r.remaining() });
        }
        let mut values = Vec::with_capacity(count.min(r.remaining() / size_of::<T>().max(1) + 1));
        for _ in 0..count {
            values.push(T::decode(r)?);
        }
        Ok(Self(values))
    }
}

/// `T[n]`: the elements without a count.
impl<T: Encode, const N: usize> Encode for [T; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        for value in self {
            value.encode(out);
        }
    }
}

impl<T: Decode + Copy + Default, const N: usize> Decode for [T; N] {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut values = [T::default(); N];
        for value in &mut values {
            *value = T::decode(r)?;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_over_the_bound_is_refused_before_anything_is_reserved() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1];
        let refused = BoundedVec::<u32, 50>::from_bytes(&bytes).unwrap_err();
        assert_eq!(refused, DecodeError::TooLong { limit: 50, got: 0xffff_ffff });
        let refused = BoundedVec::<u32, { usize::MAX }>::from_bytes(&bytes).unwrap_err();
        assert!(matches!(refused, DecodeError::Short { .. }));
    }

    #[test]
    fn push_stops_at_the_bound() {
        let mut array = BoundedVec::<u32, 1>::new();
        array.push(7).unwrap();
        assert_eq!(array.push(8), Err(TooLong { limit: 1, got: 2 }));
        assert_eq!(array.to_bytes(), [0, 0, 0, 1, 0, 0, 0, 7]);
    }
}
