//! Decoder of one page of redb's trees: a leaf with rows, or a branch with links to pages.

use std::iter;

use bytes::Bytes;

use crate::pages::Link;

/// Lengths of the keys and values of a tree, where all have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) key: Option<usize>,
    pub(crate) value: Option<usize>,
}

/// Contents of a page.
#[derive(Debug)]
pub(crate) enum Node {
    Leaf(Vec<(Bytes, Bytes)>),
    Branch(Branch),
}

/// Pages below a page, and the keys between them.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) children: Vec<Link>,
    /// The last key that may be in each child but the last.
    pub(crate) keys: Vec<Bytes>,
}

impl Node {
    /// Decodes a page; also the number of bytes that its checksum covers. `None` if the bytes are no page. Reserves no more memory than
    /// the page has bytes for.
    pub(crate) fn decode(page: &Bytes, shape: Shape) -> Option<(Self, usize)> {
        let count = count(page)?;
        match *page.first()? {
            LEAF => leaf(page, shape, count),
            BRANCH => branch(page, shape, count),
            _ => None,
        }
    }
}

impl Branch {
    /// The links that a branch may have had of which some bytes are not as they were. Nothing for a page that says that it is a leaf.
    pub(crate) fn links_of_damaged(page: &Bytes) -> impl Iterator<Item = Vec<Link>> {
        let is_leaf = page.first() == Some(&LEAF);
        let counts = counts_of_damaged(page).filter(move |_| !is_leaf);
        counts.filter_map(|count| children(page, count))
    }
}

/// The rows that a leaf may have had of which some bytes are not as they were. Nothing for a page that says that it is a branch.
pub(crate) fn rows_of_damaged(page: &Bytes, shape: Shape) -> impl Iterator<Item = (Bytes, Bytes)> {
    let is_branch = page.first() == Some(&BRANCH);
    let counts = counts_of_damaged(page).filter(move |count| !is_branch && *count > 0);
    let nodes = counts.filter_map(move |count| leaf(page, shape, count));
    nodes.flat_map(|(node, _)| match node {
        Node::Leaf(rows) => rows,
        Node::Branch(_) => Vec::new(),
    })
}

/// The number that a page has, and those of which one bit differs.
fn counts_of_damaged(page: &Bytes) -> impl Iterator<Item = usize> {
    let said = array(page, 2).map(u16::from_le_bytes);
    let counts = said
        .into_iter()
        .flat_map(|said| iter::once(said).chain((0..u16::BITS).map(move |bit| said ^ (1 << bit))));
    counts.map(usize::from)
}

fn leaf(page: &Bytes, shape: Shape, pairs: usize) -> Option<(Node, usize)> {
    let ends_of_keys = HEAD_LEN;
    let ends_of_values = ends_of_keys + if shape.key.is_none() { 4 * pairs } else { 0 };
    let start = ends_of_values + if shape.value.is_none() { 4 * pairs } else { 0 };
    let keys = parts(page, pairs, shape.key, ends_of_keys, start)?;
    let after_keys = keys.1;
    let (values, end) = parts(page, pairs, shape.value, ends_of_values, after_keys)?;
    Some((Node::Leaf(keys.0.into_iter().zip(values).collect()), end))
}

fn branch(page: &Bytes, shape: Shape, count: usize) -> Option<(Node, usize)> {
    let children = children(page, count)?;
    let ends = BRANCH_HEAD_LEN + LINK_LEN * (count + 1);
    let start = ends + if shape.key.is_none() { 4 * count } else { 0 };
    let (keys, end) = parts(page, count, shape.key, ends, start)?;
    Some((Node::Branch(Branch { children, keys }), end))
}

fn children(page: &Bytes, keys: usize) -> Option<Vec<Link>> {
    let (count, sums) = (keys + 1, BRANCH_HEAD_LEN);
    let numbers = sums + 16 * count;
    page.get(..numbers + 8 * count)?;
    let link = |at: usize| {
        let sum = u128::from_le_bytes(array(page, sums + 16 * at)?);
        Some(Link { number: u64::from_le_bytes(array(page, numbers + 8 * at)?), sum })
    };
    (0..count).map(link).collect()
}

/// Consecutive parts of a page from `start` on, each of `fixed` bytes, or up to the offsets that are listed at `ends`. Also the end of the last.
fn parts(
    page: &Bytes,
    count: usize,
    fixed: Option<usize>,
    ends: usize,
    start: usize,
) -> Option<(Vec<Bytes>, usize)> {
    let (mut out, mut from) = (Vec::with_capacity(count.min(page.len() / 4)), start);
    for at in 0..count {
        let to = match fixed {
            Some(len) => from.checked_add(len)?,
            None => u32::from_le_bytes(array(page, ends + 4 * at)?) as usize,
        };
        if to < from || to > page.len() {
            return None;
        }
        out.push(page.slice(from..to));
        from = to;
    }
    Some((out, from))
}

/// Number of pairs of a leaf, or of keys of a branch. `None` for 0, which no page has.
fn count(page: &[u8]) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(array(page, 2)?))).filter(|count| *count > 0)
}

/// Bytes at an offset.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

const LEAF: u8 = 1;
const BRANCH: u8 = 2;
const HEAD_LEN: usize = 4;
const BRANCH_HEAD_LEN: usize = 8;
/// A checksum and a page's number.
const LINK_LEN: usize = 24;
