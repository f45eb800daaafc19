//! Signature of a GET of a range in the query of its address (Amazon S3 API Reference, "Authenticating Requests: Using Query
//! Parameters (AWS Signature Version 4)").

use std::fmt::Write;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use object_store::aws::AwsCredential;
use sha2::{Digest, Sha256};

/// A request that an address is to permit.
pub(crate) struct SignedGet<'a> {
    pub(crate) region: &'a str,
    /// As the request's header `Host` has it.
    pub(crate) host: &'a str,
    /// Of the object, with a `/` before it; without bytes that would have to be escaped.
    pub(crate) path: &'a str,
    /// What the request's header `Range` must name, or it is refused. Without, the address would permit all of the object.
    pub(crate) range: Option<Range<u64>>,
    pub(crate) at: SystemTime,
    pub(crate) seconds: u32,
}

/// The value of the header `Range` for a range that is not empty.
pub(crate) fn range_header(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start, range.end.saturating_sub(1))
}

impl SignedGet<'_> {
    /// Path and query of the address.
    pub(crate) fn target(&self, credential: &AwsCredential) -> String {
        let time = timestamp(self.at);
        let date = time.get(..8).unwrap_or_default();
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let query = self.query(credential, &time, &scope);
        let request = self.canonical(&query);
        let signed =
            format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(request.as_bytes())));
        let first = [b"AWS4", credential.secret_key.as_bytes()].concat();
        let key = [date, self.region, "s3", "aws4_request"]
            .iter()
            .fold(first, |key, part| authenticated(&key, part.as_bytes()));
        format!("{}?{query}&X-Amz-Signature={}", self.path, hex(&authenticated(&key, signed.as_bytes())))
    }

    /// The query without the signature, its names in order.
    fn query(&self, credential: &AwsCredential, time: &str, scope: &str) -> String {
        let holder = escaped(&format!("{}/{scope}", credential.key_id));
        let token = credential.token.as_ref();
        let token =
            token.map_or_else(String::new, |token| format!("&X-Amz-Security-Token={}", escaped(token)));
        let headers = escaped(self.headers());
        format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={holder}&X-Amz-Date={time}&X-Amz-Expires={}{token}&X-Amz-SignedHeaders={headers}",
            self.seconds
        )
    }

    fn headers(&self) -> &'static str {
        if self.range.is_some() { "host;range" } else { "host" }
    }

    fn canonical(&self, query: &str) -> String {
        let range = self.range.as_ref().map(|range| format!("range:{}\n", range_header(range)));
        let (path, host, headers) = (self.path, self.host, self.headers());
        format!(
            "GET\n{path}\n{query}\nhost:{host}\n{}\n{headers}\nUNSIGNED-PAYLOAD",
            range.unwrap_or_default()
        )
    }
}

fn authenticated(key: &[u8], message: &[u8]) -> Vec<u8> {
    // A key of any length is accepted: longer ones are hashed (RFC 2104).
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()));
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// As in a query: all but the unreserved characters of RFC 3986 are escaped.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => escaped.push(byte.into()),
            false => _ = write!(escaped, "%{byte:02X}"),
        }
        escaped
    })
}

/// The time in the basic format of ISO 8601, in UTC: `20130524T000000Z`.
fn timestamp(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Year, month and day of the Gregorian calendar, so many days after 1 January 1970. A year is taken to begin in March, so that the leap
/// day is its last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn credential(token: Option<&str>) -> AwsCredential {
        AwsCredential {
            key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            token: token.map(str::to_owned),
        }
    }

    fn get(range: Option<Range<u64>>) -> SignedGet<'static> {
        // 24 May 2013.
        let at = UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let (region, host, path) = ("us-east-1", "examplebucket.s3.amazonaws.com", "/test.txt");
        SignedGet { region, host, path, range, at, seconds: 86_400 }
    }

    fn signature(target: &str) -> &str {
        target.rsplit_once("&X-Amz-Signature=").unwrap().1
    }

    #[test]
    fn the_published_example_is_signed_as_published() {
        let target = get(None).target(&credential(None));
        assert_eq!(
            target,
            "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        );
    }

    #[test]
    fn the_signature_covers_range_object_host_time_and_life() {
        let one = get(Some(24..1048));
        let of_one = one.target(&credential(None));
        assert!(of_one.contains("&X-Amz-SignedHeaders=host%3Brange&"), "{of_one}");
        assert!(
            one.canonical("")
                .contains("\nhost:examplebucket.s3.amazonaws.com\nrange:bytes=24-1047\n\nhost;range\n")
        );
        let others = [
            SignedGet { range: Some(24..1049), ..get(None) },
            SignedGet { range: Some(1048..2000), ..get(None) },
            SignedGet { range: None, ..get(None) },
            SignedGet { path: "/other.txt", ..get(Some(24..1048)) },
            SignedGet { host: "other.s3.amazonaws.com", ..get(Some(24..1048)) },
            SignedGet { region: "eu-west-1", ..get(Some(24..1048)) },
            SignedGet { seconds: 60, ..get(Some(24..1048)) },
            SignedGet { at: UNIX_EPOCH + Duration::from_secs(1_369_353_601), ..get(Some(24..1048)) },
        ];
        for other in others {
            assert_ne!(signature(&other.target(&credential(None))), signature(&of_one));
        }
    }

    #[test]
    fn a_session_token_is_escaped_and_signed() {
        let target = get(Some(0..1)).target(&credential(Some("a/b+c=")));
        assert!(target.contains("&X-Amz-Security-Token=a%2Fb%2Bc%3D&X-Amz-SignedHeaders="), "{target}");
        assert_ne!(signature(&target), signature(&get(Some(0..1)).target(&credential(Some("a/b+c")))));
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "19700101T000000Z");
        assert_eq!(at(951_782_399), "20000228T235959Z");
        assert_eq!(at(951_782_400), "20000229T000000Z");
        assert_eq!(at(1_709_251_199), "20240229T235959Z");
        assert_eq!(at(1_735_689_599), "20241231T235959Z");
        assert_eq!(at(4_107_542_400), "21000301T000000Z");
    }
}
