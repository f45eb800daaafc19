//! Tests of names: docs/protocol/rxkad.md "6.2 Kerberos 5" and "10. Authorisation mapping on servers".

#![allow(clippy::expect_used, clippy::unwrap_used)]

use afs_auth::names::{AfsName, LocalNames, NameError, afs_name};
use afs_rpc::Principal;

fn names() -> LocalNames {
    LocalNames {
        realms: vec!["ATHENA.MIT.EDU".into()],
        exceptions: ["admin.root@ATHENA.MIT.EDU".to_owned()].into(),
        ..LocalNames::of_cell("example.org")
    }
}

fn shown(name: &str, instance: &str, realm: &str) -> String {
    names().principal(name, instance, realm).map_or_else(|error| format!("{error:?}"), |who| who.to_string())
}

#[test]
fn principals_become_names_and_instances() {
    let name =
        |components: &[&'static str]| afs_name(components).map(|AfsName { name, instance }| (name, instance));
    assert_eq!(name(&["alice"]), Ok(("alice", "")));
    assert_eq!(name(&["alice", "admin"]), Ok(("alice", "admin")));
    assert_eq!(name(&["host", "x.example.org"]), Ok(("rcmd", "x")));
    assert_eq!(name(&["imap", "mail.example.org"]), Ok(("imap", "mail")));
    assert_eq!(name(&["kadmin", "changepw"]), Ok(("kadmin", "")));
    assert_eq!(name(&["host", "x"]), Err(NameError::Host));
    assert_eq!(name(&["alice.admin"]), Err(NameError::Dot));
    assert_eq!(name(&[]), Err(NameError::Components));
    assert_eq!(name(&["a", "b", "c"]), Err(NameError::Components));
}

#[test]
fn whose_people_are_the_cells_own() {
    assert_eq!(shown("Alice", "", "EXAMPLE.ORG"), "alice");
    assert_eq!(shown("alice", "Admin", "example.org"), "alice.admin");
    assert_eq!(shown("alice", "", "athena.mit.edu"), "alice");
    assert_eq!(shown("admin", "root", "ATHENA.MIT.EDU"), "admin.root@athena.mit.edu");
    assert_eq!(shown("alice", "", "Other.Realm"), "alice@other.realm");
}

#[test]
fn only_an_empty_realm_makes_afs_the_cells_key() {
    assert_eq!(names().principal("afs", "", ""), Ok(Principal::CellKey));
    assert_eq!(shown("afs", "", "EXAMPLE.ORG"), "afs");
    assert_eq!(shown("afs", "x", ""), "afs.x");
    assert_eq!(shown("AFS", "", ""), "afs");
    assert_eq!(names().principal_of_text("afs"), Err(NameError::Reserved));
}

#[test]
fn parts_that_mislead_are_refused() {
    for name in ["", "bob@other.org", "system:administrators", "a b", "a\0", "a\nb", &"x".repeat(64)] {
        assert!(names().principal(name, "", "EXAMPLE.ORG").is_err(), "{name:?}");
    }
    assert!(names().principal("bob", "x@y", "EXAMPLE.ORG").is_err());
    assert!(names().principal("bob", "", "EXAMPLE.ORG@x").is_err());
    assert!(names().principal("bob", "", &"R".repeat(256)).is_err());
}

#[test]
fn texts_of_principals() {
    let text = |text| names().principal_of_text(text).map(|who| who.to_string());
    assert_eq!(text("Alice@EXAMPLE.ORG"), Ok("alice".into()));
    assert_eq!(text("alice"), Ok("alice".into()));
    assert_eq!(text("alice/admin@OTHER"), Ok("alice.admin@other".into()));
    assert_eq!(text("host/x.y@EXAMPLE.ORG"), Ok("rcmd.x".into()));
    for bad in ["", "@", "alice@", "@REALM", "a/b/c@R", "a\\@b@R", "a.b@R"] {
        assert!(text(bad).is_err(), "{bad}");
    }
}
