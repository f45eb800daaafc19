//! Addresses: of a bucket with a prefix, and of the endpoint of a store.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::ConfigError;

/// A bucket, and the prefix of a drive in it: `s3://BUCKET/PREFIX`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketAddress {
    pub(crate) bucket: String,
    /// Without `/` at its ends; not empty.
    pub(crate) prefix: String,
}

impl fmt::Display for BucketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

impl FromStr for BucketAddress {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        read_bucket(text).ok_or_else(|| ConfigError::Address(shortened(text)))
    }
}

fn read_bucket(text: &str) -> Option<BucketAddress> {
    let (bucket, prefix) = text.strip_prefix("s3://")?.split_once('/')?;
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    // The names of buckets: Amazon S3 User Guide, "General purpose bucket naming rules".
    let good_bucket = (3..=63).contains(&bucket.len()) && bucket.bytes().all(plain);
    let good_part = |part: &str| !part.is_empty() && part.bytes().all(plain) && part != "." && part != "..";
    let good_prefix = prefix.len() <= PREFIX_MAX && prefix.split('/').all(good_part);
    (good_bucket && good_prefix).then(|| BucketAddress { bucket: bucket.into(), prefix: prefix.into() })
}

/// Longest prefix. A key has at most 1024 bytes.
const PREFIX_MAX: usize = 512;

/// The endpoint of a store: `https://HOST[:PORT]`, or `http://HOST[:PORT]` without encryption.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    pub(crate) secure: bool,
    /// A host name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Endpoint {
    /// As an address, and the header `Host`, have it: without the port where it is that of the scheme.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.secure { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// Whether requests to it leave this machine.
    pub(crate) fn is_remote(&self) -> bool {
        let is_loopback = self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        !(is_loopback || self.host == "localhost")
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Endpoint {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        read_endpoint(text).ok_or_else(|| ConfigError::Endpoint(shortened(text)))
    }
}

fn read_endpoint(text: &str) -> Option<Endpoint> {
    let (scheme, rest) = text.split_once("://")?;
    let (secure, usual) = match scheme {
        "http" => (false, 80),
        "https" => (true, 443),
        _ => return None,
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port).filter(|port| !port.contains(':')).or(Some(""))),
            None => (rest, None),
        },
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    let port = port.map_or(Some(usual), |port| port.parse().ok().filter(|port| *port != 0))?;
    (!host.is_empty() && host.bytes().all(legal)).then(|| Endpoint { secure, host: host.into(), port })
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_read_as_written() {
        for text in ["s3://andrew/drive-1", "s3://a.b-c/example.org/partition_a/x"] {
            assert_eq!(text.parse::<BucketAddress>().unwrap().to_string(), text);
        }
        assert_eq!("s3://abc/x/".parse::<BucketAddress>().unwrap().prefix, "x");
        let long = format!("s3://abc/{}", "x".repeat(600));
        for bad in [
            "",
            "abc/x",
            "s3://abc",
            "s3://abc/",
            "s3://ab/x",
            "s3://abc//x",
            "s3://abc/a/../b",
            "s3://abc/a b",
            &long,
        ] {
            assert!(bad.parse::<BucketAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn endpoints_are_read_as_written() {
        for text in ["http://127.0.0.1:9000", "https://s3.example.org:443", "http://[::1]:9000"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        assert_eq!("https://s3.example.org/".parse::<Endpoint>().unwrap().port, 443);
        assert_eq!("http://[::1]".parse::<Endpoint>().unwrap().port, 80);
        for bad in [
            "",
            "s3.example.org",
            "ftp://a",
            "https://",
            "https://a:0",
            "https://a:x",
            "https://::1",
            "https://a/b",
        ] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }

    #[test]
    fn loopback_is_this_machine() {
        let remote = |text: &str| text.parse::<Endpoint>().unwrap().is_remote();
        assert!(!remote("http://127.0.0.1:1") && !remote("http://localhost:1") && !remote("http://[::1]:1"));
        assert!(remote("http://192.0.2.1:1") && remote("http://localhost.example.org"));
    }
}
