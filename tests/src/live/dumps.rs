//! Contents of a dump, for comparison with another dump.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use afs_wire::dump::{DumpReader, Event, VnodeEnd, VnodeFields};
use afs_wire::ids::{Uniquifier, VnodeId};

/// A vnode: its uniquifier, its fields in the dump (`None` if it has none), and a checksum of its data.
pub type DumpedVnode = (Uniquifier, Option<VnodeFields>, u64);

/// All vnodes of a dump.
///
/// # Panics
/// If the file cannot be read or is not a complete dump.
#[must_use]
pub fn vnodes(file: &Path) -> BTreeMap<u32, DumpedVnode> {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (mut reader, mut rest, mut all) = (DumpReader::default(), bytes.as_slice(), BTreeMap::new());
    let mut present = (VnodeId(0), Uniquifier(0), DefaultHasher::new());
    while let Some(event) =
        reader.next(&mut rest).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    {
        match event {
            Event::Vnode(vnode, unique) => present = (vnode, unique, DefaultHasher::new()),
            Event::Data(data) => present.2.write(data),
            Event::VnodeEnd(end) => {
                let fields = match end {
                    VnodeEnd::Full(fields) => Some(*fields),
                    VnodeEnd::Bare => None,
                };
                all.insert(present.0.0, (present.1, fields, present.2.finish()));
            }
            _ => {}
        }
    }
    reader.finish().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    all
}

/// Compares the vnodes of two dumps.
///
/// # Panics
/// If they differ; the message has the first difference.
pub fn assert_alike(what: &str, one: &BTreeMap<u32, DumpedVnode>, other: &BTreeMap<u32, DumpedVnode>) {
    for (vnode, here) in one {
        let there = other.get(vnode);
        assert!(there == Some(here), "{what}: vnode {vnode} is\n{here:?} and\n{there:?}");
    }
    assert_eq!(one.len(), other.len(), "{what}: there are more vnodes in the second");
}
