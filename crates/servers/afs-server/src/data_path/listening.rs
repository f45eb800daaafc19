//! The listener of the data path: accepts connections, and tells clients where it is.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_datapath::session::{Counts, Identity, Offer, accept};

use super::offer::DriveOffer;
use crate::file::FileServer;

/// How a file server offers its data path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPathOptions {
    /// Where it listens; port 0 chooses one.
    pub listen: SocketAddr,
    /// The addresses that clients are told, at most 16; none means those of the file server.
    pub addresses: Vec<Ipv4Addr>,
    /// Whether clients may come without TLS, where nothing is required of the protection of bytes.
    pub clear: bool,
    /// Bytes below which clients are told to use calls.
    pub minimum_size: u64,
}

impl FileServer {
    /// Begins to serve the data path, with a new key. Without this, clients are told that there is none.
    ///
    /// # Errors
    /// The address cannot be bound, or no key can be made; there is no data path then.
    pub fn open_data_path(self: &Arc<Self>, options: &DataPathOptions) -> io::Result<SocketAddr> {
        let identity = Identity::generate(&*self.env).map_err(io::Error::other)?;
        let listener = self.env.listen(options.listen)?;
        let at = listener.local_addr();
        self.data_path.set_offer(Some(DriveOffer {
            port: at.port(),
            clear: options.clear,
            minimum_size: options.minimum_size,
            addresses: options.addresses.clone(),
            fingerprint: identity.fingerprint().0,
        }));
        let offer = if options.clear { Offer::tls_or_clear(identity) } else { Offer::tls(identity) };
        let drive = self.data_path.drive().clone();
        self.env.spawn(Box::pin(accept(self.env.clone(), listener, offer, drive)));
        Ok(at)
    }

    /// Ends the data path, for good: its connections are closed, and clients are told that there is none. Stores
    /// whose bytes have all arrived may still be committed.
    pub fn close_data_path(&self) {
        self.data_path.set_offer(None);
        self.data_path.drive().stop();
    }

    /// What the drive has done so far.
    pub fn data_path_counts(&self) -> Counts {
        self.data_path.drive().counts()
    }
}
