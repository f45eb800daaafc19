//! Person who acts through a cell's state directory: user id from the kernel or the login session, name from the machine's accounts.

use crate::mount::local_accounts::by_uid;
use crate::socket::Peer;
use afs_rpc::Person;
use rustix::process::getuid;

/// `loginuid` of a process that belongs to no login session.
const NO_SESSION: u32 = u32::MAX;

/// The person who runs this process. Takes as long as the machine's name service.
#[must_use]
pub fn of_process() -> Person {
    let of_session = || std::fs::read_to_string("/proc/self/loginuid").ok();
    let before_sudo = || std::env::var("SUDO_UID").ok();
    of_uid(chosen(getuid().as_raw(), of_session, before_sudo))
}

/// The user behind a process that connected.
pub(crate) fn behind(peer: &Peer) -> u32 {
    let of_session = || std::fs::read_to_string(format!("/proc/{}/loginuid", peer.pid)).ok();
    chosen(peer.uid, of_session, || None)
}

/// A user of this machine. Takes as long as the machine's name service.
pub(crate) fn of_uid(uid: u32) -> Person {
    let found = by_uid(uid);
    Person::of_user(uid, found.user().map(|user| user.name.as_str()))
}

/// The user of a process. Several people may be root: who logged in, or used sudo, says which of them.
fn chosen(
    uid: u32,
    of_session: impl FnOnce() -> Option<String>,
    before_sudo: impl FnOnce() -> Option<String>,
) -> u32 {
    let number = |text: Option<String>| text.and_then(|text| text.trim().parse().ok());
    let behind_root =
        || number(of_session()).filter(|uid| *uid != NO_SESSION).or_else(|| number(before_sudo()));
    if uid == 0 { behind_root().unwrap_or(0) } else { uid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_root_is_who_logged_in_or_used_sudo() {
        let chosen = |uid, session: &str, sudo: &str| {
            let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            chosen(uid, || given(session), || given(sudo))
        };
        assert_eq!(chosen(0, "1000", "1001"), 1000);
        assert_eq!(chosen(0, "4294967295", "1001"), 1001);
        assert_eq!(chosen(0, "", "1001"), 1001);
        assert_eq!(chosen(0, "4294967295\n", ""), 0);
        assert_eq!(chosen(0, "0", "1001"), 0, "root logged in");
        assert_eq!(chosen(0, "x", "-1"), 0);
        assert_eq!(chosen(1002, "1000", "1001"), 1002, "of others the kernel's word");
    }

    #[test]
    fn a_user_of_the_machine_has_a_name_and_another_the_number_alone() {
        assert_eq!(of_uid(0).as_str(), "0 root");
        assert_eq!(of_uid(3_999_999_999).as_str(), "3999999999");
    }
}
