//! Source of a C program for the Andrew benchmark: 70 files of 200 kB together, as section 2.3 of Howard et al. 1988 says.

use crate::error::{Context, LabError};
use crate::scratch::Scratch;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Directories of the program.
pub(crate) const MODULES: u32 = 5;
/// C files of a directory; a header comes to them.
pub(crate) const FILES: u32 = 13;
/// Functions of a file.
const FUNCTIONS: u32 = 22;

/// A directory with the source, removed when it is dropped.
pub(crate) struct Program(Scratch);

impl Program {
    /// Writes the source into a new directory below `parent`.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn write_in(parent: &Path) -> Result<Self, LabError> {
        let program = Self(Scratch::make_in(parent, "andrew-lab-source")?);
        for module in 0..MODULES {
            program.write_module(module)?;
        }
        Ok(program)
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    fn write_module(&self, module: u32) -> Result<(), LabError> {
        let directory = self.root().join(format!("module{module}"));
        fs::create_dir(&directory).during("make the directory", &directory)?;
        let mut header = String::new();
        for file in 0..FILES {
            for function in 0..FUNCTIONS {
                let _ = writeln!(header, "int m{module}_{file}_{function}(int first, int second);");
            }
            write(&directory.join(format!("part{file}.c")), &source(module, file))?;
        }
        write(&directory.join("module.h"), &header)
    }
}

fn write(path: &Path, text: &str) -> Result<(), LabError> {
    fs::write(path, text).during("write", path)
}

/// A file of functions that call one another.
fn source(module: u32, file: u32) -> String {
    let mut text = String::from("#include \"module.h\"\n");
    for function in 0..FUNCTIONS {
        let other = (file + 1) % FILES;
        let _ = write!(
            text,
            "\nint m{module}_{file}_{function}(int first, int second) {{\n  int sum = first ^ {};\n  \
             for (int i = 0; i < second; i++) sum = sum * 31 + i;\n  \
             return second > 0 ? sum : m{module}_{other}_{function}(sum, 1);\n}}\n",
            file * 100 + function
        );
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::andrew::SourceTree;

    #[test]
    fn it_has_the_size_that_the_paper_tells_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::write_in(folder.path()).unwrap();
        let size = SourceTree::list(program.root()).unwrap().size();
        assert_eq!((size.directories, size.files), (5, 70));
        assert!((180_000..=300_000).contains(&size.bytes), "{}", size.bytes);
        drop(program);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
