//! Mounting a directory, and the life of a mount.

use crate::accounts::NumericAccounts;
use crate::error::{MountError, check_mount_point};
use crate::filesystem::AndrewFs;
use crate::kernel::Kernel;
use crate::negative_entries::NegativeEntries;
use crate::ops::{Mount, RepeatedOpens};
use crate::options::MountOptions;
use crate::passthrough::Passthrough;
use crate::renewals::Renewals;
use crate::signals;
use crate::sink::KernelSink;
use crate::unmount::unmount;
use afs_env::{EnvRef, refused};
use afs_venus::Venus;
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use parking_lot::Mutex;

/// Longest time that [`Mounted::unmount`] waits for the kernel's last request. Another mount namespace (of a container
/// started meanwhile) may hold a copy of the mount, which this process cannot unmount.
const PATIENCE: Duration = Duration::from_secs(10);

/// A mounted directory. Dropping this leaves it mounted until the process ends; see [`Mounted::unmount`].
pub struct Mounted {
    directory: PathBuf,
    /// Never dropped: the binding would then unmount the directory once more, which could by then be another process's
    /// mount.
    _session: ManuallyDrop<BackgroundSession>,
    ended: Receiver<()>,
}

/// Mounts the name space of `venus` on `directory` and starts to serve the kernel's requests.
///
/// `sink` is the one that `venus` was started with. `env` runs operations that have to wait. `ended` is called once,
/// from a thread of the mount, when the directory is unmounted, also by another process.
///
/// # Errors
/// See [`MountError`].
pub fn mount(
    venus: Arc<Venus>,
    sink: KernelSink,
    directory: &Path,
    options: &MountOptions,
    env: EnvRef,
    ended: impl FnOnce() + Send + 'static,
) -> Result<Mounted, MountError> {
    check_mount_point(directory)?;
    let behind = Arc::downgrade(&venus);
    venus.set_kill_check(signals::kills);
    venus.set_signal_check(signals::pending);
    let state = Arc::new(Mount {
        venus,
        sink: sink.clone(),
        inodes: options.inodes.clone(),
        lengths: Arc::default(),
        negatives: Arc::new(NegativeEntries::default()),
        passthrough: Arc::new(Passthrough::new(options.passthrough)),
        accounts: options.accounts.clone().unwrap_or_else(|| Arc::new(NumericAccounts(options.owner))),
        repeated: RepeatedOpens::default(),
        renewals: Renewals::default(),
        env: env.clone(),
        allow_other: options.allow_other,
    });
    let (inodes, negatives) = (state.inodes.clone(), state.negatives.clone());
    let (passthrough, lengths) = (state.passthrough.clone(), state.lengths.clone());
    let (tell, told) = mpsc::channel();
    let detached = sink.clone();
    let over = Box::new(move || {
        detached.detach();
        ended();
        // There is no receiver when the process is ending.
        let _ = tell.send(());
    });
    let stack_depth = if options.cache_is_stacked { 2 } else { 1 };
    let filesystem = AndrewFs { mount: state, stack_depth, on_unmount: Some(Mutex::new(over)) };
    let session = Session::new(filesystem, directory, &config(options))
        .map_err(|source| MountError::explain(directory, source))?;
    let system = |source| MountError::System { path: directory.to_owned(), source };
    let device = session.as_fd().try_clone_to_owned().map_err(system)?;
    let notifier = session.notifier();
    sink.attach(Kernel { venus: behind, notifier, device, inodes, lengths, negatives, passthrough }, env)
        .map_err(system)?;
    let session = ManuallyDrop::new(
        session.spawn().map_err(|error| system(refused("the threads of the mount", &error)))?,
    );
    Ok(Mounted { directory: directory.to_owned(), _session: session, ended: told })
}

impl Mounted {
    /// The mount point.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts, and waits until the last request has its reply. A mount in use disappears from the name space at once;
    /// this then returns `false` without waiting, and files open in it give errors when the process ends. It also
    /// returns `false` after ten seconds for a mount that another mount namespace still holds.
    ///
    /// # Errors
    /// The system refuses for another reason than use.
    pub fn unmount(self) -> io::Result<bool> {
        if self.ended.try_recv().is_ok() {
            return Ok(true);
        }
        match unmount(&self.directory, false) {
            Ok(()) => {}
            // Another process has unmounted it already.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                unmount(&self.directory, true)?;
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        Ok(self.ended.recv_timeout(PATIENCE).is_ok())
    }
}

fn config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(options.source.clone()),
        // Given as an option of the kernel's own, since the binding drops its `Subtype` when root mounts.
        MountOption::CUSTOM("subtype=andrew".into()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    // One reading thread is fastest if it is never blocked (measured), and each has a buffer of 16 MiB.
    config.n_threads = Some(1);
    config
}
