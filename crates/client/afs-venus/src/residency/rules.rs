//! Decision table: what stays in the cache of a file (CITI TR 01-3, 5.3.2). The first rule that applies decides.

use crate::api::BypassRequest;
use crate::residency::Residency;

/// Marks volumes and files that bypass the cache, in front of their names.
const BYPASSES: &[u8] = b"__";
/// Marks files that are cached all the same.
const CACHED: &[u8] = b"++";

/// What the rules look at.
pub(crate) struct File<'a> {
    /// What its pins say; `None`: it belongs to none.
    pub pinned: Option<Residency>,
    pub request: BypassRequest,
    /// The name by which it was looked up last; empty if none is known any more.
    pub name: &'a [u8],
    /// The name of the volume, without the suffix of a copy.
    pub volume: &'a str,
    /// In bytes.
    pub length: u64,
}

/// What stays, and the rule that says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub residency: Residency,
    pub reason: &'static str,
}

/// Applies the rules. Files of at least `length_min` bytes bypass the cache.
pub(crate) fn judge(file: &File<'_>, length_min: Option<u64>) -> Verdict {
    let File { pinned, request, name, volume, length } = file;
    let (residency, reason) = match (pinned, request) {
        (Some(pinned), _) => (*pinned, "pin"),
        (None, BypassRequest::On) => (Residency::Past, "request"),
        (None, BypassRequest::Off) => (Residency::Always, "request"),
        _ if name.starts_with(CACHED) => (Residency::Always, "file name"),
        _ if name.starts_with(BYPASSES) => (Residency::Past, "file name"),
        _ if volume.as_bytes().starts_with(BYPASSES) => (Residency::Past, "volume name"),
        _ if length_min.is_some_and(|min| *length >= min) => (Residency::Past, "length"),
        _ => (Residency::Cached, "none"),
    };
    Verdict { residency, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(request: BypassRequest, name: &str, volume: &str, length: u64) -> (Residency, &'static str) {
        let verdict =
            judge(&File { pinned: None, request, name: name.as_bytes(), volume, length }, Some(1000));
        (verdict.residency, verdict.reason)
    }

    #[test]
    fn names_decide_as_in_the_report() {
        let auto = |name, volume| judged(BypassRequest::Auto, name, volume, 999);
        assert_eq!(auto("film", "video"), (Residency::Cached, "none"));
        assert_eq!(auto("film", "__video.data"), (Residency::Past, "volume name"));
        assert_eq!(auto("__DontCacheMe", "video"), (Residency::Past, "file name"));
        assert_eq!(auto("++CacheThisFile", "__video.data"), (Residency::Always, "file name"));
        assert_eq!(auto("++CacheThisFile", "video"), (Residency::Always, "file name"));
        assert_eq!(auto("", "__video.data"), (Residency::Past, "volume name"));
        // One mark, or two elsewhere, mean nothing.
        for name in ["_film", "a__", "+film", "a++", " __a", ""] {
            assert_eq!(auto(name, "_video__"), (Residency::Cached, "none"), "{name}");
        }
    }

    #[test]
    fn a_request_overrides_names_and_length() {
        assert_eq!(judged(BypassRequest::On, "++a", "v", 0), (Residency::Past, "request"));
        assert_eq!(judged(BypassRequest::Off, "__a", "__v", 5000), (Residency::Always, "request"));
    }

    #[test]
    fn a_length_counts_where_no_name_does() {
        assert_eq!(judged(BypassRequest::Auto, "a", "v", 999), (Residency::Cached, "none"));
        assert_eq!(judged(BypassRequest::Auto, "a", "v", 1000), (Residency::Past, "length"));
        assert_eq!(judged(BypassRequest::Auto, "++a", "v", 1000), (Residency::Always, "file name"));
        let file =
            File { pinned: None, request: BypassRequest::Auto, name: b"a", volume: "v", length: u64::MAX };
        assert_eq!(judge(&file, None).residency, Residency::Cached);
    }

    #[test]
    fn a_pin_overrides_all_other_rules() {
        for pinned in [Residency::Kept, Residency::Offline] {
            let (pinned, request) = (Some(pinned), BypassRequest::On);
            let file = File { pinned, request, name: b"__a", volume: "__v", length: u64::MAX };
            let verdict = judge(&file, Some(0));
            assert_eq!((Some(verdict.residency), verdict.reason), (pinned, "pin"));
            assert!(verdict.residency.is_kept());
        }
        assert!(!Residency::Always.is_kept());
    }

    #[test]
    fn words_stand_for_requests() {
        for request in [BypassRequest::Auto, BypassRequest::On, BypassRequest::Off] {
            assert_eq!(BypassRequest::of_word(request.to_string().as_bytes()), Some(request));
        }
        assert_eq!(BypassRequest::of_word(b"ON"), None);
    }
}
