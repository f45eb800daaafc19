//! Model of a volume: everything in maps, without any code under test.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_volume::{Volume, VolumeError, blocks};
use afs_wire::dir::{self, Blob};
use afs_wire::fs::FileKind;
use afs_wire::ids::{Fid, VnodeId};

use super::{VOLUME, read_bytes};

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub kind: FileKind,
    pub data: Vec<u8>,
    pub version: u64,
    pub links: u32,
    pub parent: Fid,
    pub names: BTreeMap<Vec<u8>, Fid>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub nodes: BTreeMap<Fid, Node>,
}

type Answer<T> = Result<T, &'static str>;

impl Model {
    pub fn new() -> Self {
        let mut root = node(FileKind::Directory, super::ROOT);
        root.version = 1;
        Self { nodes: BTreeMap::from([(super::ROOT, root)]) }
    }

    pub fn of_kind(&self, kind: FileKind) -> Vec<Fid> {
        self.nodes.iter().filter(|(_, node)| node.kind == kind).map(|(fid, _)| *fid).collect()
    }

    fn directory(&mut self, fid: Fid) -> Answer<&mut Node> {
        let node = self.nodes.get_mut(&fid).ok_or("NoVnode")?;
        if node.kind == FileKind::Directory { Ok(node) } else { Err("NotDirectory") }
    }

    /// Whether a create would succeed; the store chooses the object's fid.
    pub fn may_create(&mut self, directory: Fid, name: &[u8]) -> Answer<()> {
        let directory = self.directory(directory)?;
        check_new(name)?;
        if directory.names.contains_key(name) || name == b"." || name == b".." {
            Err("Exists")
        } else {
            Ok(())
        }
    }

    pub fn create(&mut self, directory: Fid, name: &[u8], kind: FileKind, fid: Fid, data: &[u8]) {
        let parent = self.nodes.get_mut(&directory).unwrap();
        parent.names.insert(name.to_vec(), fid);
        parent.version += 1;
        parent.links += u32::from(kind == FileKind::Directory);
        let mut object = node(kind, directory);
        object.data = data.to_vec();
        assert!(self.nodes.insert(fid, object).is_none(), "{fid:?} is given out twice");
    }

    pub fn link(&mut self, directory: Fid, name: &[u8], existing: Fid) -> Answer<()> {
        self.directory(directory)?;
        check_new(name)?;
        if existing.is_directory() {
            return Err("IsDirectory");
        }
        let object = self.nodes.get(&existing).ok_or("NoVnode")?;
        if object.kind != FileKind::File {
            return Err("IsDirectory");
        }
        if object.parent != directory {
            return Err("CrossDevice");
        }
        self.may_create(directory, name)?;
        let parent = self.directory(directory)?;
        parent.names.insert(name.to_vec(), existing);
        parent.version += 1;
        self.nodes.get_mut(&existing).unwrap().links += 1;
        Ok(())
    }

    pub fn remove(&mut self, directory: Fid, name: &[u8], kind: FileKind) -> Answer<()> {
        let parent = self.directory(directory)?;
        if name.is_empty() || name == b"." || name == b".." {
            return Err("Invalid");
        }
        let fid = *parent.names.get(name).ok_or("NotFound")?;
        let is_directory = self.nodes[&fid].kind == FileKind::Directory;
        match (kind == FileKind::Directory, is_directory) {
            (true, false) => return Err("NotDirectory"),
            (false, true) => return Err("IsDirectory"),
            (true, true) if !self.nodes[&fid].names.is_empty() => return Err("NotEmpty"),
            _ => {}
        }
        let parent = self.directory(directory)?;
        parent.names.remove(name);
        parent.version += 1;
        parent.links -= u32::from(is_directory);
        self.drop_name(fid);
        Ok(())
    }

    fn drop_name(&mut self, fid: Fid) {
        let object = self.nodes.get_mut(&fid).unwrap();
        object.links -= 1;
        if object.links == 0 || object.kind == FileKind::Directory {
            self.nodes.remove(&fid);
        }
    }

    pub fn rename(&mut self, from: Fid, old: &[u8], to: Fid, new: &[u8]) -> Answer<()> {
        check_new(new)?;
        for name in [old, new] {
            if name.is_empty() || name == b"." || name == b".." {
                return Err("Invalid");
            }
        }
        self.directory(from)?;
        self.directory(to)?;
        let source = *self.nodes[&from].names.get(old).ok_or("NotFound")?;
        if source == from || source == to {
            return Err("Loop");
        }
        let object = self.nodes[&source].clone();
        let is_directory = object.kind == FileKind::Directory;
        if from != to && !is_directory && object.links != 1 {
            return Err("CrossDevice");
        }
        let replaced = self.nodes[&to].names.get(new).copied();
        if let Some(replaced) = replaced {
            if replaced == source || replaced == from || replaced == to {
                return Err("Invalid");
            }
            let target = &self.nodes[&replaced];
            match (is_directory, target.kind == FileKind::Directory) {
                (true, false) => return Err("NotDirectory"),
                (false, true) => return Err("IsDirectory"),
                (true, true) if !target.names.is_empty() => return Err("NotEmpty"),
                _ => {}
            }
        }
        if from != to && is_directory {
            let mut ancestor = to;
            while ancestor != super::ROOT {
                if ancestor == source {
                    return Err("Loop");
                }
                ancestor = self.nodes[&ancestor].parent;
            }
        }
        if let Some(replaced) = replaced {
            if self.nodes[&replaced].kind == FileKind::Directory {
                self.nodes.get_mut(&to).unwrap().links -= 1;
            }
            self.drop_name(replaced);
        }
        self.nodes.get_mut(&from).unwrap().names.remove(old);
        let parent = self.nodes.get_mut(&to).unwrap();
        parent.names.insert(new.to_vec(), source);
        parent.version += 1;
        if from != to {
            self.nodes.get_mut(&from).unwrap().version += 1;
            if is_directory {
                self.nodes.get_mut(&from).unwrap().links -= 1;
                self.nodes.get_mut(&to).unwrap().links += 1;
                self.nodes.get_mut(&source).unwrap().version += 1;
            }
        }
        self.nodes.get_mut(&source).unwrap().parent = to;
        Ok(())
    }

    pub fn store(&mut self, fid: Fid, position: usize, bytes: &[u8], file_length: usize) {
        let node = self.nodes.get_mut(&fid).unwrap();
        node.data.truncate(file_length);
        if node.data.len() < position + bytes.len() {
            node.data.resize(position + bytes.len(), 0);
        }
        node.data[position..position + bytes.len()].copy_from_slice(bytes);
        node.version += 1;
    }

    /// Compares everything.
    pub fn check(&self, volume: &Arc<Volume>) {
        let mut used = 0;
        for (fid, node) in &self.nodes {
            let record = volume.fetch(*fid).unwrap_or_else(|error| panic!("{fid:?}: {error}"));
            assert_eq!(record.kind, node.kind, "{fid:?}");
            assert_eq!(record.link_count, node.links, "links of {fid:?}");
            assert_eq!(record.data_version.0, node.version, "version of {fid:?}");
            assert_eq!(Fid::new(VOLUME, record.parent, record.parent_unique), node.parent, "{fid:?}");
            let data = read_bytes(volume, *fid, 0, u64::MAX).unwrap();
            assert_eq!(data.len() as u64, record.length);
            if node.kind == FileKind::Directory {
                check_directory(*fid, node, data);
            } else {
                assert!(data == node.data, "data of {fid:?}");
            }
            used += record.blocks();
            assert!(record.blocks() <= blocks(record.length), "holes count");
        }
        let header = volume.header();
        assert_eq!(header.file_count, self.nodes.len() as u64);
        assert_eq!(header.blocks_used, used);
        // Nothing else exists.
        let highest = self.nodes.keys().map(|fid| fid.vnode.0).max().unwrap_or(1);
        for vnode in 1..=highest + 4 {
            let known = self.nodes.keys().any(|fid| fid.vnode.0 == vnode);
            assert_eq!(volume.vnode(VnodeId(vnode)).unwrap().is_some(), known, "vnode {vnode}");
        }
    }
}

fn check_directory(fid: Fid, node: &Node, data: Vec<u8>) {
    let mut blob = Blob::from_bytes(data).unwrap();
    let summary = dir::check(&mut blob).unwrap();
    assert_eq!(summary.this, (fid.vnode, fid.unique));
    assert_eq!(summary.parent, (node.parent.vnode, node.parent.unique));
    let names: BTreeMap<_, _> = blob
        .entries(0)
        .filter(|entry| entry.name != b"." && entry.name != b"..")
        .map(|entry| (entry.name.to_vec(), Fid::new(VOLUME, entry.vnode, entry.unique)))
        .collect();
    assert_eq!(names, node.names, "names of {fid:?}");
}

fn node(kind: FileKind, parent: Fid) -> Node {
    let links = if kind == FileKind::Directory { 2 } else { 1 };
    Node { kind, data: Vec::new(), version: 0, links, parent, names: BTreeMap::new() }
}

fn check_new(name: &[u8]) -> Answer<()> {
    if name.len() > 256 {
        return Err("NameTooLong");
    }
    let bad = name.is_empty() || name.contains(&b'/') || name.contains(&0);
    if bad { Err("Invalid") } else { Ok(()) }
}

/// The name of an error's variant.
pub fn kind_of(error: &VolumeError) -> String {
    format!("{error:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
}
