"""nfs-ganesha in a network namespace: exports one folder by NFS 4.1, and has a /run of its own, so that several do not meet."""

from commands import Failure, attempt, begin, need, until

NEEDED = {"ganesha.nfsd": "nfs-ganesha nfs-ganesha-vfs", "nsenter": "util-linux", "unshare": "util-linux"}
NAME = "/export"


class Server:
    def __init__(self, namespace, address, folder):
        self.namespace, self.address, self.folder = namespace, address, folder
        self.process = None

    def start(self, exported):
        """Returns when it accepts connections. Root of a client is root there, and users are numbers."""
        need(NEEDED)
        (self.folder / "recovery").mkdir(parents=True)
        (self.folder / "ganesha.conf").write_text(CONFIGURATION.format(address=self.address, folder=self.folder, exported=exported, name=NAME))
        self.process = begin([*self.inside(), "unshare", "--mount", "--propagation", "private", "sh", "-ec", SCRIPT, "sh", self.folder], self.log())
        until("nfs-ganesha accepts connections", self.accepts)

    def accepts(self):
        if self.process.poll() is not None:
            raise Failure(f"nfs-ganesha has ended: {self.said()}")
        script = 'exec 3<>"/dev/tcp/$1/2049"'
        return attempt(*self.inside(), "bash", "-c", script, "bash", self.address).returncode == 0

    def inside(self):
        return ["nsenter", f"--net={self.namespace.path}"]

    def log(self):
        return self.folder / "log"

    def said(self):
        return " / ".join(self.log().read_text(errors="replace").splitlines()[-5:])

    def exports(self):
        """What a client mounts."""
        return f"{self.address}:{NAME}"


SCRIPT = """\
mount -t tmpfs none /run
mkdir /run/ganesha
exec ganesha.nfsd -F -f "$1/ganesha.conf" -L STDERR -p "$1/pid"
"""
CONFIGURATION = """\
NFS_CORE_PARAM {{ Protocols = 4; Bind_addr = {address}; Enable_NLM = false; Enable_RQUOTA = false; Allow_Set_Io_Flusher_Fail = true; }}
NFSV4 {{ Only_Numeric_Owners = true; Graceless = true; RecoveryBackend = fs; RecoveryRoot = "{folder}/recovery"; }}
EXPORT_DEFAULTS {{ Access_Type = RW; Squash = No_Root_Squash; SecType = sys; }}
EXPORT {{ Export_Id = 1; Path = "{exported}"; Pseudo = {name}; Protocols = 4; Transports = TCP; FSAL {{ Name = VFS; }} }}
LOG {{ Default_Log_Level = EVENT; }}
"""
