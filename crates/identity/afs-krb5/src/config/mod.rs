//! Kerberos's own configuration: `krb5.conf`.

mod error;
mod kdc;
mod line;
mod profile;
mod source;

pub use error::ConfigError;
pub use kdc::KdcAddress;
pub use profile::Profile;
