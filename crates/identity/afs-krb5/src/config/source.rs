//! Reader of `krb5.conf` and of the files that it includes.

use super::ConfigError;
use super::line::Line;
use super::profile::Profile;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Reads configuration files, and the files that they include, into a profile.
pub struct Source<'a> {
    profile: &'a mut Profile,
    files: usize,
}

/// Position in the structure of a file: a section, and the open names within it.
type SectionPath = Vec<String>;

/// Most files read.
const FILES_MAX: usize = 256;
/// Longest file read, in bytes.
const LEN_MAX: u64 = 1 << 20;
/// Most nested names.
const DEPTH_MAX: usize = 16;
/// Most levels of included files.
const INCLUDES_MAX: usize = 8;

impl<'a> Source<'a> {
    /// A reader that fills `profile`.
    pub fn new(profile: &'a mut Profile) -> Self {
        Self { profile, files: 0 }
    }

    /// Reads a file; `false` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read or is invalid; the message names the line.
    pub fn read(&mut self, path: &Path) -> Result<bool, ConfigError> {
        self.file(path, INCLUDES_MAX)
    }

    fn file(&mut self, path: &Path, includes: usize) -> Result<bool, ConfigError> {
        let text = match text(path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(ConfigError::Read { path: path.to_owned(), error }),
        };
        self.files += 1;
        if self.files > FILES_MAX || includes == 0 {
            return Err(ConfigError::TooManyFiles(path.to_owned()));
        }
        let mut place = SectionPath::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = |why: &str| wrong(path, number + 1, why);
            let line = Line::parse(line).ok_or_else(|| wrong("not understood"))?;
            self.line(line, &mut place, includes, &wrong)?;
        }
        Ok(true)
    }

    /// Reads lines as those of a file, without the files that they include.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn lines_alone(&mut self, text: &str) {
        let (mut place, wrong) = (SectionPath::new(), |why: &str| wrong(Path::new(""), 0, why));
        for line in text.lines().filter_map(Line::parse) {
            if !matches!(line, Line::Include(_) | Line::IncludeDirectory(_)) {
                let _ = self.line(line, &mut place, INCLUDES_MAX, &wrong);
            }
        }
    }

    fn line(
        &mut self,
        line: Line<'_>,
        place: &mut SectionPath,
        includes: usize,
        wrong: &dyn Fn(&str) -> ConfigError,
    ) -> Result<(), ConfigError> {
        match line {
            Line::Blank => {}
            Line::Section(name) => *place = vec![name.to_owned()],
            Line::Open(_) | Line::Relation(..) if place.is_empty() => {
                return Err(wrong("outside of any section"));
            }
            Line::Open(_) if place.len() >= DEPTH_MAX => return Err(wrong("too deep")),
            Line::Open(name) => place.push(name.to_owned()),
            Line::Close if place.len() < 2 => return Err(wrong("closes what is not open")),
            Line::Close => place.truncate(place.len() - 1),
            Line::Relation(name, value) => self.profile.add(place, name, value),
            Line::Include(path) => {
                if !self.file(absolute(path, wrong)?, includes - 1)? {
                    return Err(wrong("includes a file that is not there"));
                }
            }
            Line::IncludeDirectory(path) => self.directory(absolute(path, wrong)?, includes - 1, wrong)?,
            Line::Module => return Err(wrong("a plug-in gives the rest; name a plain file in KRB5_CONFIG")),
        }
        Ok(())
    }

    fn directory(
        &mut self,
        path: &Path,
        includes: usize,
        wrong: &dyn Fn(&str) -> ConfigError,
    ) -> Result<(), ConfigError> {
        let entries = path.read_dir().map_err(|e| wrong(&format!("cannot read the directory: {e}")))?;
        let names = entries.take(FILES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut files: Vec<PathBuf> = names.filter(|name| counts(name)).map(|name| path.join(name)).collect();
        files.sort();
        files.iter().try_for_each(|file| self.file(file, includes).map(drop))
    }
}

fn wrong(path: &Path, line: usize, why: &str) -> ConfigError {
    ConfigError::Line { path: path.to_owned(), line, why: why.to_owned() }
}

/// Whether a file of an included directory is read: such directories also contain backup copies of editors and of
/// package managers.
fn counts(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.starts_with('.') && (name.ends_with(".conf") || name.chars().all(is_plain))
}

fn absolute<'a>(path: &'a str, wrong: &dyn Fn(&str) -> ConfigError) -> Result<&'a Path, ConfigError> {
    let path = Path::new(path);
    if path.is_absolute() { Ok(path) } else { Err(wrong("the path does not begin with /")) }
}

fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LEN_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(io::Error::other("it is too long"));
    }
    // Only names and addresses are used, so that a comment in another encoding does no harm.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(path: &Path) -> Result<Profile, ConfigError> {
        let mut profile = Profile::default();
        Source::new(&mut profile).read(path).map(|_| profile)
    }

    #[test]
    fn files_include_files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        let (main, more, all) = (dir.path().join("main"), dir.path().join("more"), dir.path().join("d"));
        fs::create_dir(&all).unwrap();
        let text = format!(
            "[libdefaults]\ndefault_realm = A\ninclude {}\nincludedir {}\n",
            more.display(),
            all.display()
        );
        fs::write(&main, text).unwrap();
        fs::write(&more, "[realms]\nA = {\nkdc = one\n}\n").unwrap();
        fs::write(all.join("b.conf"), "[realms]\nA = {\nkdc = three\n}\n").unwrap();
        fs::write(all.join("a"), "[realms]\nA = {\nkdc = two\n}\n").unwrap();
        fs::write(all.join("a.rpmsave"), "junk").unwrap();
        fs::write(all.join(".hidden.conf"), "junk").unwrap();
        let profile = read(&main).unwrap();
        assert_eq!(profile.values(&["realms", "A", "kdc"]).collect::<Vec<_>>(), ["one", "two", "three"]);
        assert_eq!(profile.value(&["libdefaults", "default_realm"]), Some("A"));
    }

    #[test]
    fn errors_name_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("krb5.conf");
        for (text, line, word) in [
            ("kdc = a", 1, "outside of any section"),
            ("[a]\n}", 2, "not open"),
            ("[a]\nb c d", 2, "not understood"),
            ("[a]\ninclude b", 2, "does not begin with /"),
            ("[a]\ninclude /nowhere/at/all", 2, "not there"),
            ("\nmodule /x.so:y", 2, "plug-in"),
        ] {
            fs::write(&path, text).unwrap();
            let said = read(&path).unwrap_err().to_string();
            assert!(said.contains(&format!("line {line}: ")) && said.contains(word), "{said}");
        }
        assert!(Source::new(&mut Profile::default()).read(&path.join("x")).is_err());
        assert!(!Source::new(&mut Profile::default()).read(&dir.path().join("x")).unwrap());
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop");
        fs::write(&path, format!("include {0}\ninclude {0}\n", path.display())).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("too many"));
    }
}
