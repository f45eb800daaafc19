//! Host and port of a KDC, as in `krb5.conf`.

use super::ConfigError;
use std::fmt::{self, Display};
use std::net::Ipv6Addr;

/// Host and port of a KDC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KdcAddress {
    /// A host name or an address.
    pub host: String,
    /// The port, for UDP and TCP.
    pub port: u16,
}

impl KdcAddress {
    /// The standard port of a KDC.
    pub const PORT: u16 = 88;

    /// Parses `host`, `host:port`, `address` or `[address]:port`.
    ///
    /// # Errors
    /// A proxy (`https://...`), which is not supported, or an invalid address.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let wrong = |why| ConfigError::Kdc { text: text.to_owned(), why };
        if text.contains("//") {
            return Err(wrong("proxies are not supported; name a host"));
        }
        let (host, port) = split(text).ok_or_else(|| wrong("that is no host"))?;
        let port = match port {
            None => Self::PORT,
            Some(port) => {
                port.parse().ok().filter(|p| *p > 0).ok_or_else(|| wrong("its port is no number"))?
            }
        };
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        if host.is_empty() || !host.chars().all(is_good) {
            return Err(wrong("that is no host"));
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return if rest.is_empty() {
            Some((host, None))
        } else {
            Some((host, Some(rest.strip_prefix(':')?)))
        };
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Some((text, None));
    }
    Some(text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))))
}

impl Display for KdcAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for (text, shown) in [
            ("kdc.example.org", "kdc.example.org:88"),
            ("kdc.example.org:750", "kdc.example.org:750"),
            ("192.0.2.1", "192.0.2.1:88"),
            ("2001:db8::1", "[2001:db8::1]:88"),
            ("[2001:db8::1]:750", "[2001:db8::1]:750"),
            ("[2001:db8::1]", "[2001:db8::1]:88"),
        ] {
            assert_eq!(KdcAddress::parse(text).unwrap().to_string(), shown);
        }
        for bad in ["", ":88", "a:b", "a:0", "a:70000", "https://a/KdcProxy", "a b", "[::1", "[::1]x"] {
            assert!(KdcAddress::parse(bad).is_err(), "{bad}");
        }
    }
}
