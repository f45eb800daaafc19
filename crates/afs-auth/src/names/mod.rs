//! Names: what a Kerberos principal is called in AFS, and whose people are our own.
//!
//! `docs/protocol/rxkad.md` "6.2 Kerberos 5" (name rules) and "10. Authorisation mapping on servers".

mod local;
mod translate;

pub use local::LocalNames;
pub use translate::{AfsName, NameError, afs_name};
