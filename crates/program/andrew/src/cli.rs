//! Parser and dispatcher of the command line, with one-line errors.

use crate::commands::{
    completions, down, drive, fs, groups, import, key, login, logout, man, mount, mount_guard,
    openafs_options, passwd, pts, revoke, run_with_token, serve, server, ssh_keys, status, store, tokens,
    top, umount, up, user, vos,
};
use crate::error::{CommandError, CommandResult};
use crate::plain::plain;
use clap::builder::styling::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// The Andrew File System: one name space over many servers, with files cached on this machine.
#[derive(Parser, Debug)]
#[command(
    name = "andrew",
    version,
    styles = Styles::plain(),
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
pub struct Cli {
    /// Print JSON instead of text
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  andrew up                     a cell of your own, mounted at ~/afs, until ctrl-C
  andrew up --detach            the same in the background; `andrew down` stops it
  andrew fs listacl ~/afs       the access list of a directory
  andrew vos create projects && andrew fs mkmount ~/afs/projects projects
                                a new volume, and a directory that shows it
  andrew mount --cell example.org --servers 192.0.2.1 ~/example
                                a cell on other machines

Environment:
  ANDREW_STATE   state directory of the cell that commands use, as --state
  ANDREW_LOG     filter of what servers and mounts log, such as afs_venus=debug
  ANDREW_TOKENS  a file with the token to use
  ANDREW_RUN     directory for the sockets of mounts, instead of /run/andrew and, unless it
                 belongs to another user, of the user's own

Exit status: 0 success, 1 failure, 2 wrong input.";

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start a cell on this machine and mount it
    Up(up::Args),
    /// Stop the cell that `andrew up` or `andrew serve` started
    Down(down::Args),
    /// Show the cells and mounts on this machine
    Status(status::Args),
    /// Show what the mounts on this machine do: calls, caches, bytes, servers
    Top(top::Args),
    /// Run the servers of a cell without mounting it
    Serve(serve::Args),
    /// Show, add, empty and remove the hosts of a cell
    Server(server::Args),
    /// Run, join, show and choose drives on other hosts, which store the bytes of files
    Drive(drive::Args),
    /// Check and repair the stores of a cell that does not run
    Store(store::Args),
    /// Import the databases of an OpenAFS cell
    Import(import::Args),
    /// Mount a cell served by other machines
    Mount(mount::Args),
    /// Be the guard of a mount, which the process of the mount starts
    #[command(hide = true)]
    MountGuard(mount_guard::Args),
    /// Unmount a directory that `andrew up` or `andrew mount` mounted
    Umount(umount::Args),
    /// Show and change files, directories and mount points (the commands of OpenAFS's fs)
    Fs(fs::Args),
    /// Show and change volumes (the commands of OpenAFS's vos)
    Vos(vos::Args),
    /// Show and change users and groups (the commands of OpenAFS's pts)
    Pts(pts::Args),
    /// Add users with private homes
    User(user::Args),
    /// Show and change the keys that the cell's servers share
    Key(key::Args),
    /// Get a token: with a passphrase, an SSH key, or Kerberos tickets
    Login(login::Args),
    /// Remove tokens
    Logout(logout::Args),
    /// List your tokens
    Tokens(tokens::Args),
    /// Work without the rights of some of your groups, and with them again
    Groups(groups::Args),
    /// Set a passphrase to log in with
    Passwd(passwd::Args),
    /// End the tokens of a user, or of everybody who has logged in from a host
    Revoke(revoke::Args),
    /// Show and change the SSH keys to log in with
    SshKeys(ssh_keys::Args),
    /// Run a command with a token of its own, renewed while it runs
    RunWithToken(run_with_token::Args),
    /// Write the manual pages
    Man(man::Args),
    /// Write completions for a shell
    Completions(completions::Args),
}

/// A program with commands: `andrew`, and others whose arguments, errors and statuses are as its own.
pub trait Program: CommandFactory + FromArgMatches {
    /// Runs the selected command.
    ///
    /// # Errors
    /// Wrong input, status 2; a failure, status 1.
    fn run(self) -> CommandResult;

    /// Definition of the commands and options, with their help.
    fn definition() -> clap::Command {
        flowing(Self::command())
    }
}

impl Program for Cli {
    fn run(self) -> CommandResult {
        self.command.run(self.json)
    }
}

/// Joins the lines of each paragraph after a command's options, so that they are broken at the terminal's width.
fn flowing(command: clap::Command) -> clap::Command {
    let mut command = command.mut_subcommands(flowing);
    if let Some(text) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(in_paragraphs(&text));
    }
    command
}

/// Joins the lines of each paragraph. Lines that begin with a blank, and lines after a colon, stay as they are.
fn in_paragraphs(text: &str) -> String {
    let mut out = String::new();
    let goes_on = |out: &str| !out.is_empty() && !out.ends_with(['\n', ':']) && !last(out).starts_with(' ');
    for line in text.lines() {
        let joins = goes_on(&out) && !line.is_empty() && !line.starts_with(' ') && line != "Examples:";
        if joins {
            out.push(' ');
        } else if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line);
    }
    out
}

fn last(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or_default()
}

impl Command {
    fn run(self, json: bool) -> CommandResult {
        match self {
            Self::Up(args) => args.run(json),
            Self::Down(args) => args.run(json),
            Self::Status(args) => args.run(json),
            Self::Top(args) => args.run(json),
            Self::Serve(args) => args.run(json),
            Self::Server(args) => args.run(json),
            Self::Drive(args) => args.run(json),
            Self::Store(args) => args.run(json),
            Self::Import(args) => args.run(json),
            Self::Mount(args) => args.run(json),
            Self::MountGuard(args) => args.run(),
            Self::Umount(args) => args.run(json),
            Self::Fs(args) => args.run(json),
            Self::Vos(args) => args.run(json),
            Self::Pts(args) => args.run(json),
            Self::User(args) => args.run(json),
            Self::Key(args) => args.run(json),
            Self::Login(args) => args.run(json),
            Self::Logout(args) => args.run(json),
            Self::Tokens(args) => args.run(json),
            Self::Groups(args) => args.run(json),
            Self::Passwd(args) => args.run(json),
            Self::Revoke(args) => args.run(json),
            Self::SshKeys(args) => args.run(json),
            Self::RunWithToken(args) => args.run(),
            Self::Man(args) => args.run::<Cli>(json),
            Self::Completions(args) => args.run::<Cli>(),
        }
    }
}

/// Runs `andrew` with `args`, the program's name first.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    run::<Cli>(&openafs_options::long_options(args.into_iter().collect()))
}

/// Parses `args` (with the program's name first), runs the command, and returns the exit status.
pub fn run<P: Program>(args: &[OsString]) -> ExitCode {
    // Keys and passphrases are in this process's memory: it leaves no core file, and debuggers of the same user are
    // refused.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let parsed = P::definition().try_get_matches_from(args).and_then(|found| P::from_arg_matches(&found));
    let outcome = match parsed {
        Ok(program) => program.run(),
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(CommandError::USAGE);
        }
        Err(error) => Err(CommandError::usage(one_line(&error, P::command(), args))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be a log on a full disk.
            let _ = writeln!(std::io::stderr(), "{}: {}", P::command().get_name(), plain(&error.to_string()));
            ExitCode::from(error.status)
        }
    }
}

/// The parser's error in one line: the fault, and what would be right.
fn one_line(error: &clap::Error, root: clap::Command, args: &[OsString]) -> String {
    let text = error.render().to_string();
    let what = text.lines().take_while(|l| !l.trim().is_empty());
    let what = what.map(str::trim).collect::<Vec<_>>().join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    format!("{what}; {}", advice(error, root, args))
}

fn advice(error: &clap::Error, root: clap::Command, args: &[OsString]) -> String {
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        match error.get(kind) {
            Some(ContextValue::String(word)) => return format!("did you mean '{word}'?"),
            Some(ContextValue::Strings(words)) if !words.is_empty() => {
                return format!("did you mean '{}'?", words.join("' or '"));
            }
            _ => {}
        }
    }
    format!("see `{} --help`", openafs_options::command_path(root, args))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        let args = openafs_options::long_options(line.split(' ').map(OsString::from).collect());
        one_line(&Cli::try_parse_from(&args).unwrap_err(), Cli::command(), &args)
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::definition().debug_assert();
    }

    #[test]
    fn help_is_broken_at_the_terminals_width_alone() {
        assert_eq!(
            in_paragraphs("one two\nthree.\n\nfour\nExamples:\n  a\n    b\n  c\n\nfive\nsix"),
            "one two three.\n\nfour\nExamples:\n  a\n    b\n  c\n\nfive six"
        );
        let help = Cli::definition().term_width(72).render_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 72), "{help}");
        let mut commands = Cli::definition();
        let help = commands.find_subcommand_mut("ssh-keys").unwrap().render_help().to_string();
        assert!(help.contains("administrator, and the owner"), "{help}");
    }

    #[test]
    fn errors_are_one_line_that_says_what_would_be_right() {
        assert_eq!(error("andrew upp"), "unrecognized subcommand 'upp'; did you mean 'up'?");
        assert_eq!(
            error("andrew up --mont x"),
            "unexpected argument '--mont' found; did you mean '--mount'?"
        );
        assert_eq!(
            error("andrew mount /x"),
            "the following required arguments were not provided: --cell <NAME>; see `andrew mount --help`"
        );
        assert_eq!(
            error("andrew up --base-port 70000"),
            "invalid value '70000' for '--base-port <PORT>': 70000 is not in 1024..=65528; see `andrew up --help`"
        );
    }
}
