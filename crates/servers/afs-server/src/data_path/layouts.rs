//! Layouts that were given to clients, and the revocation of what they read the drives with.

use std::collections::BTreeMap;

use afs_datapath::capability::Group;
use afs_remote::DirectDrive;
use afs_rpc::EnvRef;
use afs_rpc::sync::oneshot;
use afs_wire::ids::{Fid, VolumeId};
use parking_lot::Mutex;

use crate::partitions::Partitions;

/// Most files of which layouts are known to be with clients.
const FILES_MAX: usize = 65_536;

/// The files of which a layout was given, each with its directory, since what it rests on was last revoked.
///
/// Bindings do not expire, so a file stays here until something of it is revoked, or all is.
pub(crate) struct Layouts {
    env: EnvRef,
    partitions: Partitions,
    files: Mutex<BTreeMap<Fid, Fid>>,
}

/// Drives that are being told of a revocation. Holds whoever waits for it no longer than
/// [`afs_remote::TELL_MAX`] for each drive, all at the same time.
#[must_use = "the reply to a change of rights leaves after the drives were told"]
#[derive(Default)]
pub(crate) struct Telling(Vec<oneshot::Receiver<()>>);

impl Telling {
    /// Adds what else is told.
    pub(crate) fn add(&mut self, others: Telling) {
        self.0.extend(others.0);
    }

    /// What [`Breaks`](crate::clients::Breaks) wait for.
    pub(crate) fn into_answers(self) -> Vec<oneshot::Receiver<()>> {
        self.0
    }
}

impl Layouts {
    pub(crate) fn new(env: &EnvRef, partitions: &Partitions) -> Self {
        Layouts { env: env.clone(), partitions: partitions.clone(), files: Mutex::default() }
    }

    /// Notes that a layout of a file is given. To be called before the rights are looked at that decide on it. Where the table is
    /// full, everything is revoked first.
    pub(crate) async fn enter(&self, file: Fid, directory: Fid) {
        let is_full = {
            let mut files = self.files.lock();
            let is_full = files.len() >= FILES_MAX && !files.contains_key(&file);
            if is_full {
                files.clear();
            }
            files.insert(file, directory);
            is_full
        };
        if is_full {
            for drive in self.partitions.all_direct() {
                drive.revoke_all().await;
            }
        }
    }

    /// The access list of a directory has changed: the capabilities for its files end. Their bindings stay good for those who get
    /// another capability.
    pub(crate) fn list_changed(&self, directory: Fid) -> Telling {
        let files = self.files.lock();
        let inside = files.iter().filter(|(_, of)| **of == directory).map(|(file, _)| Group::File(*file));
        let mut groups: Vec<_> = inside.collect();
        drop(files);
        if groups.is_empty() {
            return Telling::default();
        }
        groups.push(Group::Directory(directory));
        self.tell(groups)
    }

    /// What decides on the access to a file beside the list has changed, or it is gone.
    pub(crate) fn file_changed(&self, file: Fid) -> Telling {
        match self.files.lock().remove(&file) {
            Some(_) => self.tell(vec![Group::File(file)]),
            None => Telling::default(),
        }
    }

    /// A volume has another content, or is not served here any more. Nobody waits for this.
    pub(crate) fn volume_changed(&self, volume: VolumeId) {
        let mut files = self.files.lock();
        if files.keys().any(|file| file.volume == volume) {
            files.clear();
            drop(files);
            drop(self.tell(Vec::new()));
        }
    }

    /// Revokes groups at all drives, or everything if none is named.
    fn tell(&self, groups: Vec<Group>) -> Telling {
        let drives = self.partitions.all_direct().into_iter();
        Telling(drives.map(|drive| self.start(drive, groups.clone())).collect())
    }

    fn start(&self, drive: DirectDrive, groups: Vec<Group>) -> oneshot::Receiver<()> {
        let (done, told) = oneshot::channel();
        self.env.spawn(Box::pin(async move {
            if groups.is_empty() {
                drive.revoke_all().await;
            } else {
                drive.revoke(&groups).await;
            }
            _ = done.send(());
        }));
        told
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use afs_sim::Sim;
    use afs_wire::ids::{Uniquifier, VnodeId};

    use super::*;

    #[test]
    fn a_full_table_revokes_all_and_goes_on() {
        let sim = Sim::new(1);
        let env = sim.env(sim.node("server", IpAddr::from([10, 0, 0, 1])));
        let layouts = Layouts::new(&env, &Partitions::new([]));
        let fid = |n: usize| Fid { volume: VolumeId(7), vnode: VnodeId(n as u32), unique: Uniquifier(1) };
        let enter = |n| {
            let mut entered = std::pin::pin!(layouts.enter(fid(n), fid(1)));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(entered.as_mut().poll(&mut context).is_ready(), "there is no drive to tell");
        };
        (0..FILES_MAX).for_each(enter);
        assert_eq!(layouts.files.lock().len(), FILES_MAX);
        enter(5);
        assert_eq!(layouts.files.lock().len(), FILES_MAX, "it is there already");
        enter(FILES_MAX);
        assert_eq!(layouts.files.lock().len(), 1, "all others were revoked");
    }
}
