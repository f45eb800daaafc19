//! Serializers of sizes, times and volume numbers in JSON output (docs/json.md): one form for each, whichever protocol
//! the value comes from.

use afs_wire::ids::VolumeKind;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A count of KiB as a number of bytes.
pub fn bytes<S: Serializer>(kib: &(impl Copy + TryInto<i64>), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(number(*kib).saturating_mul(1024))
}

/// As [`bytes`]; `None` is null.
pub fn some_bytes<S: Serializer>(kib: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    match kib {
        Some(kib) => bytes(kib, serializer),
        None => serializer.serialize_none(),
    }
}

/// As [`bytes`], for a quota: 0 (no limit) is null.
pub fn limit<S: Serializer>(kib: &(impl Copy + TryInto<i64>), serializer: S) -> Result<S::Ok, S::Error> {
    match number(*kib) {
        0 => serializer.serialize_none(),
        kib => bytes(&kib, serializer),
    }
}

fn number(kib: impl TryInto<i64>) -> i64 {
    kib.try_into().unwrap_or(i64::MAX)
}

/// Seconds since 1970 as a time of RFC 3339 in UTC; 0 (never) is null.
pub fn time<S: Serializer>(seconds: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    match Timestamp::from_second((*seconds).into()) {
        Ok(moment) if *seconds > 0 => serializer.collect_str(&moment),
        _ => serializer.serialize_none(),
    }
}

/// As [`time`]; `None` is null.
pub fn some_time<S: Serializer>(seconds: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    let seconds = seconds.map_or(0, |seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
    time(&seconds, serializer)
}

/// A volume number; 0 (none) is null.
pub fn id<S: Serializer>(id: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*id).filter(|id| *id != 0).serialize(serializer)
}

/// Kind of a volume at a server: a clone of the backup kind with another name than the backup volume is a snapshot.
pub fn kind(kind: Option<VolumeKind>, name: &str) -> &'static str {
    match kind {
        Some(VolumeKind::ReadWrite) => "read-write",
        Some(VolumeKind::ReadOnly) => "read-only",
        Some(VolumeKind::Backup) if name.ends_with(".backup") => "backup",
        Some(VolumeKind::Backup) => "snapshot",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json, value::Serializer};

    #[test]
    fn zero_is_null_and_other_values_have_their_unit() {
        assert_eq!(bytes(&3_i32, Serializer).unwrap(), json!(3072));
        assert_eq!(bytes(&i64::MAX, Serializer).unwrap(), json!(i64::MAX));
        assert_eq!(limit(&0_i32, Serializer).unwrap(), Value::Null);
        assert_eq!(limit(&5000_i32, Serializer).unwrap(), json!(5_120_000));
        assert_eq!(time(&0, Serializer).unwrap(), Value::Null);
        assert_eq!(time(&1_795_233_678, Serializer).unwrap(), json!("2026-11-21T04:01:18Z"));
        assert_eq!(time(&u32::MAX, Serializer).unwrap(), json!("2106-02-07T06:28:15Z"));
        assert_eq!(id(&0, Serializer).unwrap(), Value::Null);
        assert_eq!(id(&7, Serializer).unwrap(), json!(7));
    }

    #[test]
    fn a_clone_with_a_name_of_its_own_is_a_snapshot() {
        assert_eq!(kind(Some(VolumeKind::Backup), "user.alice.backup"), "backup");
        assert_eq!(kind(Some(VolumeKind::Backup), "user.alice.monday"), "snapshot");
        assert_eq!(kind(Some(VolumeKind::ReadWrite), "user.alice"), "read-write");
    }
}
