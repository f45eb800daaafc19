//! Names: translation of Kerberos principals to AFS names, and the cell's own realms.
//!
//! `docs/protocol/rxkad.md` "6.2 Kerberos 5" (name rules) and "10. Authorisation mapping on servers".

mod local;
mod translate;

pub use local::LocalNames;
pub use translate::{AfsName, NameError, afs_name};
