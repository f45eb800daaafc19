"""Image of the guest: a kernel's executable and an initramfs, which are made together and replaced together."""

import fcntl, hashlib, shutil
from contextlib import contextmanager
from pathlib import Path

from commands import need, run

from . import programs
from .kernel import Kernel

HERE = Path(__file__).resolve().parent
NEEDED = {"apt-get": "apt", "dpkg-deb": "dpkg", "cpio": "cpio", "depmod": "kmod", "zstd": "zstd"}
FOLDERS = ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/libexec", "etc/kafs", "dev", "proc", "sys", "run", "tmp", "root", "afs", "nfs", "share", "host", "var"]
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files\npasswd: files\ngroup: files\nservices: files\nprotocols: files\n",
    "etc/request-key.conf": "create dns_resolver afsdb:* * /usr/libexec/kafs-dns %k\nnegate * * * /bin/keyctl negate %k 30 %S\n",
}


class Image:
    def __init__(self, state):
        self.state = Path(state).absolute()
        self.folder = self.state / "image"
        self.kernel, self.initramfs = self.folder / "vmlinux", self.folder / "initramfs.cpio"

    def exists(self):
        return self.folder.exists()

    def is_current(self):
        """Whether it was made by these very scripts."""
        return self.exists() and (self.folder / "made-by").read_text() == scripts()

    @contextmanager
    def locked(self):
        """Keeps other processes from building: who waits finds what the other has made."""
        self.state.mkdir(parents=True, exist_ok=True)
        with open(self.state / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def build(self, package):
        """Makes it anew with the kernel of a Debian package."""
        need(NEEDED)
        work = self.state / "building"
        shutil.rmtree(work, ignore_errors=True)
        image, root = work / "image", work / "root"
        image.mkdir(parents=True)
        kernel = Kernel(work / "kernel", package)
        (image / "vmlinux").write_bytes(kernel.executable())
        fill(root, work, kernel)
        pack = 'find . | cpio --create --format=newc --quiet >"$1"'
        run("sh", "-ec", pack, "sh", image / "initramfs.cpio", cwd=root)
        (image / "made-by").write_text(scripts())
        shutil.rmtree(self.folder, ignore_errors=True)
        image.rename(self.folder)
        shutil.rmtree(work)
        return kernel.version


def fill(root, work, kernel):
    """The root directory of the guest."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    for name in ["bin", "sbin", "lib", "lib64"]:
        (root / name).symlink_to(f"usr/{name}")
    (root / "var/run").symlink_to("../run")
    for name, text in FILES.items():
        (root / name).write_text(text)
    for name in ["protocols", "services"]:
        if Path("/etc", name).exists():
            shutil.copy(f"/etc/{name}", root / "etc")
    shutil.copy(HERE / "init", root / "init")
    programs.install(root, work)
    kernel.install_modules(root)


def scripts():
    """Sum of everything that says how the image is made."""
    files = sorted([*HERE.glob("*.py"), HERE / "init"])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
