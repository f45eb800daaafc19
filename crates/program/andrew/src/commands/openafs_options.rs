//! Option style of OpenAFS's tools: `fs setacl -dir D -acl user rl`, `vos create -server S`.

use clap::CommandFactory;
use std::ffi::OsString;

/// After `fs`, `vos` and `pts`, replaces a single-dash word that is (or begins) the name of a long option of the
/// subcommand by the double-dash form. Other words stay, so `-rl` remains a value.
pub fn long_options(args: Vec<OsString>) -> Vec<OsString> {
    let Some(suite) =
        args.iter().skip(1).position(|a| a == "fs" || a == "vos" || a == "pts").map(|at| at + 1)
    else {
        return args;
    };
    let names = option_names(&args[suite..]);
    let mut rest = false;
    args.into_iter()
        .enumerate()
        .map(|(at, arg)| {
            rest = rest || arg == "--";
            if at <= suite || rest { arg } else { rewritten(arg, &names) }
        })
        .collect()
}

fn rewritten(arg: OsString, names: &[String]) -> OsString {
    let Some(word) = arg.to_str().and_then(|a| a.strip_prefix('-')) else { return arg };
    let shortened = word.len() > 1 && !is_rights(word) && names.iter().any(|name| name.starts_with(word));
    if shortened || names.iter().any(|name| name == word) {
        return OsString::from(format!("--{word}"));
    }
    arg
}

/// Whether a word could be the rights of an access list entry.
fn is_rights(word: &str) -> bool {
    word.bytes().all(|b| b"rlidwkaABCDEFGH".contains(&b))
}

/// Long options of the subcommand that the words select.
fn option_names(words: &[OsString]) -> Vec<String> {
    let root = built(crate::cli::Cli::command());
    let (command, _) = selected(&root, words);
    command.get_arguments().filter_map(|a| a.get_long()).map(str::to_owned).collect()
}

/// The command of the program `root` that `args` (with its name first) select, as a user would type it.
pub fn command_path(root: clap::Command, args: &[OsString]) -> String {
    let root = built(root);
    let (_, names) = selected(&root, args.get(1..).unwrap_or_default());
    [root.get_name()].into_iter().chain(names).collect::<Vec<_>>().join(" ")
}

fn built(mut root: clap::Command) -> clap::Command {
    root.build();
    root
}

/// The innermost command that the words select, and the names of the commands that lead to it.
fn selected<'c>(root: &'c clap::Command, words: &[OsString]) -> (&'c clap::Command, Vec<&'c str>) {
    let (mut command, mut names) = (root, Vec::new());
    let mut words = words.iter().filter_map(|w| w.to_str());
    while let Some(word) = words.next() {
        if let Some(option) = word.strip_prefix("--") {
            // The value of an option may equal a command.
            let takes = |a: &&clap::Arg| a.get_long() == Some(option) && a.get_action().takes_values();
            let _value = command.get_arguments().find(takes).and_then(|_| words.next());
        } else if let Some(next) = command.get_subcommands().find(|c| selects(c, word)) {
            names.push(next.get_name());
            command = next;
        }
    }
    (command, names)
}

/// Whether a word selects a command: its name, an alias, or the beginning of its name.
fn selects(command: &clap::Command, word: &str) -> bool {
    command.get_name().starts_with(word) || command.get_all_aliases().any(|alias| alias == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let words = long_options(text.split(' ').map(OsString::from).collect());
        words.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn single_dash_words_of_the_suites_are_long_options() {
        assert_eq!(line("andrew fs sa -dir d -acl u rl -neg"), "andrew fs sa --dir d --acl u rl --neg");
        assert_eq!(
            line("andrew vos create -server s -part a -name n"),
            "andrew vos create --server s --part a --name n"
        );
        assert_eq!(
            line("andrew pts adduser -user a -group -204"),
            "andrew pts adduser --user a --group -204"
        );
    }

    #[test]
    fn options_between_suite_and_command_are_passed_over() {
        assert_eq!(
            line("andrew vos --state s --json listvldb -name x"),
            "andrew vos --state s --json listvldb --name x"
        );
    }

    #[test]
    fn rights_other_words_and_other_commands_stay() {
        assert_eq!(line("andrew fs sa d u -rl"), "andrew fs sa d u -rl");
        assert_eq!(line("andrew fs la -- -path"), "andrew fs la -- -path");
        assert_eq!(line("andrew up -state"), "andrew up -state");
    }
}
