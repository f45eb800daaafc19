//! Path walk by cached directories and mount points, without calls.

use afs_wire::fs::FileKind;
use afs_wire::ids::{Fid, Rights, VolumeId};
use afs_wire::mountpoint::{Choice, MountPoint, MountTarget};
use afs_wire::volname;
use bytes::Bytes;

use crate::api::NodeId;
use crate::key::{CellIndex, Key, NodeTarget};
use crate::names::{cell_entry, components};
use crate::venus::Venus;
use crate::vnode::{Vnode, is_mount_point};

/// Limit of links followed in one walk.
const LINKS_MAX: u32 = 40;

/// Limit of the bytes in the names of a path.
const PATH_MAX: usize = 4096;

/// How far a walk came.
pub(super) struct Walked {
    /// The last target that is known.
    pub at: Option<NodeTarget>,
    /// The names that lead there.
    pub names: Vec<Vec<u8>>,
    /// Why the walk goes no further; `None`: it is at the end of the path.
    pub unknown: Option<String>,
}

/// Where a name leads.
enum Next {
    To(NodeTarget),
    /// A symbolic link with this text.
    Link(Bytes),
}

type Known<T> = std::result::Result<T, String>;

impl Venus {
    /// Follows a path as far as it is cached and the user may look up names.
    pub(super) fn walk_cached(&self, path: &[u8]) -> Walked {
        let at = self.kernel.nodes().node_target(NodeId::ROOT);
        let mut walked = Walked { at, names: Vec::new(), unknown: None };
        let (mut rest, mut links) = (components(path), 0);
        while let (Some(at), Some(name)) = (walked.at, rest.pop()) {
            if walked.names.iter().map(Vec::len).sum::<usize>() > PATH_MAX {
                walked.unknown = Some("it is longer than a path can be".into());
                return walked;
            }
            match self.next_cached(at, &name) {
                Ok(Next::To(target)) => walked.go(name, target),
                Ok(Next::Link(text)) if links < LINKS_MAX && text.first() != Some(&b'/') => {
                    links += 1;
                    rest.extend(components(&text));
                }
                Ok(Next::Link(text)) => {
                    let text = String::from_utf8_lossy(&text);
                    walked.unknown = Some(format!("it goes on by a symbolic link to '{text}'"));
                    return walked;
                }
                Err(why) => {
                    walked.unknown = Some(format!("'{}': {why}", String::from_utf8_lossy(&name)));
                    return walked;
                }
            }
        }
        walked
    }

    fn next_cached(&self, at: NodeTarget, name: &[u8]) -> Known<Next> {
        let key = match at {
            NodeTarget::Cells if name == b".." => return Ok(Next::To(at)),
            NodeTarget::Cells => {
                let entry = cell_entry(name).ok_or("this mount knows no such cell")?;
                let cell = self.location.cell_named(entry.cell).ok_or("this mount knows no such cell")?;
                return self.root_cached(cell, "root.cell", entry.tree.choice(), None).map(Next::To);
            }
            NodeTarget::Snapshots(..) => return self.held_child(at, name).map(Next::To),
            NodeTarget::Unreached(..) => return Err("the servers of the cell did not reply".into()),
            NodeTarget::Object(key) => key,
        };
        let dir = self.vnodes.peek(key).ok_or("the directory is not cached")?;
        self.require_known_lookup(&dir)?;
        if name == b".." && key.is_volume_root() {
            return Ok(Next::To(self.above_volume(key)));
        }
        match self.child_cached(&dir, name)? {
            NodeTarget::Object(child) => self.crossed_cached(child),
            other => Ok(Next::To(other)),
        }
    }

    fn require_known_lookup(&self, dir: &Vnode) -> Known<()> {
        if !dir.key.fid.is_directory() {
            return Err("what is before it is no directory, as far as is known".into());
        }
        let reported = self.reported_rights(dir);
        match reported.known() {
            Some(rights) if rights.contains(Rights::LOOKUP) => Ok(()),
            Some(_) if reported.is_for_user() => {
                Err("this user has no right to look up names in the directory".into())
            }
            _ => Err("the rights of this user in the directory are not known here".into()),
        }
    }

    /// The directory of the mount point through which a volume was entered last.
    fn above_volume(&self, root: Key) -> NodeTarget {
        let nodes = self.kernel.nodes();
        let entered = self.location.volume_of(root).and_then(|volume| volume.entered());
        let above = entered.and_then(|entered| nodes.node_target(entered.parent));
        above.or_else(|| nodes.node_target(NodeId::ROOT)).unwrap_or(NodeTarget::Object(root))
    }

    /// By the contents of the directory, or else by the names that the kernel was given.
    fn child_cached(&self, dir: &Vnode, name: &[u8]) -> Known<NodeTarget> {
        let key = dir.key;
        let found = dir.state().directory.as_ref().map(|directory| {
            let lookup = |name: &Vec<u8>| directory.blob().lookup(name).ok().flatten();
            self.names.candidates(name).iter().find_map(lookup)
        });
        match found {
            Some(Some((vnode, unique))) => Ok(NodeTarget::Object(key.sibling(vnode, unique))),
            Some(None) if self.names.is_snapshots_name(key, name) => {
                Ok(NodeTarget::Snapshots(key.cell, key.fid.volume))
            }
            Some(None) => Err("the directory has no such name, as it is cached".into()),
            None => self.held_child(NodeTarget::Object(key), name),
        }
    }

    fn held_child(&self, dir: NodeTarget, name: &[u8]) -> Known<NodeTarget> {
        let nodes = self.kernel.nodes();
        let child = nodes.held(dir).and_then(|node| nodes.child(node, name));
        child.ok_or_else(|| "the directory is not cached".into())
    }

    /// Crosses a mount point, and reads a link.
    fn crossed_cached(&self, key: Key) -> Known<Next> {
        let vnode = self.vnodes.peek(key);
        let status = vnode.as_ref().and_then(|vnode| vnode.state().status);
        let Some((vnode, status)) = vnode.zip(status).filter(|(_, it)| it.kind == FileKind::Symlink) else {
            return Ok(Next::To(NodeTarget::Object(key)));
        };
        let text = vnode.state().link.clone().ok_or("the text of the link is not cached")?;
        match is_mount_point(&status) {
            true => self.mounted_cached(&vnode, &text).map(Next::To),
            false => Ok(Next::Link(text)),
        }
    }

    fn mounted_cached(&self, vnode: &Vnode, text: &[u8]) -> Known<NodeTarget> {
        let key = vnode.key;
        let mount = MountPoint::parse(text).map_err(|_| "the mount point has no meaning")?;
        let unknown =
            || format!("the volume of the mount point ({}) is not known here", String::from_utf8_lossy(text));
        let container = self.location.volume_of(key).ok_or_else(unknown)?;
        let cell = match &mount.cell {
            None => Some(key.cell),
            Some(name) => self.location.cell_named(name.as_str()),
        };
        let cell = cell.ok_or_else(unknown)?;
        let choice = mount.choice(container.kind, cell == key.cell);
        let (name, number) = match &mount.target {
            MountTarget::Name(name) => (volname::split(name.as_str()).0.to_owned(), None),
            MountTarget::Id(id) | MountTarget::Object(id, ..) => (id.0.to_string(), Some(*id)),
        };
        let root = self.root_cached(cell, &name, choice, number).map_err(|_| unknown())?;
        match (&mount.target, root) {
            (MountTarget::Object(_, vnode, unique), NodeTarget::Object(root)) => {
                Ok(NodeTarget::Object(root.sibling(*vnode, *unique)))
            }
            (_, root) => Ok(root),
        }
    }

    /// The root of a volume whose location is known, however old.
    fn root_cached(
        &self,
        cell: CellIndex,
        name: &str,
        choice: Choice,
        number: Option<VolumeId>,
    ) -> Known<NodeTarget> {
        let volumes = self.location.volumes();
        let group =
            volumes.group(cell, name).map(|(group, _)| group).or_else(|| volumes.group_of_known(cell, name));
        let chosen = group.and_then(|group| group.choose(choice, number));
        let (id, _) = chosen.ok_or("its volume is not known here")?;
        Ok(NodeTarget::Object(Key::new(cell, Fid::root(id))))
    }
}

impl Walked {
    fn go(&mut self, name: Vec<u8>, target: NodeTarget) {
        self.at = Some(target);
        match name == b".." {
            true => drop(self.names.pop()),
            false => self.names.push(name),
        }
    }
}
