//! An inventory that is read back, and what it misses.

use super::*;

#[test]
fn comes_back_as_it_was_and_misses_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Inventory::read(dir.path()).unwrap(), None);
    fs::create_dir(dir.path().join("keys")).unwrap();
    let login = dir.path().join("keys/login");
    fs::write(&login, "secret").unwrap();
    let mut inventory = Inventory::default();
    inventory.note_files(dir.path());
    inventory.add_partition(PartitionId(1), Uuid([7; 16]));
    inventory.write(dir.path()).unwrap();
    assert_eq!(Inventory::read(dir.path()).unwrap().as_ref(), Some(&inventory));
    assert_eq!(inventory.names(), ["/vicepb", "keys/login"]);
    assert_eq!(inventory.missing(dir.path()), None);

    fs::write(&login, "secrex").unwrap();
    let changed = inventory.missing(dir.path()).unwrap();
    assert!(changed.name == "keys/login" && changed.is_there);
    fs::remove_file(&login).unwrap();
    assert!(!inventory.missing(dir.path()).unwrap().is_there);
    assert_eq!(inventory.missing(dir.path()).unwrap().name, "keys/login");
    assert!(inventory.forget("keys/login") && inventory.forget("b") && !inventory.forget("b"));
    assert_eq!((inventory.missing(dir.path()), inventory), (None, Inventory::default()));
}
#[test]
fn what_the_program_replaces_is_as_it_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(DRIVES);
    let write = |text: &str| {
        let write = || {
            fs::write(&path, text).unwrap();
            Ok::<_, VersionedFileError>(())
        };
        Inventory::replacing(dir.path(), DRIVES, write)
    };
    write("of before the first start").unwrap();
    assert_eq!(Inventory::read(dir.path()).unwrap(), None);
    Inventory::default().write(dir.path()).unwrap();
    let missing = || Inventory::read(dir.path()).unwrap().unwrap().missing(dir.path());
    for text in ["one", "two"] {
        write(text).unwrap();
        assert_eq!(missing(), None);
    }
    fs::write(&path, "one").unwrap();
    assert!(missing().unwrap().is_there, "an older copy");
    fs::remove_file(&path).unwrap();
    assert!(!missing().unwrap().is_there);
    let failed = VersionedFileError::Write { path: path.clone(), error: io::ErrorKind::Other.into() };
    Inventory::replacing(dir.path(), DRIVES, || Err(failed)).unwrap_err();
    fs::write(&path, "one").unwrap();
    assert_eq!(missing(), None, "it may have been written");
}
