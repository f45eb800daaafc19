//! Tests of the configuration file: defaults, relative paths, and invalid values.

use super::*;
use std::fs;

const LEAST: &str = "cell = \"example.org\"\nlisten = \"192.0.2.1\"\n";

#[test]
fn settings_that_are_absent_have_their_defaults() {
    let file = ServerFile::parse(LEAST).unwrap();
    let options = file.options(Path::new("/srv"));
    assert_eq!((options.roles, options.ports.file()), (Roles::ALL, 7000));
    assert_eq!(options.partitions, [PartitionDirectory::first(Path::new("/srv"))]);
    assert_eq!(options.anyuser, Rights(9));
}

#[test]
fn paths_begin_at_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.toml");
    let text = format!(
        "{LEAST}state = \"state\"\n[[partition]]\nname = \"/vicepb\"\npath = \"b\"\n[[partition]]\nname = \"c\"\npath = \"/c\"\n"
    );
    fs::write(&path, text).unwrap();
    let file = ServerFile::read(&path).unwrap();
    assert_eq!(file.state.as_deref(), Some(dir.path().join("state").as_path()));
    let places: Vec<_> = file.partitions.iter().map(|p| (p.name.0, p.path.clone())).collect();
    assert_eq!(places, [(1, dir.path().join("b")), (2, PathBuf::from("/c"))]);
}

#[test]
fn a_file_in_the_working_directory_needs_no_directory_in_its_name() {
    let here = std::env::current_dir().unwrap();
    for name in ["server.toml", "./server.toml"] {
        assert_eq!(directory_of(Path::new(name)).unwrap(), here);
    }
}

#[test]
fn an_invalid_setting_is_an_error_that_names_it() {
    for (text, words) in [
        ("lisen = \"192.0.2.1\"\n", &["line 3", "lisen", "listen"][..]),
        ("roles = [\"file\"]\n", &["line 3", "file", "files"]),
        ("roles = []\n", &["database", "files"]),
        ("joins = true\n", &["joins", "[database]"]),
        ("[scrub]\nmib_per_second = 0\n", &["scrub", "at least 1"]),
        ("[scrub]\nday = 1\n", &["day", "days"]),
        ("[drives]\nrekey = 1\n", &["rekey", "rekey_days"]),
        ("[data_path]\naddress = \"0.0.0.0\"\n", &["data_path", "0.0.0.0"]),
        ("[data_path]\nlisten = \"192.0.2.1\"\n", &["line 4"]),
        ("[data_path]\nenabled = true\n", &["enabled", "enable"]),
        ("roles = [\"files\"]\n", &["database_servers"]),
        ("base_port = 80\n", &["base_port", "1024"]),
        ("anyuser = \"xyz\"\n", &["line 3"]),
        ("[[partition]]\nname = \"vicepzz9\"\npath = \"/a\"\n", &["line 4"]),
        (
            "[[partition]]\nname = \"a\"\npath = \"/a\"\n[[partition]]\nname = \"a\"\npath = \"/b\"\n",
            &["twice"],
        ),
        ("[database]\nkind = \"oracle\"\n", &["line 4", "embedded"]),
        ("[database]\nkind = \"etcd\"\nendpoints = []\n", &["endpoints"]),
        ("[database]\nkind = \"etcd\"\nendpoints = [\"a:1\"]\n", &["endpoints", "http://HOST:PORT"]),
        ("[database]\nkind = \"etcd\"\nendpoints = [\"https://a:1\"]\n", &["authority"]),
        ("[database]\nkind = \"etcd\"\nendpoints = [\"http://a:1\"]\nuser = \"a\"\n", &["password_file"]),
        ("[database]\nkind = \"etcd\"\nendpoints = [\"http://a:1\"]\nusr = \"a\"\n", &["usr", "user"]),
    ] {
        let why = ServerFile::parse(&format!("{LEAST}{text}")).unwrap_err();
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    }
}

#[test]
fn the_data_path_is_at_the_file_servers_port_unless_the_file_says_otherwise() {
    let options = |text: &str| {
        ServerFile::parse(&format!("{LEAST}base_port = 7100\n{text}"))
            .unwrap()
            .options(Path::new("/srv"))
            .data_path
    };
    let usual = options("").unwrap();
    assert_eq!((usual.listen, usual.clear), ("192.0.2.1:7100".parse().unwrap(), false));
    assert_eq!(options("[data_path]\nenable = false\n"), None);
    let other = options("[data_path]\nlisten = \"192.0.2.9:80\"\nclear = true\nminimum_size = 9\n").unwrap();
    assert_eq!((other.listen, other.clear), ("192.0.2.9:80".parse().unwrap(), true));
    assert_eq!(other.minimum_size, 9);
}
