"""Compilation of afsx, a client of the file server on OpenAFS's own libraries."""

from pathlib import Path

from commands import Failure, attempt, need

SOURCES = Path(__file__).resolve().parent.parent / "afsx"
LIBRARIES = ["libafscp.a", "libafsauthent.a", "libafsrpc.a", "libafsint.a", "libopr.a", "libhcrypto.so.5", "libroken.so.19"]


def build(program):
    need({"gcc": "gcc"})
    sources = sorted(SOURCES.glob("*.c"))
    libraries = [f"-l:{name}" for name in LIBRARIES] + ["-lkrb5", "-lresolv", "-lcrypt"]
    done = attempt("gcc", "-std=gnu11", "-O1", "-Wall", "-o", program, *sources, "-pthread", "-L/usr/lib/afs", *libraries)
    if done.returncode != 0:
        raise Failure("afsx cannot be compiled; it needs the headers and libraries of Debian's libopenafs-dev, libkrb5-dev and "
                      f"libc6-dev (`make deps` as root installs them):\n{done.stderr.strip()}")
