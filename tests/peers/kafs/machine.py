"""Emulated machine: boots an image, runs one command in it and returns its exit status. Nothing of it outlives this process."""

import os, platform, shlex, subprocess, sys, tempfile
from pathlib import Path

from commands import Failure, need
from network import exists

# The one of the guest when it could not do what it was started for, as of env and timeout.
FAILED, TIMED_OUT = 125, 124
PORTS = ["output", "errors", "status"]
PROCESSORS = "2"
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "setpriv": "util-linux"}


class Machine:
    def __init__(self, image, bridge, address, cell=None, servers=None, nfs=None, share=None, has_host=False, memory_mib=1024):
        self.image, self.bridge, self.address, self.memory_mib = image, bridge, address, memory_mib
        self.folders = {**({"share": share} if share else {}), **({"host": "/", "proc": "/proc"} if has_host else {})}
        self.settings = {"address": address, "cell": cell or "", "servers": servers or "", "nfs": nfs or "",
                         "is_shared": "yes" if share else "no", "has_host": "yes" if has_host else "no"}

    def run(self, words, seconds):
        """Runs a command within that time, boot included. Its output becomes this process's when it has ended."""
        self.check()
        with tempfile.TemporaryDirectory(prefix="andrew-guest.") as folder:
            folder = Path(folder)
            for port in [*PORTS, "console", "qemu"]:
                (folder / port).touch()
            (folder / "settings").write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in self.settings.items()))
            (folder / "command").write_text(shlex.join(words) + "\n")
            ended = self.boot(folder, seconds)
            copy(folder / "output", sys.stdout)
            copy(folder / "errors", sys.stderr)
            return outcome(folder, ended, seconds)

    def check(self):
        need(NEEDED)
        if platform.machine() != "x86_64":
            raise Failure(f"the guest is an x86-64 machine, and this is {platform.machine()}")
        if not self.image.exists():
            raise Failure(f"{self.image.folder}: no image is here (`guest build` makes it)")
        if not exists(self.bridge):
            raise Failure(f"{self.bridge}: no such bridge (the hosts of `openafs-cell` have one, PREFIXbr0)")
        if not os.access("/dev/net/tun", os.W_OK):
            raise Failure("/dev/net/tun cannot be written: the guest has no network without it (modprobe tun)")

    def boot(self, folder, seconds):
        """Exit status of the emulator; None if it had to be killed."""
        # It is killed with this process, however that ends, and its network device goes with it.
        words = ["setpriv", "--pdeathsig", "KILL", *self.emulator(folder)]
        environment = {**os.environ, "BRIDGE": self.bridge}
        with open(folder / "qemu", "wb") as said:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment)
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                process.kill()
                process.wait()

    def emulator(self, folder):
        kernel = "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr net.ifnames=0 random.trust_cpu=on"
        words = ["qemu-system-x86_64", *accelerator(), "-smp", PROCESSORS, "-m", self.memory_mib, "-nodefaults", "-no-user-config", "-display", "none"]
        words += ["-no-reboot", "-kernel", self.image.kernel, "-initrd", self.image.initramfs, "-append", kernel]
        words += ["-chardev", f"file,id=console,path={folder}/console", "-serial", "chardev:console", "-device", "virtio-rng-pci"]
        words += ["-netdev", f"tap,id=net,script={Path(__file__).with_name('join-bridge')},downscript=no"]
        words += ["-device", f"virtio-net-pci,netdev=net,mac={self.mac()},romfile=", "-device", "virtio-serial-pci"]
        for name in ["settings", "command"]:
            words += ["-fw_cfg", f"name=opt/andrew/{name},file={folder}/{name}"]
        for port in PORTS:
            words += ["-chardev", f"file,id={port},path={folder}/{port}", "-device", f"virtserialport,chardev={port},name={port}"]
        for tag, folder in self.folders.items():
            path = str(Path(folder).absolute()).replace(",", ",,")
            words += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap{',readonly=on' * (tag != 'share')}"]
        return [str(word) for word in words]

    def mac(self):
        """Made of the address: two guests on a bridge have two."""
        return "52:54:" + ":".join(f"{int(byte):02x}" for byte in self.address.split("/")[0].split("."))


def accelerator():
    """KVM where the processor does the work. PVM offers the same device, and interprets a stock kernel instruction by instruction."""
    has_flags = any(flag in Path("/proc/cpuinfo").read_text().split() for flag in ["vmx", "svm"])
    if has_flags and os.access("/dev/kvm", os.W_OK) and not Path("/sys/module/kvm_pvm").exists():
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]


def outcome(folder, ended, seconds):
    """The command's exit status, or what is known of why there is none."""
    status = (folder / "status").read_text().split()
    if status:
        return int(status[-1])
    console = (folder / "console").read_text(errors="replace").splitlines()[-20:]
    print("\n".join([*console, (folder / "qemu").read_text(errors="replace")]), file=sys.stderr)
    if ended is None:
        print(f"guest: no end after {seconds} s", file=sys.stderr)
        return TIMED_OUT
    print(f"guest: the machine ended without the command's status (qemu: {ended})", file=sys.stderr)
    return FAILED


def copy(file, stream):
    stream.buffer.write(file.read_bytes())
    stream.flush()
