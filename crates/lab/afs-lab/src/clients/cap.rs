//! Bound on the processor time of a process: a control group of its own (cgroups(7), version 2 or 1).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const GROUPS: &str = "/sys/fs/cgroup";
/// Microseconds in which the process may use its part. Short, so that no call waits for long beside the others.
const PERIOD: u64 = 20_000;
/// The kernel takes no less than a millisecond.
const QUOTA_MIN: u64 = 1000;

/// A process in a group with a bound. It is put back when this is dropped.
pub(super) struct Cap {
    group: PathBuf,
    former: PathBuf,
    pid: u32,
}

impl Cap {
    /// Gives a process a part of one processor.
    ///
    /// # Errors
    /// The caller is not root, or there are no control groups of the processor here.
    pub(super) fn on(pid: u32, part: f64) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let (root, former) =
            place(&text).ok_or_else(|| io::Error::other("no control group of the processor"))?;
        let group = root.join(format!("andrew-lab-{}", std::process::id()));
        let former = root.join(former.trim_start_matches('/'));
        if root == Path::new(GROUPS) {
            fs::write(root.join("cgroup.subtree_control"), "+cpu")?;
        }
        fs::create_dir(&group)?;
        let cap = Self { group, former, pid };
        cap.bound(((PERIOD as f64 * part) as u64).max(QUOTA_MIN))?;
        fs::write(cap.group.join("cgroup.procs"), pid.to_string())?;
        Ok(cap)
    }

    fn bound(&self, quota: u64) -> io::Result<()> {
        if self.group.parent() == Some(Path::new(GROUPS)) {
            return fs::write(self.group.join("cpu.max"), format!("{quota} {PERIOD}"));
        }
        fs::write(self.group.join("cpu.cfs_period_us"), PERIOD.to_string())?;
        fs::write(self.group.join("cpu.cfs_quota_us"), quota.to_string())
    }
}

impl Drop for Cap {
    fn drop(&mut self) {
        let _ = fs::write(self.former.join("cgroup.procs"), self.pid.to_string());
        let _ = fs::remove_dir(&self.group);
    }
}

/// Where groups of the processor are, and the process's own below: version 1 where it has the controller, version 2 otherwise.
fn place(cgroup: &str) -> Option<(PathBuf, &str)> {
    let lines = cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let lines: Vec<(&str, &str)> = lines.collect();
    let first = lines.iter().find(|(controllers, _)| controllers.split(',').any(|one| one == "cpu"));
    let first = first.map(|(controllers, path)| (Path::new(GROUPS).join(controllers), *path));
    let second = lines.iter().find(|(controllers, _)| controllers.is_empty());
    first.or_else(|| second.map(|(_, path)| (PathBuf::from(GROUPS), *path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found() {
        let of = |text| place(text).map(|(root, path)| (root.display().to_string(), path.to_owned()));
        let told = |root: &str, path: &str| Some((root.to_owned(), path.to_owned()));
        assert_eq!(of("0::/user.slice\n"), told("/sys/fs/cgroup", "/user.slice"));
        assert_eq!(of("3:cpuset:/\n1:cpu,cpuacct:/a\n0::/\n"), told("/sys/fs/cgroup/cpu,cpuacct", "/a"));
        assert_eq!(of("9:name=systemd:/\n"), None);
    }
}
