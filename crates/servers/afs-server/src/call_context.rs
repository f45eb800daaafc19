//! One call by an identified client: who calls, from where, and which codes it understands.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use afs_rpc::Identity;
use afs_wire::error::{AbortCode, Errno};

use crate::hosts::Host;
use crate::subject::Subject;

/// One call by an identified client.
pub(crate) struct CallContext {
    pub(crate) host: Arc<Host>,
    pub(crate) subject: Subject,
    pub(crate) identity: Identity,
    /// The address that the call comes from, and with the port.
    pub(crate) address: IpAddr,
    pub(crate) peer: SocketAddr,
}

impl CallContext {
    /// The code in the form that this client understands: clients that do not know translated error numbers
    /// get Linux ones (docs/protocol fileserver.md "9.2 errno ↔ UAE translation").
    pub(crate) fn code(&self, code: AbortCode) -> AbortCode {
        if self.host.translates() { code } else { untranslated(code) }
    }
}

/// The Linux error number for a translated one; other codes unchanged.
pub(crate) fn untranslated(code: AbortCode) -> AbortCode {
    let first = Errno::EPERM.to_uae().0;
    if code.0 < first || code.0 > first + UAE_SPAN {
        return code;
    }
    AbortCode(code.to_errno().unwrap_or(code.0))
}

/// Number of translated error numbers (docs/protocol fileserver.md "9.2 errno ↔ UAE translation").
const UAE_SPAN: i32 = 130;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_clients_get_linux_numbers() {
        assert_eq!(untranslated(Errno::EACCES.to_uae()), AbortCode(13));
        assert_eq!(untranslated(Errno::EDQUOT.to_uae()), AbortCode(122));
        for code in [AbortCode::VNOVOL, AbortCode::RXGEN_OPCODE, AbortCode::VL_NOENT] {
            assert_eq!(untranslated(code), code);
        }
    }
}
