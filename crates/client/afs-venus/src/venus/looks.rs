//! Names that other machines replace while they are looked up: looks are repeated while each finds another object.
//!
//! The object that a look finds may be removed before its status or its data are here. If the next look finds another
//! object, another machine has replaced the name meanwhile, and the name is looked at again. If it finds the same object,
//! the server contradicts itself, or a reply was late: few such looks are made. The kernel repeats a look-up once after
//! ESTALE, and passes a second ESTALE on to the program.

use afs_rpc::boxed;
use afs_wire::ids::Fid;

use crate::api::{Entry, Kind, NodeId, OpenFlags, Opened};
use crate::error::{ErrorKind, Result, VenusError};
use crate::venus::Venus;

/// Looks of one look-up, and look-ups of one open: 4,096 looks in all, if a server names another removed object each time.
const LOOKS_MAX: u32 = 64;
/// Looks that find the same object as the look before.
const SAME_MAX: u32 = 8;

/// The looks of one operation at one name.
#[derive(Default)]
pub(super) struct Looks {
    found: Option<Fid>,
    same: u32,
    all: u32,
}

impl Looks {
    /// Counts a look that ended with an error; returns whether the name is to be looked at again.
    pub(super) fn again(&mut self, error: &VenusError) -> bool {
        if error.kind != ErrorKind::Stale {
            return false;
        }
        self.all += 1;
        self.same += u32::from(self.found == error.fid);
        self.found = error.fid;
        let goes_on = self.all < LOOKS_MAX && self.same < SAME_MAX;
        if !goes_on {
            tracing::info!(looks = self.all, same = self.same, "a name is not looked at again: {error}");
        }
        goes_on
    }
}

impl Venus {
    /// Looks up a name and opens the file that it finds, until both succeed with one file. Other objects are not opened,
    /// nor is a file whose open fails for another reason than that it was replaced: its own open reports that. Like
    /// [`Venus::lookup`] it counts as one look-up of the node.
    #[boxed]
    pub async fn lookup_open(
        &self,
        parent: NodeId,
        name: &[u8],
        flags: OpenFlags,
    ) -> Result<(Entry, Option<Opened>)> {
        let mut looks = Looks::default();
        loop {
            let entry = self.lookup(parent, name).await?;
            if entry.attr.kind != Kind::File {
                return Ok((entry, None));
            }
            match self.open(entry.node, flags).await {
                Ok(opened) => return Ok((entry, Some(opened))),
                // That its object is gone is known now: the next look fetches the directory.
                Err(error) if looks.again(&error) => self.forget(entry.node, 1),
                Err(_) => return Ok((entry, None)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::ids::{VnodeId, VolumeId};

    fn stale(vnode: u32) -> VenusError {
        VenusError::new(ErrorKind::Stale, "open").of(Fid { vnode: VnodeId(vnode), ..Fid::root(VolumeId(1)) })
    }

    #[test]
    fn looks_go_on_while_each_finds_another_object_and_end() {
        let mut looks = Looks::default();
        assert!((1..LOOKS_MAX).all(|number| looks.again(&stale(number))));
        assert!(!looks.again(&stale(LOOKS_MAX)));
        let mut looks = Looks::default();
        assert!((0..SAME_MAX).all(|_| looks.again(&stale(1))));
        assert!(!looks.again(&stale(1)));
        assert!(!Looks::default().again(&VenusError::new(ErrorKind::NotFound, "lookup")));
    }
}
