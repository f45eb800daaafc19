"""usage: keep.py write DIR ROUND | look DIR ROUND WAY...

write: a file for each way in which a program may be told that its data is safe or that it alone has a name, each open until the
program is killed. Prints `kept WAY` when the way has said so, and `ready` at the end.
look: whether the file of each way has its data, and whether the names, locks and exchanges that WAY wrote are taken. Prints `missing WAY`.
"""
import ctypes, errno, fcntl, mmap, os, signal, sys

verb, top, turn, wanted = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
libc = ctypes.CDLL(None, use_errno=True)
held = []
NOREPLACE, EXCHANGE, AT_FDCWD = 1, 2, -100


def path(way):
    return f"{top}/{turn}-{way}"


def text(way):
    return f"kept by {way} in {turn}\n".encode()


def opened(way, flags=0):
    fd = os.open(path(way), os.O_CREAT | os.O_RDWR | flags, 0o644)
    held.append(fd)
    return fd


def written(way, flags=0):
    fd = opened(way, flags)
    os.write(fd, text(way))
    return fd


def closed(way, name=None):
    fd = os.open(name or path(way), os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(fd, text(way))
    os.close(fd)


def names_synced(way):
    closed(way)
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def beside_a_reader(way):
    """Through an open with O_DSYNC beside others, for which the kernel may use the cache file itself."""
    closed(way)
    held.append(os.open(path(way), os.O_RDWR))
    os.pwrite(opened(way, os.O_DSYNC), text(way).upper(), 0)
    fd = os.open(path(way), os.O_WRONLY | os.O_DSYNC)
    held.append(fd)
    os.pwrite(fd, text(way), 0)


def appended(way):
    fd = opened(way, os.O_SYNC | os.O_APPEND)
    for byte in text(way):
        os.write(fd, bytes([byte]))


def mapped(way):
    fd = opened(way)
    os.write(fd, bytes(8192))
    os.fsync(fd)
    mapping = mmap.mmap(fd, 8192)
    mapping[: len(text(way))] = text(way)
    mapping.flush()
    held.append(mapping)


def synced(way):
    closed(way)
    os.sync()


def file_system_synced(way):
    closed(way)
    fd = os.open(top, os.O_RDONLY)
    if libc.syncfs(fd):
        raise OSError(ctypes.get_errno(), "syncfs")
    os.close(fd)


def renamed(old, new, flags):
    if libc.renameat2(AT_FDCWD, old.encode(), AT_FDCWD, new.encode(), flags):
        return ctypes.get_errno()
    return 0


def renamed_new(way):
    new = path(way) + ".new"
    for expected in [0, errno.EEXIST]:
        closed(way, new)
        assert renamed(new, path(way), NOREPLACE) == expected


def linked(way):
    closed(way, path(way) + ".one")
    os.link(path(way) + ".one", path(way))


def locked(way, lock):
    fd = written(way)
    os.fsync(fd)
    lock(fd)


def flock(fd):
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_range(fd):
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 4, 4)


def locked_directory(way):
    os.mkdir(path(way))
    fd = os.open(path(way), os.O_RDONLY)
    flock(fd)
    held.append(fd)


WAYS = {
    "close": closed,
    "fsync": lambda way: os.fsync(written(way)),
    "fdatasync": lambda way: os.fdatasync(written(way)),
    "fsync-directory": names_synced,
    "O_SYNC": lambda way: written(way, os.O_SYNC),
    "O_DSYNC": lambda way: written(way, os.O_DSYNC),
    "O_DSYNC-beside": beside_a_reader,
    "O_SYNC-append": appended,
    "RWF_DSYNC": lambda way: os.pwritev(opened(way), [text(way)], 0, os.RWF_DSYNC),
    "msync": mapped,
    "sync": synced,
    "syncfs": file_system_synced,
    "O_EXCL": lambda way: written(way, os.O_EXCL | os.O_SYNC),
    "link": linked,
    "NOREPLACE": renamed_new,
    "flock": lambda way: locked(way, flock),
    "range": lambda way: locked(way, lock_range),
    "flock-directory": locked_directory,
}


def refused(expected, call):
    try:
        call()
    except OSError as error:
        return error.errno in expected
    return False


def is_taken(way):
    """Whether another machine cannot have the name or the lock as well."""
    if way == "O_EXCL":
        return refused([errno.EEXIST], lambda: os.open(path(way), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    if way == "link":
        return refused([errno.EEXIST], lambda: os.link(path("close"), path(way)))
    if way == "NOREPLACE":
        return renamed(path("close"), path(way), NOREPLACE) == errno.EEXIST
    if way in ("flock", "range"):
        lock = flock if way == "flock" else lock_range
        fd = os.open(path(way), os.O_RDWR)
        return refused([errno.EAGAIN, errno.EACCES], lambda: lock(fd))
    return True


def is_kept(way):
    with open(path(way), "rb") as file:
        return file.read(len(text(way))) == text(way)


if verb == "write":
    for way, tell in WAYS.items():
        tell(way)
        print("kept", way, flush=True)
    # Two names cannot be exchanged, and who asks is told.
    assert renamed(path("close"), path("fsync"), EXCHANGE) == errno.EINVAL
    print("ready", flush=True)
    signal.pause()
for way in wanted:
    way, _, what = way.partition(":")
    try:
        if not (is_taken(way) if what == "taken" else is_kept(way)):
            print("missing", way, what, flush=True)
    except OSError as error:
        print("missing", way, what, error, flush=True)
