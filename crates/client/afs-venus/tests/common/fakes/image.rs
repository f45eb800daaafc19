//! Contents of a volume: a root directory with files.

use std::collections::BTreeMap;

use afs_wire::dir::{self, Blob};
use afs_wire::error::AbortCode;
use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{DataVersion, Fid, Mode, Rights, Uniquifier, UnixSeconds, ViceId, VnodeId, VolumeId};

/// Contents of one volume, or of several that share them.
#[derive(Clone)]
pub struct Image {
    /// Creation time: it differs for each release.
    pub creation: UnixSeconds,
    vnodes: BTreeMap<VnodeId, Object>,
    root: Blob,
    next: u32,
}

#[derive(Clone)]
struct Object {
    status: Status,
    data: Vec<u8>,
}

const ROOT: (VnodeId, Uniquifier) = (VnodeId(1), Uniquifier(1));

impl Image {
    pub fn new(creation: u32) -> Image {
        let root = Blob::create(ROOT, ROOT);
        let status = Status { kind: FileKind::Directory, link_count: 2, mode: Mode(0o755), ..status() };
        let mut image = Image { creation: UnixSeconds(creation), vnodes: BTreeMap::new(), root, next: 2 };
        image.vnodes.insert(ROOT.0, Object { status, data: Vec::new() });
        image.root_changed();
        image
    }

    pub fn with(mut self, name: &str, data: &[u8]) -> Image {
        let fid = self.create(name.as_bytes());
        self.store(fid.vnode, 0, data, data.len() as u64).unwrap();
        self
    }

    /// Adds a link; with the text and mode of a mount point, a mount point.
    pub fn with_link(mut self, name: &str, text: &[u8], mode: Mode) -> Image {
        let vnode = self.create(name.as_bytes()).vnode;
        let object = self.vnodes.get_mut(&vnode).unwrap();
        (object.status.kind, object.status.mode) = (FileKind::Symlink, mode);
        object.status.length = text.len() as u64;
        object.data = text.to_vec();
        self
    }

    /// Changes the bytes of the root directory arbitrarily.
    pub fn with_root(mut self, change: impl FnOnce(&mut Vec<u8>)) -> Image {
        let root = self.vnodes.get_mut(&ROOT.0).unwrap();
        change(&mut root.data);
        root.status.length = root.data.len() as u64;
        self
    }

    /// The object of a name in the root.
    pub fn find(&self, volume: VolumeId, name: &[u8]) -> Option<Fid> {
        self.root.lookup(name).unwrap().map(|(vnode, unique)| Fid { volume, vnode, unique })
    }

    /// The next release, in which some files have other contents.
    pub fn released(&self, files: &[(&str, Vec<u8>)]) -> Image {
        let mut image = self.clone();
        image.creation.0 += 1;
        for (name, data) in files {
            let (vnode, _) = image.root.lookup(name.as_bytes()).unwrap().unwrap();
            image.store(vnode, 0, data, 0).unwrap();
        }
        image
    }

    /// Creates an empty file in the root.
    pub fn create(&mut self, name: &[u8]) -> Fid {
        let (vnode, unique) = (VnodeId(self.next), Uniquifier(self.next + 5));
        self.next += 2;
        self.create_as(name, Fid { vnode, unique, ..Fid::default() })
    }

    /// Creates an empty file in the root in the place of any object with this number.
    pub fn create_as(&mut self, name: &[u8], fid: Fid) -> Fid {
        let (vnode, unique) = (fid.vnode, fid.unique);
        dir::insert(&mut self.root, name, (vnode, unique)).unwrap();
        let status = Status { kind: FileKind::File, link_count: 1, mode: Mode(0o644), ..status() };
        self.vnodes.insert(vnode, Object { status, data: Vec::new() });
        self.root_changed();
        fid
    }

    pub fn status(&self, fid: Fid) -> Result<Status, AbortCode> {
        self.vnodes.get(&fid.vnode).map(|object| object.status).ok_or(AbortCode::VNOVNODE)
    }

    pub fn data(&self, fid: Fid, position: u64, length: u64) -> Result<Vec<u8>, AbortCode> {
        let object = self.vnodes.get(&fid.vnode).ok_or(AbortCode::VNOVNODE)?;
        let end = position.saturating_add(length).min(object.data.len() as u64);
        Ok(object.data.get(position as usize..end as usize).unwrap_or_default().to_vec())
    }

    pub fn store(&mut self, vnode: VnodeId, at: u64, data: &[u8], file_length: u64) -> Result<(), AbortCode> {
        let object = self.vnodes.get_mut(&vnode).ok_or(AbortCode::VNOVNODE)?;
        let end = (at as usize).saturating_add(data.len());
        if end > 1 << 28 {
            return Err(AbortCode::VDISKFULL);
        }
        object.data.truncate(file_length as usize);
        if object.data.len() < end {
            object.data.resize(end, 0);
        }
        object.data[at as usize..end].copy_from_slice(data);
        object.status.length = object.data.len() as u64;
        object.status.data_version = DataVersion(object.status.data_version.0 + 1);
        Ok(())
    }

    fn root_changed(&mut self) {
        let root = self.vnodes.get_mut(&ROOT.0).unwrap();
        root.data = self.root.as_bytes().to_vec();
        root.status.length = root.data.len() as u64;
        root.status.data_version = DataVersion(root.status.data_version.0 + 1);
    }
}

fn status() -> Status {
    Status {
        caller_access: Rights::ALL,
        anonymous_access: Rights::ALL,
        owner: ViceId(1),
        parent: ROOT.0,
        parent_unique: ROOT.1,
        ..Status::default()
    }
}
