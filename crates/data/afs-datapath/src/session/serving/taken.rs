//! Bytes of a store, as they arrive at a drive.

use bytes::Bytes;

use super::grant::Grant;
use crate::frame::{Failure, RequestId};
use crate::session::Error;
use crate::session::link::Link;

/// The bytes of a store, as they arrive at a drive: those of all ranges, one after the other; or of a stream.
pub struct Taken {
    link: Link,
    id: RequestId,
    grant: Grant,
}

impl Taken {
    pub(super) fn new(link: Link, id: RequestId, grant: Grant) -> Self {
        Self { link, id, grant }
    }

    /// The next bytes, in pieces as they arrive (of up to 256 KiB); `None` after the last. At most 512 KiB wait here (of a stream
    /// 2 MiB), the rest at the client. Dropping the future loses no byte.
    ///
    /// # Errors
    /// [`Failure::Refused`] once the capability has expired or was revoked; [`Failure::Stalled`] if the client is gone, gave the
    /// store up, or sends nothing for too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let taken = self.link.take(self.id).await;
        self.grant.check()?;
        match taken {
            Ok(piece) => Ok(piece),
            Err(Error::Failed(failure)) => Err(failure),
            Err(_) => Err(Failure::Stalled),
        }
    }
}
