"""Where a soak runs: namespaces of its own, and a user who exists in them only."""

import os, signal, stat, subprocess, sys, tempfile
from pathlib import Path

USER, UID = "soaker", 61_001
INSIDE = "SOAK_INSIDE"


def enter():
    """Goes on in new namespaces. What runs in them ends with this process, and so do its mounts."""
    if os.geteuid() != 0:
        sys.exit("soak: needs root, for namespaces and for a user of its own")
    if is_outside():
        os.environ[INSIDE] = "yes"
        words = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--", sys.executable, *sys.argv]
        os.execvp("unshare", ["unshare", *words])
    # The first process of a namespace ignores what it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    run("ip", "link", "set", "lo", "up")
    with_line("/etc/passwd", f"{USER}:x:{UID}:{UID}::/nonexistent:/bin/bash")
    with_line("/etc/group", f"{USER}:x:{UID}:")
    for_all("/dev/fuse")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    # As systemd does; a user's mounts need it for their guards.
    run("mount", "-t", "fusectl", "fusectl", "/sys/fs/fuse/connections")


def shown(folder, at):
    """Shows a folder of the machine to every user, to read, at a place of these namespaces only."""
    at.mkdir(parents=True)
    run("mount", "--bind", "-o", "ro", folder, at)


def is_outside():
    """Whether this is still the machine as it is."""
    return INSIDE not in os.environ


def with_line(file, line):
    """Adds a line to a file of the machine, for these namespaces only."""
    descriptor, name = tempfile.mkstemp(prefix="soak", dir="/dev/shm")
    changed = Path(name)
    with os.fdopen(descriptor, "w") as written:
        written.write(Path(file).read_text() + line + "\n")
    changed.chmod(0o644)
    run("mount", "--bind", changed, file)
    changed.unlink()


def for_all(device):
    """Lets every user open a device, for these namespaces only; most systems have it so."""
    folder = Path(tempfile.mkdtemp(prefix="soak", dir=Path(device).parent))
    own, number = folder / "device", os.stat(device).st_rdev
    os.mknod(own, 0o600 | stat.S_IFCHR, number)
    own.chmod(0o666)
    run("mount", "--bind", own, device)
    own.unlink()
    folder.rmdir()


def as_user(words, user=USER):
    """The command line that runs words as that user."""
    words = [str(word) for word in words]
    if user == "root":
        return words
    return ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", *words]


def environment(home):
    """What a process of either user has around it."""
    kept = {name: os.environ[name] for name in ("ANDREW_LOG", "TERM") if name in os.environ}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TZ": "UTC", **kept}


def run(*words, user="root", home="/root", check=True, **more):
    """Runs a command to its end; answers what it printed. An error that nobody expected ends the soak."""
    done = subprocess.run(as_user(words, user), capture_output=True, text=True, env=environment(home), stdin=subprocess.DEVNULL,
                          **{"cwd": "/", **more})
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}: {(done.stderr + done.stdout).strip() or done.returncode}")
    return done.stdout if check else done


class Failed(Exception):
    """A command that had to succeed did not."""


def descendants(pid):
    """The living processes below one, the nearest first."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = status.read_text().rsplit(")", 1)
            parents.setdefault(int(rest.split()[1]), []).append(int(name.split()[0]))
        except (OSError, ValueError):
            pass
    found = list(parents.get(pid, []))
    for child in found:
        found += parents.get(child, [])
    return found


def kill_tree(process):
    """Kills a process with all that it started, where they stand."""
    below = descendants(process.pid)
    process.kill()
    for pid in below:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    for pid in below:
        # Orphans come to the first process of the namespace, which this is.
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass
