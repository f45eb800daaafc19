//! Implementation of the binding's `Filesystem` trait: each request becomes a future; there is no other logic here.

use crate::ops::{Change, Create, LockRequest, Mount, Operation};
use afs_env::Stall;
use afs_venus::{HandleId, LockRange, Requester};
use bytes::Bytes;
use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Filesystem, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

/// Capabilities requested from the kernel, where it has them.
const CAPABILITIES: [InitFlags; 12] = [
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_ATOMIC_O_TRUNC,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_CACHE_SYMLINKS,
    InitFlags::FUSE_POSIX_LOCKS,
    InitFlags::FUSE_FLOCK_LOCKS,
    // Pages become stale when Venus says so, not when a time or length differs.
    InitFlags::FUSE_EXPLICIT_INVAL_DATA,
    // Set-user-id bits are not honoured, so the kernel need not request their removal before every write.
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_BIG_WRITES,
    // A file handle (name_to_handle_at(2)) would be stale as soon as the kernel has dropped the object: none is given.
    InitFlags::FUSE_NO_EXPORT_SUPPORT,
];

/// Longest write request, in bytes; longer ones only delay other requests.
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// The file system of one mount.
pub(crate) struct AndrewFs {
    pub(crate) mount: Arc<Mount>,
    pub(crate) stack_depth: u32,
    /// Called once, when the mount ends.
    pub(crate) on_unmount: Option<Mutex<OnUnmount>>,
}

/// Work to do when a mount ends.
pub(crate) type OnUnmount = Box<dyn FnOnce() + Send>;

impl AndrewFs {
    /// Runs an operation on behalf of the requester.
    fn run<W>(&self, request: &Request, work: impl FnOnce(Operation) -> W + Send + 'static)
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let requester = Requester { uid: request.uid(), pid: request.pid() };
        let mount = self.mount.clone();
        self.start(async move { work(Operation::of(mount, requester).await).await });
    }

    /// Runs an operation on an open handle.
    fn run_held<W>(&self, work: impl FnOnce(Arc<Mount>) -> W)
    where
        W: Future<Output = ()> + Send + 'static,
    {
        self.start(work(self.mount.clone()));
    }

    /// Polls an operation on this thread, which is the one that reads requests. The operation may block here for a
    /// small access to the cache's files only; one that has to wait longer continues on the thread that wakes it.
    fn start(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.mount.env.start(Box::pin(work), Stall::Brief);
    }
}

fn bytes(name: &OsStr) -> Vec<u8> {
    name.as_bytes().to_vec()
}

impl Filesystem for AndrewFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for flag in CAPABILITIES {
            // Without it the mount works too, only slower.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ = config.set_max_background(64);
        if self.mount.passthrough.allowed() {
            let able = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
            if !able || config.set_max_stack_depth(self.stack_depth).is_err() {
                self.mount.passthrough.forbid();
            }
        }
        Ok(())
    }

    fn destroy(&mut self) {
        if let Some(over) = self.on_unmount.take() {
            over.into_inner()();
        }
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = bytes(name);
        self.run(request, move |m| async move { m.lookup(parent, &name, reply).await });
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.mount.forget(ino, lookups);
    }

    fn getattr(&self, request: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.run(request, move |m| async move { m.getattr(ino, reply).await });
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change::new(mode, uid, gid, size, mtime);
        let handle = fh.map(|fh| HandleId(fh.0));
        self.run(request, move |m| async move { m.setattr(ino, handle, change, reply).await });
    }

    fn readlink(&self, request: &Request, ino: INodeNo, reply: ReplyData) {
        self.run(request, move |m| async move { m.readlink(ino, reply).await });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let name = bytes(name);
        self.run(request, move |m| async move { m.mknod(parent, &name, mode, reply).await });
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let name = bytes(name);
        self.run(request, move |m| async move { m.mkdir(parent, &name, mode, reply).await });
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = bytes(name);
        self.run(request, move |m| async move { m.unlink(parent, &name, reply).await });
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = bytes(name);
        self.run(request, move |m| async move { m.rmdir(parent, &name, reply).await });
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (name, target) = (bytes(name), bytes(target.as_os_str()));
        self.run(request, move |m| async move { m.symlink(parent, &name, &target, reply).await });
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (old, new) = (bytes(name), bytes(newname));
        self.run(
            request,
            move |m| async move { m.rename((parent, &old), (newparent, &new), flags, reply).await },
        );
    }

    fn link(&self, request: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let name = bytes(newname);
        self.run(request, move |m| async move { m.link(ino, newparent, &name, reply).await });
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        self.run(request, move |m| async move { m.open(ino, flags.0, reply).await });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let name = bytes(name);
        self.run(request, move |m| async move {
            m.create(Create { parent, name: &name, mode, flags }, reply).await
        });
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let asker = request.pid();
        self.run_held(move |m| async move { m.read(HandleId(fh.0), offset, size, asker, reply).await });
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = Bytes::copy_from_slice(data);
        self.run_held(
            move |m| async move { m.write(ino, HandleId(fh.0), offset, data, flags.0, reply).await },
        );
    }

    fn flush(&self, request: &Request, ino: INodeNo, fh: FileHandle, owner: LockOwner, reply: ReplyEmpty) {
        let asker = request.pid();
        self.run_held(move |m| async move { m.flush(ino, HandleId(fh.0), owner, asker, reply).await });
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _: OpenFlags,
        owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.run_held(|m| async move { m.release(ino, HandleId(fh.0), owner, reply).await });
    }

    fn fsync(&self, request: &Request, ino: INodeNo, fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        let asker = request.pid();
        self.run_held(move |m| async move { m.fsync(ino, HandleId(fh.0), asker, reply).await });
    }

    fn opendir(&self, request: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.run(request, move |m| async move { m.opendir(ino, reply).await });
    }

    fn releasedir(&self, _: &Request, ino: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.mount.releasedir(ino, fh);
        reply.ok();
    }

    fn readdir(&self, request: &Request, ino: INodeNo, _: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.run(request, move |m| async move { m.readdir(ino, offset, reply).await });
    }

    fn readdirplus(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.run(request, move |m| async move { m.readdirplus(ino, offset, reply).await });
    }

    fn fsyncdir(&self, request: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.run(request, move |m| async move { m.fsync_directory(ino, reply).await });
    }

    fn statfs(&self, request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        self.run(request, move |m| async move { m.statfs(ino, reply).await });
    }

    /// There are no extended attributes. After ENOSYS the kernel says so itself (EOPNOTSUPP) and sends no more of these requests:
    /// without it each `ls -l` would be two of them a file, each new file one.
    fn setxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn getxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, reply: ReplyXattr) {
        reply.error(Errno::ENOSYS);
    }

    fn listxattr(&self, _: &Request, _: INodeNo, _: u32, reply: ReplyXattr) {
        reply.error(Errno::ENOSYS);
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn access(&self, request: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        self.run(request, move |m| async move { m.access(ino, mask, reply).await });
    }

    fn getlk(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let lock = lock_request(fh, owner, (start, end), typ, pid);
        self.run_held(|m| async move { m.getlk(lock, reply).await });
    }

    fn setlk(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let lock = lock_request(fh, owner, (start, end), typ, pid);
        self.run_held(|m| async move { m.setlk(lock, sleep, reply).await });
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        pos: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.run_held(|m| async move { m.fallocate(ino, HandleId(fh.0), (pos, len), mode, reply).await });
    }

    fn lseek(&self, _: &Request, ino: INodeNo, fh: FileHandle, pos: i64, whence: i32, reply: ReplyLseek) {
        self.run_held(|m| async move { m.lseek(ino, HandleId(fh.0), pos, whence, reply).await });
    }

    /// A file here is never a terminal.
    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: fuser::IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: fuser::ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    /// Files are always ready; after ENOSYS the kernel assumes so by itself.
    fn poll(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: fuser::PollNotifier,
        _: fuser::PollEvents,
        _: fuser::PollFlags,
        reply: fuser::ReplyPoll,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: fuser::CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::ENOSYS);
    }
}

fn lock_request(
    fh: FileHandle,
    owner: LockOwner,
    (first, last): (u64, u64),
    kind: i32,
    pid: u32,
) -> LockRequest {
    LockRequest { handle: HandleId(fh.0), owner: owner.0, pid, range: LockRange { first, last }, kind }
}
