//! The kernel's requests, answered from memory.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use parking_lot::Mutex;

use crate::tree::{Node, Tree};

/// The kernel may keep everything, since nothing else changes the tree.
const KEPT: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub(crate) struct Floor {
    tree: Mutex<Tree>,
}

fn entry(found: Result<&mut Node, Errno>, reply: ReplyEntry) {
    match found {
        Ok(node) => reply.entry(&KEPT, &node.attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn empty(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn attributes(node: Result<&mut Node, Errno>, reply: ReplyAttr) {
    match node {
        Ok(node) => reply.attr(&KEPT, &node.attributes),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Floor {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for flag in [
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_EXPLICIT_INVAL_DATA,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_BIG_WRITES,
        ] {
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(1 << 20);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.tree.lock().named(parent, name), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(self.tree.lock().node(ino), reply);
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut tree = self.tree.lock();
        let changed = tree.node(ino).map(|node| node.change(mode, (uid, gid), size, mtime));
        attributes(changed, reply);
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.tree.lock().node(ino) {
            Ok(node) => reply.data(&node.data),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let owner = (request.uid(), request.gid());
        entry(self.tree.lock().make((parent, name), (FileType::Directory, mode), owner), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.tree.lock().remove(parent, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.tree.lock().remove(parent, name), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (mut tree, owner) = (self.tree.lock(), (request.uid(), request.gid()));
        let made = tree.make((parent, name), (FileType::Symlink, 0o777), owner);
        entry(made.map(|node| node.write(0, target.as_os_str().as_bytes())), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        empty(self.tree.lock().rename((parent, name), (newparent, newname)), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        entry(self.tree.lock().link(ino, newparent, newname), reply);
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.0 & libc::O_TRUNC != 0 {
            let _ = self.tree.lock().node(ino).map(|node| node.set_len(0));
        }
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let owner = (request.uid(), request.gid());
        match self.tree.lock().make((parent, name), (FileType::RegularFile, mode), owner) {
            Ok(node) => {
                let kept = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&KEPT, &node.attributes, Generation(0), FileHandle(0), kept);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.tree.lock().node(ino) {
            Ok(node) => {
                let begin = node.data.len().min(offset as usize);
                reply.data(&node.data[begin..node.data.len().min(begin + size as usize)]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.tree.lock().node(ino) {
            Ok(node) => {
                node.write(offset as usize, data);
                reply.written(data.len() as u32);
            }
            Err(error) => reply.error(error),
        }
    }

    /// A file system in a network has to answer it, since `close` reports what became of the data.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR);
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let mut tree = self.tree.lock();
        let names: Vec<(u64, std::ffi::OsString)> = match tree.node(ino) {
            Ok(node) => {
                node.names.iter().skip(offset as usize).map(|(name, ino)| (*ino, name.clone())).collect()
            }
            Err(error) => return reply.error(error),
        };
        for (at, (number, name)) in names.into_iter().enumerate() {
            let Ok(node) = tree.node(INodeNo(number)) else { continue };
            let there: FileAttr = node.attributes;
            if reply.add(INodeNo(number), offset + at as u64 + 1, &name, &KEPT, &there, Generation(0)) {
                break;
            }
        }
        reply.ok();
    }
}
