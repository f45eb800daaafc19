//! Parser of OpenAFS's `CellServDB`: `>cell #comment`, then one address of a location server a line
//! (docs/protocol/client.md "1. Configuration files").

use afs_wire::ids::CellName;
use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;

/// Most cells of a file that are used; the public file has some two hundred.
const CELLS_MAX: usize = 1024;
/// Most location servers of a cell, as many as OpenAFS's client takes.
const SERVERS_MAX: usize = 8;
/// Most bad lines that are told.
const BAD_MAX: usize = 100;

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellServDb {
    /// The cells with a server, in the order of the file. A cell of which only the name stands there is left to DNS, as OpenAFS does.
    pub cells: Vec<ListedCell>,
    /// The lines that say nothing, at most 100. The others count nevertheless.
    pub bad: Vec<BadLine>,
}

/// A cell of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCell {
    /// The cell.
    pub name: CellName,
    /// Its location servers, at most 8; further ones are not used.
    pub servers: Vec<Ipv4Addr>,
}

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub number: usize,
    /// Why.
    pub why: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.number, self.why)
    }
}

impl CellServDb {
    /// Parses a file. Bytes that are no text are those of comments, or make a bad line.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut parser = Parser::default();
        for (n, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if let Err(why) = parser.line(&String::from_utf8_lossy(line)) {
                parser.bad(BadLine { number: n + 1, why });
            }
        }
        parser.end_cell();
        parser.parsed
    }
}

#[derive(Default)]
struct Parser {
    parsed: CellServDb,
    seen: BTreeSet<CellName>,
    /// The cell whose servers follow; `None` after a bad one, whose servers are passed over.
    cell: Option<ListedCell>,
    /// True after the first line of a cell.
    has_begun: bool,
}

impl Parser {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let text = line.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(());
        }
        match text.strip_prefix('>') {
            Some(cell) => self.begin_cell(cell),
            None => self.server(text),
        }
    }

    /// `>cell`, with the names of linked cells behind it, which are of DCE.
    fn begin_cell(&mut self, text: &str) -> Result<(), String> {
        self.end_cell();
        self.has_begun = true;
        let name = text.split_whitespace().next().ok_or("a cell's name is missing after \">\"")?;
        let name = CellName::new(name).map_err(|error| error.to_string())?;
        if self.seen.len() >= CELLS_MAX {
            return Err(format!("{name} is not used: there are {CELLS_MAX} cells before it"));
        }
        if !self.seen.insert(name.clone()) {
            return Err(format!("{name} stands in the file twice; the first entry counts"));
        }
        self.cell = Some(ListedCell { name, servers: Vec::new() });
        Ok(())
    }

    /// An address; in brackets that of a server without a vote, which replies as well as any other.
    fn server(&mut self, text: &str) -> Result<(), String> {
        let inner = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        let first = inner.unwrap_or(text).split_whitespace().next().unwrap_or_default();
        let address: Ipv4Addr = first.parse().map_err(|_| {
            format!("{:?} is neither the address of a server nor \">\" and a cell", shortened(first))
        })?;
        match &mut self.cell {
            Some(cell) if cell.servers.len() < SERVERS_MAX => cell.servers.push(address),
            None if !self.has_begun => {
                return Err("an address stands before the first \">\" with a cell".into());
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    fn end_cell(&mut self) {
        self.parsed.cells.extend(self.cell.take().filter(|cell| !cell.servers.is_empty()));
    }

    fn bad(&mut self, line: BadLine) {
        if self.parsed.bad.len() < BAD_MAX {
            self.parsed.bad.push(line);
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(db: &CellServDb) -> Vec<String> {
        let one = |cell: &ListedCell| {
            let servers: Vec<String> = cell.servers.iter().map(ToString::to_string).collect();
            format!("{} {}", cell.name, servers.join(" "))
        };
        db.cells.iter().map(one).collect()
    }

    #[test]
    fn openafs_s_file_is_read() {
        let text = b">grand.central.org      #GCO Public CellServDB 23 Nov 2026\n\
            18.9.48.14                      #grand.mit.edu\r\n\
            128.2.13.219                    #grand-old-opry.central.org\n\
            \n\
            # a comment\n\
            >Example.ORG linked.example.org #\xe9\n\
            [192.0.2.1] #clone.example.org\n\
            >of.dns #by its name alone\n\
            >last.example\n192.0.2.9";
        let db = CellServDb::parse(text);
        assert_eq!(db.bad, []);
        assert_eq!(
            shown(&db),
            ["grand.central.org 18.9.48.14 128.2.13.219", "example.org 192.0.2.1", "last.example 192.0.2.9"]
        );
    }

    #[test]
    fn bad_lines_are_told_by_their_number_and_the_others_count() {
        let text = b"192.0.2.9\n>good.cell\n192.0.2.1\n192.0.2.300 #x\nhost.example\n>\n192.0.2.2\n>bad/cell\n192.0.2.3\n>good.cell\n192.0.2.4\n>next.cell\n192.0.2.5\n";
        let db = CellServDb::parse(text);
        assert_eq!(shown(&db), ["good.cell 192.0.2.1", "next.cell 192.0.2.5"]);
        assert_eq!(db.bad.iter().map(|bad| bad.number).collect::<Vec<_>>(), [1, 4, 5, 6, 8, 10]);
        assert_eq!(
            db.bad[2].to_string(),
            "line 5: \"host.example\" is neither the address of a server nor \">\" and a cell"
        );
        assert!(db.bad[5].why.contains("twice"), "{}", db.bad[5]);
    }

    #[test]
    fn what_a_file_makes_is_bounded() {
        let mut text = String::new();
        for n in 0..2000 {
            text.push_str(&format!(">cell{n}.example\n"));
            (0..20).for_each(|last| text.push_str(&format!("192.0.2.{last}\n")));
        }
        let db = CellServDb::parse(text.as_bytes());
        assert_eq!((db.cells.len(), db.bad.len()), (1024, 100));
        assert!(db.cells.iter().all(|cell| cell.servers.len() == 8));
        assert_eq!(CellServDb::parse(&[b'\n'; 1 << 16]), CellServDb::default());
    }
}
