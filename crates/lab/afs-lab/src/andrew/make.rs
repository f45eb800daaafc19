//! The Make phase: compiles and links the copied tree.

use crate::andrew::tree::SourceTree;
use crate::error::{Context, LabError};
use std::fs;
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How a copy is compiled and linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MakeCommand {
    /// A line for `sh -c`, run in the copy's root.
    Shell(String),
    /// `make`, run in the copy's root: the tree has a Makefile.
    Make,
    /// `cc -c` for each of these files, then `ar rcs` of the objects: the tree has C sources and no Makefile.
    Archive(Vec<PathBuf>),
    /// What compiling does to files, for each of these sources, and waiting in the place of the compiler's work: so many
    /// clients fit on one machine.
    Think(Vec<PathBuf>, Duration),
    /// The tree has nothing to compile; the phase takes no time.
    Nothing,
}

impl MakeCommand {
    /// The command for `tree`: `make` if its root has a Makefile, else the compiler on each `.c`.
    #[must_use]
    pub fn for_tree(tree: &SourceTree) -> Self {
        let at_root = |name: &str| tree.files.iter().any(|f| f.path == Path::new(name));
        if ["GNUmakefile", "makefile", "Makefile"].into_iter().any(at_root) {
            return Self::Make;
        }
        let is_c = |path: &Path| path.extension().is_some_and(|e| e == "c");
        let sources: Vec<PathBuf> =
            tree.files.iter().filter(|f| is_c(&f.path)).map(|f| f.path.clone()).collect();
        if sources.is_empty() { Self::Nothing } else { Self::Archive(sources) }
    }

    /// Waiting for so long in the place of compiling `tree`.
    #[must_use]
    pub fn think(tree: &SourceTree, all: Duration) -> Self {
        let is_c = |path: &Path| path.extension().is_some_and(|e| e == "c");
        let sources = tree.files.iter().filter(|f| is_c(&f.path)).map(|f| f.path.clone());
        Self::Think(sources.collect(), all)
    }

    /// The command line, for display.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Shell(line) => line.clone(),
            Self::Make => "make".into(),
            Self::Archive(sources) => format!("cc -c ({} files), ar rcs", sources.len()),
            Self::Think(sources, all) => {
                format!(
                    "waiting for {} s in the place of compiling {} files",
                    all.as_secs_f64(),
                    sources.len()
                )
            }
            Self::Nothing => "nothing to compile".into(),
        }
    }

    /// Compiles and links in `copy`.
    pub(crate) fn run(&self, copy: &Path) -> Result<(), LabError> {
        match self {
            Self::Shell(line) => checked(Command::new("sh").arg("-c").arg(line), line, copy),
            Self::Make => checked(&mut Command::new("make"), "make", copy),
            Self::Archive(sources) => archive(sources, copy),
            Self::Think(sources, all) => think(sources, *all, copy),
            Self::Nothing => Ok(()),
        }
    }
}

/// Compiles each source to an object beside it and puts all objects into one archive.
fn archive(sources: &[PathBuf], copy: &Path) -> Result<(), LabError> {
    let mut link = Command::new("ar");
    link.args(["rcs", "andrew-benchmark.a"]);
    for source in sources {
        let object = source.with_extension("o");
        let include = source.parent().filter(|p| !p.as_os_str().is_empty());
        let mut compile = Command::new("cc");
        compile.args(["-w", "-I", "."]).arg("-I").arg(include.unwrap_or(Path::new(".")));
        compile.arg("-c").arg(source).arg("-o").arg(&object);
        checked(&mut compile, &format!("cc -c {}", source.display()), copy)?;
        link.arg(object);
    }
    checked(&mut link, "ar rcs andrew-benchmark.a", copy)
}

/// Reads each source, waits, and writes an object as long; then reads all objects, and writes what they have together.
fn think(sources: &[PathBuf], all: Duration, copy: &Path) -> Result<(), LabError> {
    let each = all / u32::try_from(sources.len().max(1)).unwrap_or(u32::MAX);
    let objects: Vec<PathBuf> = sources.iter().map(|source| copy.join(source).with_extension("o")).collect();
    for (source, object) in sources.iter().zip(&objects) {
        let source = copy.join(source);
        let text = fs::read(&source).during("read", &source)?;
        std::thread::sleep(each);
        fs::write(object, text).during("write", object)?;
    }
    let archive = copy.join("andrew-benchmark.a");
    let mut file = fs::File::create(&archive).during("create", &archive)?;
    for object in &objects {
        let mut object_file = fs::File::open(object).during("open", object)?;
        std::io::copy(&mut object_file, &mut file).during("copy", object)?;
    }
    crate::close::close(file.into_raw_fd()).during("close", &archive)
}

/// Runs a command in `copy`, without output; its last error line becomes part of the error.
fn checked(command: &mut Command, shown: &str, copy: &Path) -> Result<(), LabError> {
    // A make that runs inside another make's job server would wait for tokens it never gets.
    command.current_dir(copy).stdin(Stdio::null()).stdout(Stdio::null());
    command.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
    let output = command.output().during("run the compiler in", copy)?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(LabError::Make {
        command: shown.to_owned(),
        path: copy.to_owned(),
        status: output.status.to_string(),
        stderr: stderr.lines().last().unwrap_or("it wrote no reason").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(files: &[&str]) -> MakeCommand {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(dir.path().join(file), "").unwrap();
        }
        MakeCommand::for_tree(&SourceTree::list(dir.path()).unwrap())
    }

    #[test]
    fn a_makefile_wins_over_sources() {
        assert_eq!(choice(&["Makefile", "a.c"]), MakeCommand::Make);
        assert_eq!(choice(&["a.c"]), MakeCommand::Archive(vec!["a.c".into()]));
        assert_eq!(choice(&["readme"]), MakeCommand::Nothing);
    }

    #[test]
    fn thinking_leaves_what_compiling_leaves_and_takes_its_time() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.c"), "int a;").unwrap();
        fs::write(dir.path().join("b.c"), "int b;").unwrap();
        let make = MakeCommand::think(&SourceTree::list(dir.path()).unwrap(), Duration::from_millis(20));
        let began = std::time::Instant::now();
        make.run(dir.path()).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(20));
        assert_eq!(fs::read(dir.path().join("a.o")).unwrap(), b"int a;");
        assert_eq!(fs::read(dir.path().join("andrew-benchmark.a")).unwrap().len(), 12);
    }

    #[test]
    fn a_failing_command_says_its_last_line() {
        let dir = tempfile::tempdir().unwrap();
        let line = "echo first >&2; echo no rule to make it >&2; exit 3";
        let error = MakeCommand::Shell(line.into()).run(dir.path()).unwrap_err().to_string();
        assert!(error.ends_with("ended with exit status: 3: no rule to make it"), "{error}");
    }
}
