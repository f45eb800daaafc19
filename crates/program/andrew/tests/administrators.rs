//! Tests of users whose loss or whose number would leave a cell without others.
#![allow(clippy::unwrap_used)]

use crate::home;

use home::{Home, free_ports};

#[test]
fn the_last_administrator_stays_until_there_is_another_one() {
    let home = Home::new();
    home.done(&format!("serve --base-port {} --detach", free_ports()));
    assert_eq!(
        home.refused(1, "pts delete admin"),
        "andrew: pts: unable to delete user admin: nobody else is in system:administrators; add another user first: andrew pts adduser NAME system:administrators\n"
    );
    home.done("pts createuser alice");
    home.done("pts adduser alice system:administrators");
    home.done("pts delete admin");
    assert!(home.done("pts membership system:administrators").contains("alice"));
}

#[test]
fn a_user_with_the_largest_id_is_not_the_last_one() {
    let home = Home::new();
    home.done(&format!("serve --base-port {} --detach", free_ports()));
    home.done("pts createuser top -id 2147483647");
    home.done("pts createuser next");
    home.done("pts createuser high -id 2147483646");
    let said = home.refused(1, "pts createuser more");
    assert!(said.contains("No id is left after the largest one; `andrew pts setmax` sets"), "{said}");
    home.done("pts setmax -user 1000");
    assert!(home.done("pts createuser more").contains("1001"));
}
