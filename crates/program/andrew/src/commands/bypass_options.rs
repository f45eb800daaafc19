//! Options of all commands that mount: which files bypass the disk cache.

use afs_cell::{BypassLimits, KeptOptions};

/// Without a name or a request that says so (`andrew fs bypass`).
#[derive(clap::Args, Clone, Debug, Default)]
pub struct BypassOptions {
    /// Read files of at least this size past the disk cache, or "off" [default: off; of `andrew up` that of the last start]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bypass_size: Option<u64>,
    /// Read past the disk cache what is read once from one end to the other and is longer than this share of the cache, in percent, or
    /// "off" [default: 25; of `andrew up` that of the last start]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub bypass_streams: Option<u8>,
}

impl BypassOptions {
    /// Those that a cell was started with.
    pub fn of_kept(kept: &KeptOptions) -> Self {
        BypassOptions { bypass_size: kept.bypass_size, bypass_streams: kept.bypass_streams }
    }

    /// What they mean.
    pub fn limits(&self) -> BypassLimits {
        let usual = BypassLimits::default();
        BypassLimits {
            length_min: self.bypass_size.map_or(usual.length_min, |size| Some(size).filter(|size| *size > 0)),
            stream_percent: self
                .bypass_streams
                .map_or(Some(STREAM_PERCENT), |share| Some(share).filter(|share| *share > 0)),
            ..usual
        }
    }
}

const OFF: &str = "off";
/// Percent of the cache, if nothing is given.
const STREAM_PERCENT: u8 = 25;

/// 0 is off.
fn size(text: &str) -> Result<u64, String> {
    match text {
        OFF => Ok(0),
        _ => match crate::size::parse(text)? {
            0 => Err("a size is more than 0; \"off\" is no size".to_owned()),
            size => Ok(size),
        },
    }
}

/// 0 is off.
fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse();
    match (text, number) {
        (OFF, _) => Ok(0),
        (_, Ok(percent @ 1..=100)) => Ok(percent),
        _ => Err("a share of the cache is 1 to 100 percent, or \"off\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(size_text: Option<&str>, share: Option<&str>) -> (Option<u64>, Option<u8>) {
        let options = BypassOptions {
            bypass_size: size_text.map(|text| size(text).unwrap()),
            bypass_streams: share.map(|text| percent(text).unwrap()),
        };
        (options.limits().length_min, options.limits().stream_percent)
    }

    #[test]
    fn a_size_and_a_share_or_off() {
        assert_eq!(limits(None, None), (None, Some(25)));
        assert_eq!(limits(Some("1G"), Some("50")), (Some(1 << 30), Some(50)));
        assert_eq!(limits(Some("off"), Some("off")), (None, None));
        assert_eq!(percent("10%"), Ok(10));
        for text in ["0", "101", "-1", "half", "%"] {
            assert!(percent(text).is_err(), "{text}");
        }
        for text in ["0", "0G", "large"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
