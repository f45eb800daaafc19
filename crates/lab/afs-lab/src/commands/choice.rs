//! Experiments named on the command line: ids, papers, or all.

use afs_lab::catalogue::{Experiment, experiments};
use andrew::error::{CommandError, CommandResult};

/// The experiments with these ids, or of these papers, in the catalogue's order, each once.
///
/// # Errors
/// A name is none of them.
pub(super) fn chosen(names: &[String]) -> CommandResult<Vec<&'static Experiment>> {
    let is_of = |one: &Experiment, name: &str| {
        name == "all" || one.id == name || one.id.split('.').next() == Some(name)
    };
    if let Some(unknown) = names.iter().find(|name| !experiments().any(|one| is_of(one, name))) {
        let message =
            format!("'{unknown}' is not measured; `scripts/lab-report --list` shows all tables and figures");
        return Err(CommandError::usage(message));
    }
    Ok(experiments().filter(|one| names.iter().any(|name| is_of(one, name))).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    #[test]
    fn papers_ids_and_all_are_understood() {
        let ids = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(&names).map(|all| all.len()).map_err(|error| error.message)
        };
        assert_eq!(ids(&["all"]), Ok(25));
        assert_eq!(ids(&["citi01-3", "citi01-3.fig4", "howard88.table1"]), Ok(8));
        assert_eq!(
            ids(&["howard88.table99"]).unwrap_err(),
            "'howard88.table99' is not measured; `scripts/lab-report --list` shows all tables and figures"
        );
    }
}
