//! Record of the capabilities that a script was given, apart from the tables of the crate: what objects are asked for is compared with it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use afs_datapath::capability::{Access, Capability, Group, StagingTag, StoreNumber};
use afs_env::EnvRef;
use afs_wire::xdr::Encode;

/// What was given and presented with a right proof, and whether it was revoked since.
pub struct Issued {
    env: EnvRef,
    all: Mutex<BTreeMap<Vec<u8>, (Capability, bool)>>,
}

impl Issued {
    /// `env` is that of the drive, whose clock counts.
    pub fn new(env: EnvRef) -> Self {
        Self { env, all: Mutex::default() }
    }

    pub fn add(&self, capability: Capability) {
        let current = (capability, true);
        self.all.lock().unwrap().entry(capability.to_bytes().to_vec()).or_insert(current);
    }

    /// A capability to manage chunks is not revoked: who has it has the key.
    pub fn revoke(&self, group: Option<Group>) {
        for (capability, is_current) in self.all.lock().unwrap().values_mut() {
            let is_managers = matches!(capability.group, Group::Chunks(_));
            if group.is_none_or(|group| covers(group, capability.group)) && !is_managers {
                *is_current = false;
            }
        }
    }

    /// The key is another one.
    pub fn forget(&self) {
        self.all.lock().unwrap().values_mut().for_each(|(_, is_current)| *is_current = false);
    }

    /// Whether a capability is good now.
    pub fn is_good(&self, capability: &Capability) -> bool {
        let is_current = self
            .all
            .lock()
            .unwrap()
            .get(&capability.to_bytes().to_vec())
            .is_some_and(|(_, current)| *current);
        is_current && capability.expires > self.env.wall().secs
    }

    /// Whether there is a good capability with an access, for a group that `covers` says.
    fn has(&self, access: Access, covers: impl Fn(Group) -> bool) -> bool {
        let now = self.env.wall().secs;
        self.all.lock().unwrap().values().any(|(capability, is_current)| {
            *is_current
                && capability.expires > now
                && capability.access.permits(access)
                && covers(capability.group)
        })
    }

    pub fn may_manage(&self, store: StoreNumber) -> bool {
        self.has(Access::MANAGE, |group| group == Group::Chunks(store))
    }

    pub fn may_read_bound(&self) -> bool {
        self.has(Access::READ, |group| matches!(group, Group::Tagged(_)))
    }

    pub fn may_stage(&self, store: StoreNumber, tag: StagingTag) -> bool {
        self.has(Access::WRITE, |group| group == Group::Staged(store, tag))
    }
}

/// Whether the end of one group's rights is that of another's: a volume's is that of its files and directories.
fn covers(ended: Group, of: Group) -> bool {
    match (ended, of) {
        (Group::Volume(volume), Group::File(fid) | Group::Directory(fid)) => volume == fid.volume,
        _ => ended == of,
    }
}
