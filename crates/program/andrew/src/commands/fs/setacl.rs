//! `andrew fs setacl`: changes access list entries.

use super::access_list::{AccessList, Change};
use super::attribute;
use super::memberships::unknown;
use super::path_cell;
use crate::commands::pts::names;
use crate::commands::pts::route::RouteOptions;
use crate::error::{CommandError, CommandResult};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Options of `andrew fs setacl`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew fs setacl [OPTIONS] DIR NAME RIGHTS [NAME RIGHTS]...\n       andrew fs setacl [OPTIONS] --dir DIR... --acl NAME RIGHTS...",
    after_help = "\
RIGHTS are letters of rlidwka (read, lookup, insert, delete, write, lock, administer), or one of
read (rl), write (rlidwk), all, none. `+w` adds a right to an entry, `-w` removes one, `none` removes the entry.

Examples:
  andrew fs setacl ~/afs/public system:anyuser read
  andrew fs sa -dir a b -acl alice write bob none"
)]
pub struct Args {
    /// The directory, then names and rights in turn
    #[arg(value_name = "DIR NAME RIGHTS", allow_hyphen_values = true)]
    bare: Vec<String>,
    /// Directories, as OpenAFS's fs takes them
    #[arg(long, value_name = "DIR", num_args = 1..)]
    dir: Vec<PathBuf>,
    /// Names and rights in turn, as OpenAFS's fs takes them
    #[arg(long, value_name = "NAME RIGHTS", num_args = 2.., allow_hyphen_values = true)]
    acl: Vec<String>,
    /// Remove all entries first
    #[arg(long)]
    clear: bool,
    /// Change the negative entries, which deny rights
    #[arg(long)]
    negative: bool,
}

impl Args {
    /// Changes the access lists. All values are checked before the first list is changed.
    ///
    /// # Errors
    /// Invalid rights or names, or a directory whose list may not be changed.
    pub fn run(mut self) -> CommandResult {
        self.take_flags();
        let (directories, words) = self.directories_and_words();
        let changes = pairs(&words)?;
        if directories.is_empty() || (changes.is_empty() && !self.clear) {
            return Err(CommandError::usage(
                "fs: setacl needs a directory, a name and rights; see `andrew fs setacl --help`",
            ));
        }
        directories.iter().try_for_each(|d| change(d, &changes, self.clear, self.negative))
    }

    /// Rights may begin with a hyphen, so that flags after names and rights arrive as words. No name or rights equal a
    /// flag.
    fn take_flags(&mut self) {
        for (flag, set) in [("clear", &mut self.clear), ("negative", &mut self.negative)] {
            for words in [&mut self.bare, &mut self.acl] {
                let before = words.len();
                words.retain(|word| word.trim_start_matches('-') != flag || !word.starts_with('-'));
                *set |= words.len() < before;
            }
        }
    }

    fn directories_and_words(&self) -> (Vec<PathBuf>, Vec<String>) {
        let mut bare = self.bare.iter().cloned();
        let mut directories = self.dir.clone();
        if directories.is_empty() {
            directories.extend(bare.next().map(PathBuf::from));
        }
        let words = bare.chain(self.acl.iter().cloned()).collect();
        (directories, words)
    }
}

fn pairs(words: &[String]) -> CommandResult<Vec<(String, Change)>> {
    words.chunks(2).map(pair).collect()
}

fn pair(words: &[String]) -> CommandResult<(String, Change)> {
    match words {
        [name, rights] => Ok((name.clone(), Change::parse(rights)?)),
        _ => Err(CommandError::usage(format!(
            "fs: Missing rights after '{}'; give names and rights in turn",
            words.concat()
        ))),
    }
}

fn change(directory: &Path, changes: &[(String, Change)], clear: bool, negative: bool) -> CommandResult {
    let mut list = if clear {
        AccessList::default()
    } else {
        AccessList::parse(&attribute::get_text(directory, "afs.acl")?)?
    };
    for (name, rights) in changes {
        list.change(name, *rights, negative)?;
    }
    let is_number = |(name, _): &(String, Change)| name.parse::<i64>().is_ok();
    let stored = match changes.iter().any(is_number) {
        // A number that was typed is refused, not left out.
        true => attribute::try_set(directory, "afs.acl", list.to_string().as_bytes()),
        false => list.store(directory),
    };
    stored.map_err(|error| match error {
        Errno::INVAL => {
            unknown_name(directory, changes).unwrap_or_else(|| attribute::explain(directory, error))
        }
        error => attribute::explain(directory, error),
    })
}

/// Error if a server refuses a list because of a name: which of the new names it does not know, if that can be
/// determined.
fn unknown_name(directory: &Path, changes: &[(String, Change)]) -> Option<CommandError> {
    let place = path_cell::of(directory).ok()??;
    let mut target = RouteOptions::default().or_of(Some(&place)).ok()?.open().ok()?;
    let mut is_unknown = |name: &String| {
        names::find(&mut target, name).is_err_and(|error| error.status == CommandError::USAGE)
    };
    let name = changes.iter().map(|(name, _)| name).find(|name| is_unknown(name))?;
    Some(unknown(name, place.cell.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(words: &[&str]) -> String {
        let bare = words.iter().map(|w| (*w).to_owned()).collect();
        let args = Args { bare, dir: vec![], acl: vec![], clear: false, negative: false };
        args.run().unwrap_err().message
    }

    #[test]
    fn flags_may_stand_anywhere() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        for line in [
            "fs --negative --clear d bob rl",
            "fs d bob rl --negative --clear",
            "fs d --clear bob rl -negative",
            "fs --dir d --acl bob rl --clear --negative",
        ] {
            let mut args = <Line as clap::Parser>::parse_from(line.split(' ')).args;
            args.take_flags();
            assert!(args.clear && args.negative, "{line}");
            let words = ["bob", "rl"].map(str::to_owned).to_vec();
            assert_eq!(args.directories_and_words(), (vec![PathBuf::from("d")], words), "{line}");
        }
    }

    #[test]
    fn a_missing_argument_is_named() {
        assert_eq!(
            message(&["/tmp"]),
            "fs: setacl needs a directory, a name and rights; see `andrew fs setacl --help`"
        );
        assert_eq!(
            message(&["/tmp", "bob"]),
            "fs: Missing rights after 'bob'; give names and rights in turn"
        );
        assert_eq!(
            message(&["/tmp", "bob", "xyz"]),
            "fs: Illegal rights 'xyz'; give letters of rlidwka, or read, write, all or none"
        );
    }
}
