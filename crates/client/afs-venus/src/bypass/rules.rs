//! Decision table: whether a file bypasses the disk cache (CITI TR 01-3, 5.3.2). The first rule that applies decides.

use crate::api::BypassRequest;
use crate::vnode::CacheUse;

/// Marks volumes and files that bypass the cache, in front of their names.
const BYPASSES: &[u8] = b"__";
/// Marks files that are cached all the same.
const CACHED: &[u8] = b"++";

/// What the rules look at.
pub(crate) struct File<'a> {
    pub request: BypassRequest,
    /// The name by which it was looked up last; empty if none is known any more.
    pub name: &'a [u8],
    /// The name of the volume, without the suffix of a copy.
    pub volume: &'a str,
    /// In bytes.
    pub length: u64,
}

/// How the cache is used, and the rule that says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub cache_use: CacheUse,
    pub reason: &'static str,
}

/// Applies the rules. Files of at least `length_min` bytes bypass the cache.
pub(crate) fn judge(file: &File<'_>, length_min: Option<u64>) -> Verdict {
    let File { request, name, volume, length } = file;
    let (cache_use, reason) = match request {
        BypassRequest::On => (CacheUse::Never, "request"),
        BypassRequest::Off => (CacheUse::Always, "request"),
        BypassRequest::Auto if name.starts_with(CACHED) => (CacheUse::Always, "file name"),
        BypassRequest::Auto if name.starts_with(BYPASSES) => (CacheUse::Never, "file name"),
        BypassRequest::Auto if volume.as_bytes().starts_with(BYPASSES) => (CacheUse::Never, "volume name"),
        BypassRequest::Auto if length_min.is_some_and(|min| *length >= min) => (CacheUse::Never, "length"),
        BypassRequest::Auto => (CacheUse::Judged, "none"),
    };
    Verdict { cache_use, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(request: BypassRequest, name: &str, volume: &str, length: u64) -> (CacheUse, &'static str) {
        let verdict = judge(&File { request, name: name.as_bytes(), volume, length }, Some(1000));
        (verdict.cache_use, verdict.reason)
    }

    #[test]
    fn names_decide_as_in_the_report() {
        let auto = |name, volume| judged(BypassRequest::Auto, name, volume, 999);
        assert_eq!(auto("film", "video"), (CacheUse::Judged, "none"));
        assert_eq!(auto("film", "__video.data"), (CacheUse::Never, "volume name"));
        assert_eq!(auto("__DontCacheMe", "video"), (CacheUse::Never, "file name"));
        assert_eq!(auto("++CacheThisFile", "__video.data"), (CacheUse::Always, "file name"));
        assert_eq!(auto("++CacheThisFile", "video"), (CacheUse::Always, "file name"));
        assert_eq!(auto("", "__video.data"), (CacheUse::Never, "volume name"));
        // One mark, or two elsewhere, mean nothing.
        for name in ["_film", "a__", "+film", "a++", " __a", ""] {
            assert_eq!(auto(name, "_video__"), (CacheUse::Judged, "none"), "{name}");
        }
    }

    #[test]
    fn a_request_overrides_names_and_length() {
        assert_eq!(judged(BypassRequest::On, "++a", "v", 0), (CacheUse::Never, "request"));
        assert_eq!(judged(BypassRequest::Off, "__a", "__v", 5000), (CacheUse::Always, "request"));
    }

    #[test]
    fn a_length_counts_where_no_name_does() {
        assert_eq!(judged(BypassRequest::Auto, "a", "v", 999), (CacheUse::Judged, "none"));
        assert_eq!(judged(BypassRequest::Auto, "a", "v", 1000), (CacheUse::Never, "length"));
        assert_eq!(judged(BypassRequest::Auto, "++a", "v", 1000), (CacheUse::Always, "file name"));
        let file = File { request: BypassRequest::Auto, name: b"a", volume: "v", length: u64::MAX };
        assert_eq!(judge(&file, None).cache_use, CacheUse::Judged);
    }

    #[test]
    fn words_stand_for_requests() {
        for request in [BypassRequest::Auto, BypassRequest::On, BypassRequest::Off] {
            assert_eq!(BypassRequest::of_word(request.to_string().as_bytes()), Some(request));
        }
        assert_eq!(BypassRequest::of_word(b"ON"), None);
    }
}
