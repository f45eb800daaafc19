//! Mount namespace in which every user may open `/dev/fuse`, as on an ordinary machine, and some have accounts, without which
//! `fusermount3` mounts nothing.

use std::path::Path;

use super::mount::wait_for_word;
use super::netns::Netns;
use super::process::Daemon;

const LINE: &str = r#"set -e; fuse=$0; mknod "$fuse" c 10 229; chmod 666 "$fuse"; mount --bind "$fuse" /dev/fuse
    cp /etc/passwd "$fuse.passwd"; for id in "$@"; do echo "u$id:x:$id:$id::/:/bin/sh"; done >> "$fuse.passwd"
    mount --bind "$fuse.passwd" /etc/passwd; echo mounted; exec sleep 1000"#;

/// What holds the namespace, for its end, and its commands in the network of `netns`, with these user ids and files in `folder`.
///
/// # Panics
/// If the machine refuses.
#[must_use]
pub fn fuse_for_all(netns: &Netns, folder: &Path, users: &[u32]) -> (Daemon, Netns) {
    let mut command = netns.command("unshare");
    command.args(["--mount", "sh", "-c", LINE]).arg(folder.join("fuse"));
    command.args(users.iter().map(ToString::to_string));
    let mut holder = Daemon::start(command, &folder.join("fuse.log"));
    wait_for_word(&mut holder, "mounted");
    let netns = netns.with_mounts_of(holder.pid());
    (holder, netns)
}
