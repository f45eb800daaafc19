"""Processes that a measurement started, found by what was started and never by a name that others may have too."""

import json, os, re, signal, subprocess, sys, time
from pathlib import Path


def end(*_):
    """Whoever ends a measurement finds everything taken down, as at its own end. That is not interrupted."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit("ended by SIGTERM")


signal.signal(signal.SIGTERM, end)


def lab_of(program):
    """The laboratory's program, which is built beside ours."""
    return Path(program).with_name("andrew-lab")


def of_state(program, state):
    """The process of our servers that run on a state directory."""
    said = subprocess.run([str(program), "--json", "status", "--state", str(state)], capture_output=True, text=True)
    cell = json.loads(said.stdout)["cell"] if said.returncode == 0 else None
    if cell is None:
        sys.exit(f"no server runs on {state}: {said.stderr.strip()}")
    return int(cell["pid"])


def in_namespace(name, programs):
    """The processes of these programs in a network namespace; at least one."""
    pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
    found = [int(pid) for pid in pids if command(pid) in programs]
    if not found:
        sys.exit(f"no process of {', '.join(programs)} in the network namespace {name}")
    return found


def stop(pid, word):
    """Ends a process that was started with a word among its arguments, if it is still that one."""
    for sent in [signal.SIGTERM, signal.SIGKILL]:
        for _ in range(100):
            if word not in arguments(pid):
                return
            try:
                os.kill(pid, sent)
            except ProcessLookupError:
                return
            time.sleep(0.1)


def arguments(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def command(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def run(words, **options):
    """What a command says; ends the script with its complaint when it fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip() or done.returncode}")
    return done.stdout


def seconds_of(pid):
    """Processor time of a process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_from_disk(pid):
    """Bytes that the disk gave to a process, the page cache's not among them."""
    return int(re.search(r"^read_bytes: (\d+)", Path(f"/proc/{pid}/io").read_text(), re.MULTILINE)[1])
