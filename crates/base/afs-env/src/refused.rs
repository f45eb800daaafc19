//! Words of the error when the system grants no further thread or process.

use std::io;

/// What to do when the limit is reached.
const ADVICE: &str = "the limit of processes and threads is reached; raise it (`ulimit -u` of the user, TasksMax of the service), or end \
                      other processes";

/// The error of `what` (a thread, a program) that the system did not start, with what to do if a limit was the reason. Its kind stays.
#[must_use]
pub fn refused(what: &str, error: &io::Error) -> io::Error {
    let text = match error.kind() {
        io::ErrorKind::WouldBlock => format!("cannot start {what}: {ADVICE}"),
        _ => format!("cannot start {what}: {error}"),
    };
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_with_what_to_do_and_other_reasons_are_themselves() {
        let limit = refused("the thread `x`", &io::Error::from_raw_os_error(11));
        assert_eq!(limit.kind(), io::ErrorKind::WouldBlock);
        let said = limit.to_string();
        assert!(
            said.starts_with("cannot start the thread `x`: the limit of processes and threads is reached"),
            "{said}"
        );
        assert!(said.contains("ulimit -u") && said.contains("TasksMax") && !said.contains('\n'), "{said}");
        let missing = refused("make", &io::Error::from_raw_os_error(2)).to_string();
        assert_eq!(missing, "cannot start make: No such file or directory (os error 2)");
    }
}
