"""Debian packages, unpacked without being installed. Apt compares each with the checksums that the archive has signed."""

import re

from commands import Failure, attempt, run


def fetch(folder, *packages):
    """Unpacks packages below a folder that is not there yet."""
    archives = folder.with_name(folder.name + ".debs")
    for location in [archives, folder]:
        location.mkdir(parents=True)
    if attempt("apt-get", "download", "-q", *packages, cwd=archives).returncode != 0:
        # The package lists may name a version that the archive does not have any more.
        run("apt-get", "update", "-q")
        run("apt-get", "download", "-q", *packages, cwd=archives)
    for archive in archives.glob("*.deb"):
        run("dpkg-deb", "-x", archive, folder)


def newest_kernel(package):
    """The package of a kernel: itself, or the one that a package such as linux-image-amd64 stands for."""
    if re.match(r"linux-image-\d+\.\d+\.\d+", package):
        return package
    found = depends(package)
    if not found:
        run("apt-get", "update", "-q")
        found = depends(package)
    if not found:
        raise Failure(f"{package}: apt knows no package of a kernel behind it")
    return found


def depends(package):
    found = re.search(r"Depends: (linux-image-\S+)", attempt("apt-cache", "depends", package).stdout)
    return found and found[1]
