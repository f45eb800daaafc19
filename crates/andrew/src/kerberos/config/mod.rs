//! Kerberos's own configuration: `krb5.conf`.

mod kdc;
mod line;
mod profile;
mod source;

pub use kdc::KdcAddress;
pub use profile::Profile;
