//! Files, directories and links in memory, by number.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo, TimeOrNow};

/// What a number names.
pub(crate) struct Node {
    pub(crate) attributes: FileAttr,
    /// A file's bytes, or a link's target.
    pub(crate) data: Vec<u8>,
    pub(crate) names: BTreeMap<OsString, u64>,
}

/// All nodes, and the next number.
pub(crate) struct Tree {
    nodes: HashMap<u64, Node>,
    next: u64,
}

impl Default for Tree {
    fn default() -> Tree {
        let root = Node::new(INodeNo::ROOT.0, FileType::Directory, 0o777, (0, 0));
        Tree { nodes: HashMap::from([(INodeNo::ROOT.0, root)]), next: INodeNo::ROOT.0 + 1 }
    }
}

impl Node {
    fn new(number: u64, kind: FileType, mode: u32, (uid, gid): (u32, u32)) -> Node {
        let now = SystemTime::now();
        let links = if kind == FileType::Directory { 2 } else { 1 };
        let attributes = FileAttr {
            ino: INodeNo(number),
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind,
            perm: (mode & 0o7777) as u16,
            nlink: links,
            uid,
            gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        };
        Node { attributes, data: Vec::new(), names: BTreeMap::new() }
    }

    /// A file's length, with zeros where it grows.
    pub(crate) fn set_len(&mut self, bytes: u64) {
        self.data.resize(usize::try_from(bytes).unwrap_or(usize::MAX), 0);
        self.attributes.size = bytes;
        self.attributes.blocks = bytes.div_ceil(512);
        self.attributes.mtime = SystemTime::now();
    }

    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) -> &mut Node {
        let end = offset + data.len();
        if self.data.len() < end {
            self.set_len(end as u64);
        }
        self.data[offset..end].copy_from_slice(data);
        self.attributes.mtime = SystemTime::now();
        self
    }

    /// What `setattr` asks for.
    pub(crate) fn change(
        &mut self,
        mode: Option<u32>,
        owner: (Option<u32>, Option<u32>),
        bytes: Option<u64>,
        mtime: Option<TimeOrNow>,
    ) -> &mut Node {
        if let Some(bytes) = bytes {
            self.set_len(bytes);
        }
        let there = &mut self.attributes;
        there.perm = mode.map_or(there.perm, |mode| (mode & 0o7777) as u16);
        (there.uid, there.gid) = (owner.0.unwrap_or(there.uid), owner.1.unwrap_or(there.gid));
        there.mtime = match mtime {
            Some(TimeOrNow::SpecificTime(time)) => time,
            Some(TimeOrNow::Now) => SystemTime::now(),
            None => there.mtime,
        };
        self
    }
}

impl Tree {
    pub(crate) fn node(&mut self, number: INodeNo) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number.0).ok_or(Errno::ENOENT)
    }

    pub(crate) fn named(&mut self, parent: INodeNo, name: &OsStr) -> Result<&mut Node, Errno> {
        let number = *self.node(parent)?.names.get(name).ok_or(Errno::ENOENT)?;
        self.node(INodeNo(number))
    }

    pub(crate) fn make(
        &mut self,
        (parent, name): (INodeNo, &OsStr),
        (kind, mode): (FileType, u32),
        owner: (u32, u32),
    ) -> Result<&mut Node, Errno> {
        let number = self.next;
        let names = &mut self.node(parent)?.names;
        if names.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        names.insert(name.to_owned(), number);
        self.next += 1;
        Ok(self.nodes.entry(number).or_insert(Node::new(number, kind, mode, owner)))
    }

    pub(crate) fn link(
        &mut self,
        number: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<&mut Node, Errno> {
        self.node(parent)?.names.insert(name.to_owned(), number.0);
        let node = self.node(number)?;
        node.attributes.nlink += 1;
        Ok(node)
    }

    /// Removes a name; a directory must be empty.
    pub(crate) fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let node = self.named(parent, name)?;
        if !node.names.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        node.attributes.nlink -= 1;
        let (number, directory) = (node.attributes.ino.0, node.attributes.kind == FileType::Directory);
        if directory || node.attributes.nlink == 0 {
            self.nodes.remove(&number);
        }
        self.node(parent)?.names.remove(name);
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr)) -> Result<(), Errno> {
        let number = self.named(from.0, from.1)?.attributes.ino;
        if self.named(to.0, to.1).is_ok_and(|there| there.attributes.ino != number) {
            self.remove(to.0, to.1)?;
        }
        self.node(from.0)?.names.remove(from.1);
        self.node(to.0)?.names.insert(to.1.to_owned(), number.0);
        Ok(())
    }
}
