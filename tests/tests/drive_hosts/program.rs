//! A program in C with large tables, so that the bytes of its parts are too many for calls; its build, and the comparison of two.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use andrew_tests::live::files::Pattern;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::real_input::tree::{differences, read};

/// Tables of the program, and the blocks of 64 KiB of each.
const TABLES: u64 = 3;
const BLOCKS: u64 = 35;
const MAKEFILE: &str = "\
OBJECTS = main.o table0.o table1.o table2.o
program: $(OBJECTS)
\t$(CC) -o $@ $(OBJECTS)
table%.o: table%.c table%.bin
\t$(CC) -O1 -c -o $@ $<
test: program
\t./program > sums.txt
clean:
\trm -f $(OBJECTS) program sums.txt
";
const MAIN: &str = r#"
#include <stdio.h>
extern const unsigned char table0[], table0_end[], table1[], table1_end[], table2[], table2_end[];
static unsigned long sum(const unsigned char *from, const unsigned char *to) {
    unsigned long hash = 14695981039346656037ul;
    for (; from < to; from++) hash = (hash ^ *from) * 1099511628211ul;
    return hash;
}
int main(void) {
    printf("%016lx\n%016lx\n%016lx\n", sum(table0, table0_end), sum(table1, table1_end), sum(table2, table2_end));
    return 0;
}
"#;

/// The source in a folder, and what is built of it there.
#[derive(Clone)]
pub struct Program(PathBuf);

impl Program {
    /// Writes the source.
    pub fn write(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("Makefile"), MAKEFILE).unwrap();
        fs::write(folder.join("main.c"), MAIN).unwrap();
        for table in 0..TABLES {
            let source = format!(
                "__asm__(\".section .rodata\\n.globl table{table}, table{table}_end\\ntable{table}: .incbin \\\"table{table}.bin\\\"\\n\
                 table{table}_end:\\n.section .note.GNU-stack,\\\"\\\",@progbits\\n\");\n"
            );
            fs::write(folder.join(format!("table{table}.c")), source).unwrap();
            Pattern(table + 1).write(&folder.join(format!("table{table}.bin")), BLOCKS).unwrap();
        }
        Self(folder.to_owned())
    }

    /// The same as another mount sees it.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The files that are large.
    pub fn tables(&self) -> impl Iterator<Item = PathBuf> {
        (0..TABLES).map(|table| self.0.join(format!("table{table}.bin")))
    }

    /// Builds all of it anew, and runs it.
    pub fn build(&self) {
        let mut make = Command::new("make");
        // The job server of a make that runs this test must not limit these jobs.
        make.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL").env("LC_ALL", "C");
        make.current_dir(&self.0).args(["clean", "test"]);
        let _ = run(make, seconds(300));
    }

    /// Compares every byte with another one.
    pub fn assert_same(&self, other: &Program) {
        let trees = [&self.0, &other.0].map(|folder| read(folder).unwrap());
        assert_eq!(differences(&trees[0], &trees[1]), Vec::<String>::new(), "{}", self.0.display());
    }
}
