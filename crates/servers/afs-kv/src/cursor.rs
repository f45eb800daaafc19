//! Merging iterator over several layers, in which the newest layer takes precedence.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};

use bytes::Bytes;

use crate::error::KvError;

/// One row: key (without the table) and value.
pub type Row = (Bytes, Bytes);

/// A key with its value in one layer; `None` is a deletion.
pub(crate) type Entry = (Bytes, Option<Bytes>);

/// Bounds of a range of keys.
pub(crate) type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// One layer of an ordered scan.
pub(crate) trait Layer {
    /// Appends up to `limit` entries from the near end of the span, in its direction. Returns the key after which to
    /// continue, or `None` when the span is exhausted.
    fn fill(&self, span: &Span, limit: usize, out: &mut VecDeque<Entry>) -> Result<Option<Bytes>, KvError>;
}

/// The part of the key space still to be read, and the direction.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) lower: Bound<Bytes>,
    pub(crate) upper: Bound<Bytes>,
    pub(crate) reverse: bool,
}

impl Span {
    /// The span of `range` within the table of this number.
    pub(crate) fn within(table: u8, range: &impl RangeBounds<[u8]>, reverse: bool) -> Self {
        let lower = match range.start_bound() {
            Bound::Included(key) => Bound::Included(prefixed(table, key)),
            Bound::Excluded(key) => Bound::Excluded(prefixed(table, key)),
            Bound::Unbounded => Bound::Included(prefixed(table, &[])),
        };
        let upper = match range.end_bound() {
            Bound::Included(key) => Bound::Included(prefixed(table, key)),
            Bound::Excluded(key) => Bound::Excluded(prefixed(table, key)),
            Bound::Unbounded => Bound::Excluded(prefixed(table + 1, &[])),
        };
        Self { lower, upper, reverse }
    }

    /// The bounds as slices, or `None` if the span is empty.
    pub(crate) fn bounds(&self) -> Option<Bounds<'_>> {
        let (lower, upper) = (slice(&self.lower), slice(&self.upper));
        let empty = match (lower, upper) {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
                low >= high
            }
            _ => false,
        };
        (!empty).then_some((lower, upper))
    }

    fn resume_after(&mut self, key: Bytes) {
        if self.reverse {
            self.upper = Bound::Excluded(key);
        } else {
            self.lower = Bound::Excluded(key);
        }
    }
}

impl Layer for BTreeMap<Bytes, Option<Bytes>> {
    fn fill(&self, span: &Span, limit: usize, out: &mut VecDeque<Entry>) -> Result<Option<Bytes>, KvError> {
        let Some(bounds) = span.bounds() else { return Ok(None) };
        let range = self.range::<[u8], _>(bounds);
        let before = out.len();
        let entry = |(key, value): (&Bytes, &Option<Bytes>)| (key.clone(), value.clone());
        if span.reverse {
            out.extend(range.rev().take(limit).map(entry));
        } else {
            out.extend(range.take(limit).map(entry));
        }
        Ok(if out.len() - before < limit { None } else { out.back().map(|(key, _)| key.clone()) })
    }
}

/// Read position in one layer.
struct Cursor<'a> {
    layer: Box<dyn Layer + 'a>,
    span: Span,
    read: VecDeque<Entry>,
    exhausted: bool,
    /// Grows with use: most scans read one row.
    limit: usize,
}

impl Cursor<'_> {
    fn peek(&mut self) -> Result<Option<&Bytes>, KvError> {
        while self.read.is_empty() && !self.exhausted {
            match self.layer.fill(&self.span, self.limit, &mut self.read)? {
                Some(key) => self.span.resume_after(key),
                None => self.exhausted = true,
            }
            self.limit = (self.limit * 4).min(FILL_MAX);
        }
        Ok(self.read.front().map(|(key, _)| key))
    }
}

/// An ordered scan of one table. After an error the scan is over.
pub struct Range<'a> {
    /// Newest first.
    cursors: Vec<Cursor<'a>>,
    reverse: bool,
    failed: bool,
}

impl<'a> Range<'a> {
    pub(crate) fn new(layers: Vec<Box<dyn Layer + 'a>>, span: &Span) -> Self {
        let cursors = layers
            .into_iter()
            .map(|layer| Cursor {
                layer,
                span: span.clone(),
                read: VecDeque::new(),
                exhausted: false,
                limit: FILL_MIN,
            })
            .collect();
        Self { cursors, reverse: span.reverse, failed: false }
    }

    fn step(&mut self) -> Result<Option<Entry>, KvError> {
        let mut nearest: Option<Bytes> = None;
        for cursor in &mut self.cursors {
            if let Some(key) = cursor.peek()? {
                let nearer =
                    nearest.as_ref().is_none_or(|best| if self.reverse { key > best } else { key < best });
                if nearer {
                    nearest = Some(key.clone());
                }
            }
        }
        let Some(key) = nearest else { return Ok(None) };
        let mut newest = None;
        for cursor in &mut self.cursors {
            if cursor.read.front().is_some_and(|(at, _)| *at == key) {
                let entry = cursor.read.pop_front();
                newest = newest.or(entry);
            }
        }
        Ok(newest)
    }
}

impl Iterator for Range<'_> {
    type Item = Result<Row, KvError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.step() {
                Ok(Some((key, Some(value)))) => return Some(Ok((key.slice(1..), value))),
                Ok(Some((_, None))) => {}
                Ok(None) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

fn prefixed(table: u8, key: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(1 + key.len());
    out.push(table);
    out.extend_from_slice(key);
    out.into()
}

fn slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

const FILL_MIN: usize = 2;
const FILL_MAX: usize = 64;
