//! Properties of objects and of the mount: what tools read and set, by name.
//!
//! They are no extended attributes: what a program copies with a file is the file's own, and these are not. Tools ask for them over
//! the mount's token socket. Names as in kAFS where it has them (docs/protocol/client.md "6. How tools reach the cache manager").

use afs_rpc::boxed;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::{NodeId, Unpromised};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::{Key, NodeTarget};
use crate::location::{Server, Volume};
use crate::names::checked;
use crate::venus::Venus;
use crate::vnode::is_mount_point;

/// Prefix of the property that shows the target of a mount point.
const LSMOUNT: &str = "afs.lsmount.";
/// Property of what is read without a promise.
const UNPROMISED: &str = "afs.unpromised";

impl Venus {
    /// A property of a node.
    ///
    /// | Name | Value |
    /// | --- | --- |
    /// | `afs.access` | rights of the user on the object, letters of `rlidwka`; asked for where they are not known |
    /// | `afs.acl` (also set) | access list, text of OpenAFS: counts, then `name TAB rights` a line |
    /// | `afs.past` (also set) | JSON: the snapshots and the user's rights in the directory there; set to `close` or `open` |
    /// | `afs.bypass` (also set) | JSON: whether the file is read past the disk cache, and why; set to `on`, `off` or `auto` |
    /// | `afs.cell` | cell; `dynroot` of the directory of all cells |
    /// | `afs.fid` | `volume.vnode.uniquifier` |
    /// | `afs.volume` | name of the volume |
    /// | `afs.mount` | text of the mount point by which this volume's root was entered |
    /// | `afs.whereis` | addresses of the servers that have the volume, one a line |
    /// | `afs.volstatus` | JSON: state, quota and use of the volume |
    /// | `afs.quota` (also set) | quota in KiB; 0 is none |
    /// | `afs.offlinemsg` (also set) | message of the volume that tells why it is off line; at most 127 bytes, and never set to nothing |
    /// | `afs.status` | JSON: the cached state of the object |
    /// | `afs.counters` | JSON: counters of Venus |
    /// | `afs.datapath` | use of the data path of each known file server: `address state`, one a line |
    /// | `afs.clocks` | how far the clock of each known file server is ahead of this machine's: `address seconds`, one a line |
    /// | `afs.unpromised` | JSON, while the object is read as it was last promised because no server replies (a pin for that): since when, and as of when |
    /// | `afs.settled` | nothing; read when the kernel has applied all invalidations |
    /// | `afs.lsmount.NAME` | text of the mount point NAME in this directory |
    /// | `afs.rmmount` (only set) | name of a mount point in this directory to remove |
    /// | `afs.flush` (only set) | removes cached data of: `file` (or nothing), `volume`, `all`; locations of volumes alone: `locations` |
    ///
    /// # Errors
    /// There is no such property; the user may not read it; no server replies.
    #[boxed]
    pub async fn property(&self, node: NodeId, name: &[u8]) -> Result<Bytes> {
        let name = std::str::from_utf8(name).map_err(|_| unknown())?;
        if name == "afs.counters" {
            return Ok(self.counters.values().to_json().into());
        }
        if name == "afs.datapath" {
            return Ok(self.data_paths().into());
        }
        if name == "afs.clocks" {
            return Ok(self.server_clocks().into());
        }
        if name == "afs.settled" {
            self.kernel.settled().await;
            return Ok(Bytes::new());
        }
        if name == UNPROMISED {
            return self.unpromised_told(node);
        }
        if !name.starts_with("afs.") {
            return Err(unknown());
        }
        let key = match self.node_target(node)? {
            NodeTarget::Object(key) => key,
            // OpenAFS's name for the cell of the directory of all cells.
            NodeTarget::Cells if name == "afs.cell" => return Ok(Bytes::from_static(b"dynroot")),
            NodeTarget::Unreached(cell, tree) => return Err(self.not_entered(cell, tree).await),
            NodeTarget::Cells | NodeTarget::Snapshots(..) => return Err(unknown()),
        };
        let volume = self.volume_of(key).await?;
        let fid = key.fid;
        let text = match name {
            "afs.fid" => format!("{}.{}.{}", fid.volume, fid.vnode, fid.unique),
            "afs.cell" => self.cell(key)?.name.to_string(),
            "afs.volume" => format!("{}{}", volume.group().name, volume.kind.suffix()),
            "afs.mount" => volume.entered().filter(|_| key.is_volume_root()).ok_or(unknown())?.text,
            "afs.access" => self.caller_access(key, &volume).await?,
            "afs.acl" => return self.acl(key, &volume).await,
            "afs.past" => self.pasts_told(key, &volume).await?,
            "afs.bypass" => self.bypass_told(key).await?,
            "afs.whereis" => self.whereis(&volume),
            "afs.volstatus" => self.volstatus(&volume).await?,
            "afs.quota" => self.volume_status(&volume).await?.status.quota_max.to_string(),
            "afs.offlinemsg" => self.volume_status(&volume).await?.offline_message.to_text(),
            "afs.status" => self.cache_status(key, &volume).await?,
            _ => match name.strip_prefix(LSMOUNT) {
                Some(entry) => return self.lsmount(key, entry.as_bytes()).await,
                None => return Err(unknown()),
            },
        };
        Ok(text.into())
    }

    /// Sets a property of a node, one of those that [`Venus::property`] marks so.
    ///
    /// # Errors
    /// It cannot be set; the value is invalid; the user may not set it; no server replies.
    #[boxed]
    pub async fn set_property(&self, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        match (name, self.node_target(node)?) {
            (b"afs.flush", node_target) => self.flush_cached(node_target, value).await,
            (b"afs.rmmount", _) => self.remove_mount_point(node, value).await,
            (b"afs.acl", NodeTarget::Object(key)) => self.set_acl(key, value).await,
            (b"afs.past", NodeTarget::Object(key)) => self.set_past(key, value).await,
            (b"afs.bypass", NodeTarget::Object(key)) => self.request_bypass(key, value).await,
            (b"afs.quota", NodeTarget::Object(key)) => self.set_quota(key, value).await,
            (b"afs.offlinemsg", NodeTarget::Object(key)) => self.set_offline_message(key, value).await,
            _ => Err(VenusError::new(ErrorKind::NotSupported, "set a property")),
        }
    }

    fn unpromised_at(&self, node: NodeId) -> Option<Unpromised> {
        let NodeTarget::Object(key) = self.node_target(node).ok()? else { return None };
        self.unpromised(key)
    }

    fn unpromised_told(&self, node: NodeId) -> Result<Bytes> {
        let Unpromised { since_seconds_ago, as_of_seconds_ago } = self.unpromised_at(node).ok_or(unknown())?;
        let text = format!(
            "{{\"since_seconds_ago\":{since_seconds_ago},\"as_of_seconds_ago\":{as_of_seconds_ago}}}"
        );
        Ok(text.into())
    }

    fn data_paths(&self) -> String {
        let line = |server: &Arc<Server>| {
            let address = server.addresses().first()?.peer.ip();
            Some(format!("{address} {}\n", self.transfer.path_state(server)))
        };
        self.location.servers().all().iter().filter_map(line).collect()
    }

    fn server_clocks(&self) -> String {
        let line = |server: &Arc<Server>| {
            Some(format!("{} {}\n", server.addresses().first()?.peer.ip(), server.clock.ahead()?))
        };
        self.location.servers().all().iter().filter_map(line).collect()
    }

    fn whereis(&self, volume: &Volume) -> String {
        let addresses = volume.sites(self.now()).into_iter().flat_map(|server| server.addresses());
        let mut text = String::new();
        for address in addresses {
            text.push_str(&address.peer.ip().to_string());
            text.push('\n');
        }
        text
    }

    async fn volstatus(&self, volume: &Arc<Volume>) -> Result<String> {
        let reply = self.volume_status(volume).await?;
        let status = reply.status;
        Ok(format!(
            "{{\"id\":{},\"parent\":{},\"name\":{},\"kind\":\"{}\",\"online\":{},\"in_service\":{},\"blessed\":{},\
             \"needs_salvage\":{},\"quota_kib\":{},\"used_kib\":{},\"partition_free_kib\":{},\"partition_kib\":{},\
             \"offline_message\":{}}}",
            volume.id,
            status.parent,
            json_text(&reply.name.to_text()),
            volume.kind,
            status.online,
            status.in_service,
            status.blessed,
            status.needs_salvage,
            status.quota_max,
            status.blocks_used,
            status.partition_blocks_free,
            status.partition_blocks,
            json_text(&reply.offline_message.to_text()),
        ))
    }

    async fn caller_access(&self, key: Key, volume: &Arc<Volume>) -> Result<String> {
        let vnode = self.vnode(key);
        let status = self.status(&vnode).await?;
        // None are enough: all of them are to be known.
        Ok(self.rights_on(&vnode, volume, &status, |_| false).await?.to_string())
    }

    async fn cache_status(&self, key: Key, volume: &Arc<Volume>) -> Result<String> {
        let vnode = self.vnode(key);
        let known = vnode.state().status;
        if let Some(status) = known {
            self.require_visible(&vnode, volume, &status).await?;
        }
        let promised = vnode.fresh_status(volume, self.now()).is_some();
        let state = vnode.state();
        let (here, unsaved, failures) = match state.file.data() {
            Some(data) => {
                let content = data.content();
                (content.present.bytes(), content.dirty_bytes(), content.failures)
            }
            None => (0, 0, 0),
        };
        let version = state.status.map_or(0, |status| status.data_version.0);
        Ok(format!(
            "{{\"promised\":{promised},\"data_version\":{version},\"opens\":{},\"open_bytes_here\":{here},\
             \"unsaved_bytes\":{unsaved},\"failed_stores\":{failures}}}",
            state.file.opens()
        ))
    }

    async fn lsmount(&self, dir: Key, name: &[u8]) -> Result<Bytes> {
        checked(name)?;
        let (child, status) = self.child(&self.vnode(dir), name).await?;
        if !is_mount_point(&status) {
            return Err(VenusError::new(ErrorKind::Invalid, "lsmount").of(child.key.fid));
        }
        self.link_text(&child).await
    }
}

/// A text as a JSON string.
fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn unknown() -> VenusError {
    VenusError::new(ErrorKind::NoProperty, "property")
}
