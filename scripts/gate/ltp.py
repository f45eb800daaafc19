"""The Linux Test Project's tests of system calls on files: each of its test programs is a case."""

import re, time

from soaking import sources

from . import programs
from .results import FAIL, PASS, SKIP, Result

VERSION = "20260529"
SOURCE = f"https://github.com/linux-test-project/ltp/releases/download/{VERSION}/ltp-full-{VERSION}.tar.xz"
DIRECTORIES = """
    access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 execve execveat faccessat faccessat2 fadvise fallocate fchdir fchmod
    fchmodat fchmodat2 fchown fchownat fcntl fdatasync flock fpathconf fstat fstatat fstatfs fsync ftruncate futimesat getcwd getdents inotify lchown
    link linkat llseek lseek lstat mkdir mkdirat mmap mremap msync munmap name_to_handle_at open open_by_handle_at openat openat2 pathconf pread preadv preadv2
    pwrite pwritev pwritev2 read readahead readdir readlink readlinkat readv realpath rename renameat renameat2 rmdir sendfile splice stat statfs statvfs statx
    symlink symlinkat sync sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat utimes vmsplice write writev
""".split()
# A program whose source says so works on a file system of its own in a loop device, or on settings of the machine.
ELSEWHERE = re.compile(r"needs_device|mount_device|all_filesystems|format_device|save_restore|tst_acquire_device|needs_hugetlbfs|needs_rofs")
# These write gigabytes, or make as many files as a process may have open: more than a mount does in their time, and what is killed leaves processes behind.
LARGE = ["sendfile09", "creat05", "open04", "inotify11"]
MADE = "made/testcases/bin"
BUILD = f"""
test -e configure || make autotools
./configure --prefix="$PWD/made" CFLAGS="-O1 -w"
make -s -j2 -C lib
for folder in kernel/fs/fsstress {' '.join(f'kernel/syscalls/{name}' for name in DIRECTORIES)}; do
    make -s -k -j2 -C testcases/$folder || true
    make -s -k -C testcases/$folder install || true
done
cp runtest/syscalls made
touch made/built
"""
NOT_ROOT = "each program gives its directory to root's group first, which only an administrator of the cell may (chown)"
# Of all programs, and of one.
SECONDS, PROGRAM_SECONDS = 3600, 120
COUNTS = re.compile(r"^(?:passed|failed|broken|skipped) +\d+$", re.M)


def fetch(root):
    sources.built(programs.folder(root) / "ltp", "made/built", SOURCE, BUILD)


def is_possible():
    return programs.unbuilt("LTP", programs.BUILT / "ltp/made/built")


def run(place, gate):
    made, folder = programs.BUILT / "ltp" / MADE, place.folder("ltp")
    around = {"LTPROOT": made.parents[1], "PATH": f"{made}:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": folder, "LTP_COLORIZE_OUTPUT": "n", "KCONFIG_SKIP_CHECK": 1}
    found, deadline = {}, time.monotonic() + SECONDS
    for name, words in chosen(made).items():
        found[name] = result(place.run(words, min(PROGRAM_SECONDS, deadline - time.monotonic()), folder, **around))
    return found


def chosen(made):
    """The command lines of LTP's own list whose programs were built and work on the files of the directory that they are given; those for 32 bits are left out."""
    sources = {path.stem: path.read_text(errors="replace") for name in DIRECTORIES for path in (made.parents[2] / "testcases/kernel/syscalls" / name).glob("*.c")}
    lines = [line.split() for line in (made.parents[1] / "syscalls").read_text().splitlines() if line and line[0] != "#"]
    return {name: words for name, *words in lines
            if words[0] in sources and name not in LARGE and not ELSEWHERE.search(sources[words[0]]) and (made / words[0]).exists()}


def result(said):
    """By the status: 0, and 32 if it was left out; what its tests found is counted and compared."""
    status, out, complaints = said
    if status is None:
        return Result(FAIL, "it did not end in time")
    outcome = {0: PASS, 32: SKIP}.get(status, FAIL)
    wrong = [line for line in (out + complaints).splitlines() if re.search("TFAIL|TBROK|TCONF", line)]
    return Result(outcome, f"ended with {status}: {' | '.join(wrong)}"[:700], tuple(" ".join(line.split()) for line in COUNTS.findall(complaints)))
