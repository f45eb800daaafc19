"""Cells of ours on loopback, for loads of calls."""

import json, re, subprocess, sys

import processes


class Cell:
    """Servers of a program, on a state directory that stays when they are stopped."""

    def __init__(self, program, state, port):
        self.program, self.state, self.port = program, state, port
        self.server = f"127.0.0.1:{port}"

    def up(self):
        self.run("serve", "--state", self.state, "--base-port", self.port, "--anyuser", "rlidwk", "--detach")
        self.pid = processes.of_state(self.program, self.state)

    def down(self):
        subprocess.run([str(self.program), "down", "--state", str(self.state)], capture_output=True)

    def run(self, *words):
        return processes.run([self.program, *words])

    def volume(self, name):
        """The top directory of a volume, which is made if it is not there."""
        listed = lambda: re.search(rf"^{name}\s+(\d+)", self.run("vos", "listvol", "--state", self.state), re.MULTILINE)
        if not listed():
            self.run("vos", "create", "127.0.0.1", "a", name, "--state", self.state)
            self.run("vos", "setfields", name, "-maxquota", 0, "--state", self.state)
        return listed()[1] + ".1.1"

    def load(self, directory, *words, by=None, security="rxgk", level="clear"):
        """Begins calls of `andrew-lab bench load`, beside this program or another one."""
        command = [processes.lab_of(by or self.program), "--json", "bench", "load", "--server", self.server, "--directory", directory,
                   "--security", security, "--level", level, "--key-file", self.state / "keys/KeyFileExt", *words]
        return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE)


def answer(process):
    """What a load measured."""
    said, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{' '.join(process.args)}: {process.returncode}")
    return json.loads(said)
