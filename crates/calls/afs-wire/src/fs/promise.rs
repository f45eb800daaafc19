//! Callback promises, and volume synchronisation.

use crate::ids::UnixSeconds;
use crate::xdr::{Decode, DecodeError, Encode, Reader};

id! {
    /// Kind of a callback promise. Servers send [`CallBackKind::SHARED`]; [`CallBackKind::LOCK_FREE`] is Andrew's own, and
    /// the others are historic.
    pub struct CallBackKind(u32);
}

impl CallBackKind {
    /// No promise.
    pub const NONE: Self = Self(0);
    /// No other client has one.
    pub const EXCLUSIVE: Self = Self(1);
    /// Other clients may have one too.
    pub const SHARED: Self = Self(2);
    /// The promise is broken.
    pub const DROPPED: Self = Self(3);
    /// Not a promise, and none is broken: a lock that the client was refused is free for it until its reply
    /// (`docs/protocol/extensions.md` "A lock that is free").
    pub const LOCK_FREE: Self = Self(0x414E_4434);
}

/// A promise to call back before an object's status or data changes: `AFSCallBack`, 12 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallBack {
    /// 1 when there is a promise, 2 when it covers the rights in the status as well ([`CallBack::covers_rights`]).
    pub version: u32,
    /// Seconds from now until the promise expires; 0 is no promise. **Relative**, in spite of the field's name in the
    /// protocol (`docs/protocol/fileserver.md` "15. Traps", T2).
    pub expires_in: u32,
    /// Kind of promise.
    pub kind: CallBackKind,
}

impl CallBack {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 12;
    /// No promise.
    pub const NONE: Self = Self { version: 0, expires_in: 0, kind: CallBackKind::NONE };

    /// The message that a lock is free.
    pub const LOCK_FREE: Self = Self { version: 1, expires_in: 0, kind: CallBackKind::LOCK_FREE };

    /// A promise for this many seconds, as servers send it.
    pub const fn shared(expires_in: u32) -> Self {
        Self { version: 1, expires_in, kind: CallBackKind::SHARED }
    }

    /// The same promise, which covers the rights of the caller too: the server breaks [`Fid::RIGHTS`](crate::ids::Fid::RIGHTS)
    /// when they may have changed without a change of the object.
    pub const fn with_rights(self) -> Self {
        Self { version: 2, ..self }
    }

    /// Whether the promise covers the rights of the caller.
    pub const fn covers_rights(&self) -> bool {
        self.version == 2
    }
}

impl Encode for CallBack {
    fn encode(&self, out: &mut Vec<u8>) {
        [self.version, self.expires_in, self.kind.0].encode(out);
    }
}

impl Decode for CallBack {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [version, expires_in, kind] = <[u32; 3]>::decode(r)?;
        Ok(Self { version, expires_in, kind: CallBackKind(kind) })
    }
}

/// Detects that a whole volume was replaced: `AFSVolSync`, 24 bytes of which one word is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolSync {
    /// Creation time of this instance of the volume. Changes when a read-only volume is released or a volume
    /// restored.
    pub creation: UnixSeconds,
}

impl VolSync {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 24;
}

impl Encode for VolSync {
    fn encode(&self, out: &mut Vec<u8>) {
        [self.creation.0, 0, 0, 0, 0, 0].encode(out);
    }
}

impl Decode for VolSync {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [creation, _, _, _, _, _] = <[UnixSeconds; 6]>::decode(r)?;
        Ok(Self { creation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(CallBack::shared(14400).to_bytes(), [0, 0, 0, 1, 0, 0, 0x38, 0x40, 0, 0, 0, 2]);
        let sync = VolSync { creation: UnixSeconds(0x01020304) };
        assert_eq!(sync.to_bytes().len(), VolSync::WIRE_LEN);
        assert_eq!(VolSync::from_bytes(&sync.to_bytes()), Ok(sync));
    }
}
