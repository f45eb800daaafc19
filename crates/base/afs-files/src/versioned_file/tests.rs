//! Files with every bit flipped, cut at every length, and of other programs.

use super::*;
use std::fs;

#[derive(Serialize, Deserialize, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
struct Toml {
    format: u32,
    key: String,
}

#[derive(Serialize, Deserialize, PartialEq, Eq, Debug)]
struct Json {
    format: u32,
    key: String,
}

impl Versioned for Toml {
    const SYNTAX: Syntax = Syntax::Toml;
    const FORMATS: RangeInclusive<u32> = 1..=2;
    const IS_SECRET: bool = true;
    const REMEDY: &'static str = "put it back";
}

impl Versioned for Json {
    const SYNTAX: Syntax = Syntax::Json;
    const REMEDY: &'static str = "put it back";
}

/// A file with every bit flipped, one after the other, and cut at every length, is read as it was or not at all.
fn harm<T: Versioned + PartialEq + std::fmt::Debug>(path: &Path, written: &T) {
    written.write_file(path).unwrap();
    assert_eq!(T::read_file(path).unwrap().as_ref(), Some(written));
    let whole = fs::read(path).unwrap();
    let is_safe = |bytes: &[u8]| match T::decode(path, bytes) {
        Ok(read) => assert_eq!(&read, written, "{}", String::from_utf8_lossy(bytes)),
        Err(error) => assert!(error.to_string().starts_with(&path.display().to_string()), "{error}"),
    };
    for at in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[at / 8] ^= 1 << (at % 8);
        is_safe(&bytes);
    }
    for len in 0..whole.len() {
        assert!(T::decode(path, &whole[..len]).is_err(), "{len}");
    }
    assert!(T::decode(path, &vec![0; whole.len()]).is_err());
}

#[test]
fn harmed_files_are_read_as_they_were_or_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    harm(&dir.path().join("a.toml"), &Toml { format: 2, key: "b".repeat(20) });
    harm(&dir.path().join("a.json"), &Json { format: 1, key: "b".repeat(20) });
}

#[test]
fn files_of_before_are_read_and_later_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.json");
    assert_eq!(Json::read_file(&path).unwrap(), None);
    fs::write(&path, r#"{"format":1,"key":"k"}"#).unwrap();
    let read = Json::read_file(&path).unwrap().unwrap();
    read.write_file(&path).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("crc32c"));
    assert_eq!(Json::read_file(&path).unwrap(), Some(read));
    for later in [r#"{"format":2,"key":"k"}"#, r#"{"format":2}"#] {
        fs::write(&path, later).unwrap();
        let said = Json::read_file(&path).unwrap_err().to_string();
        assert!(
            said.ends_with("has format 2, this program reads 1; use the version that wrote it"),
            "{said}"
        );
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let said = Json::read_file(&path).unwrap_err().to_string();
    assert!(said.contains("a.json") && said.ends_with("put it back"), "{said}");
}

#[test]
fn a_secret_is_not_quoted() {
    let damaged = "format = 1\nkey = s3cret\n";
    let said = Toml::decode(Path::new("a"), damaged.as_bytes()).unwrap_err();
    assert!(!format!("{said} {said:?}").contains("s3cret"), "{said:?}");
}
