"""Kernel of Debian's: its executable, and those of its modules that the guest loads."""

import lzma, re, shutil, struct, subprocess, zlib
from pathlib import Path

from commands import Failure, attempt, run

from . import archive

# What a stock kernel may lack: that for clouds has no AFS.
OPTIONS = ["AFS_FS", "AF_RXRPC", "NFS_V4", "FUSE_FS", "NET_9P_VIRTIO", "FW_CFG_SYSFS"]
# With all that they depend on. The ciphers are rxkad's and those of aklog-kafs.
MODULES = ["kafs", "rxrpc", "pcbc", "fcrypt", "des_generic", "cachefiles", "af_alg", "algif_hash", "hmac", "md5", "9p", "9pnet_virtio",
           "nfs", "nfsv4", "fuse", "overlay", "virtio_pci", "virtio_net", "virtio_console", "virtio-rng", "qemu_fw_cfg"]


class Kernel:
    def __init__(self, folder, package):
        self.folder, self.package = folder, archive.newest_kernel(package)
        archive.fetch(folder, self.package)
        self.version = next((folder / "lib/modules").iterdir()).name
        self.modules = folder / "lib/modules" / self.version
        config = (folder / f"boot/config-{self.version}").read_text()
        missing = [name for name in OPTIONS if not re.search(rf"^CONFIG_{name}=", config, re.MULTILINE)]
        if missing:
            raise Failure(f"{self.package} is built without {', '.join(missing)}: take linux-image-amd64 or another kernel")

    def executable(self):
        """The ELF file: the guest does not spend its time on unpacking it."""
        return unpacked((self.folder / f"boot/vmlinuz-{self.version}").read_bytes())

    def install_modules(self, root):
        """Copies the modules below a root directory."""
        run("depmod", "-b", self.folder, self.version)
        for module in sorted({Path(path) for name in MODULES for path in self.files_of(name)}):
            location = root / "lib/modules" / self.version / module.relative_to(self.modules)
            location.parent.mkdir(parents=True, exist_ok=True)
            write_module(module, location)
        for name in ["modules.builtin", "modules.builtin.modinfo", "modules.order"]:
            shutil.copy(self.modules / name, root / "lib/modules" / self.version)
        run("depmod", "-b", root, self.version)

    def files_of(self, module):
        """A module and all that it depends on. One that this kernel has built in has none."""
        words = ["modprobe", "-d", self.folder, "-S", self.version, "--ignore-install", "--show-depends", module]
        return re.findall(r"^insmod (\S+)", attempt(*words).stdout, re.MULTILINE)


def unpacked(image):
    """The executable in a bzImage. Documented in the kernel's x86/boot.rst: setup_sects, payload_offset, payload_length."""
    setup_sectors, (offset, length) = image[0x1F1] or 4, struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    executable = decompressed(image[start : start + length])
    if executable[:4] != b"\x7fELF":
        raise Failure("there is no executable in the kernel's image")
    return executable


def decompressed(data):
    """Contents of a compressed stream; what stands behind its end does not matter."""
    if data.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return zstd(data)
    raise Failure(f"the kernel's image is compressed in an unknown way ({data[:4].hex()})")


def zstd(data):
    # It fails at the bytes behind the stream, after it has written all: what came out is looked at.
    return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True).stdout


def write_module(module, location):
    """Copies a module, unpacked: with .ko.xz and .ko.zst the guest would spend its time on that."""
    data = module.read_bytes()
    if module.suffix in (".xz", ".zst"):
        location, data = location.with_suffix(""), decompressed(data)
    location.write_bytes(data)
