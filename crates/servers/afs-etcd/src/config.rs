//! Endpoints and credentials of an etcd cluster.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use zeroize::Zeroizing;

use crate::ConfigError;

/// A store in etcd.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// Its endpoints; the nearest first. At least one.
    pub endpoints: Vec<Endpoint>,
    /// Prefix of the cell's keys.
    pub prefix: String,
    /// User and password, if etcd requires them.
    pub user: Option<(String, Password)>,
    /// Certificates for TLS, of its servers and of this one.
    pub tls: TlsFiles,
}

/// A user's password. Never printed, and wiped.
#[derive(Clone)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// A password.
    #[must_use]
    pub fn new(password: String) -> Self {
        Password(Zeroizing::new(password))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// Files in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// Certificates of the authorities of etcd's servers. Needed for https.
    pub authority: Option<PathBuf>,
    /// The certificate of this server.
    pub certificate: Option<PathBuf>,
    /// The key of that certificate.
    pub key: Option<PathBuf>,
}

/// One endpoint of the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    pub(crate) secure: bool,
    /// A host name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Endpoint {
    pub(crate) fn authority(&self) -> String {
        let host = &self.host;
        if host.contains(':') { format!("[{host}]:{}", self.port) } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.secure { "https" } else { "http" }, self.authority())
    }
}

impl FromStr for Endpoint {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        read(text).ok_or_else(|| ConfigError::Endpoint(text.chars().take(80).collect()))
    }
}

fn read(text: &str) -> Option<Endpoint> {
    let (scheme, rest) = text.split_once("://")?;
    let secure = match scheme {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let (host, port) = rest.strip_suffix('/').unwrap_or(rest).rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']')?,
        None => Some(host).filter(|host| !host.contains(':'))?,
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    if host.is_empty() || !host.bytes().all(legal) {
        return None;
    }
    Some(Endpoint { secure, host: host.into(), port: port.parse().ok().filter(|port| *port != 0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_as_written() {
        for text in ["http://127.0.0.1:2379", "https://etcd-1.example.org:2379", "http://[::1]:2379"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        assert_eq!("http://a:1/".parse::<Endpoint>().unwrap().port, 1);
        for bad in
            ["", "a:1", "ftp://a:1", "http://a", "http://a:0", "http://:1", "http://a b:1", "http://::1:2"]
        {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let config = EtcdConfig {
            endpoints: vec![],
            prefix: "/a".into(),
            user: Some(("root".into(), Password::new("sesame".into()))),
            tls: TlsFiles::default(),
        };
        assert!(!format!("{config:?}").contains("sesame"));
    }
}
