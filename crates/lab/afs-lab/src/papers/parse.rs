//! Parser of a paper's TOML, with bounds on every count.

use super::cell::Cell;
use super::entry::{Claim, Entry, Kind, Paper, Slip, Source};
use super::error::PaperError;
use super::sheet::Sheet;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of a paper's data.
const BYTES_MAX: usize = 256 << 10;
/// Most tables, figures, facts, claims or slips of a paper.
const ENTRIES_MAX: usize = 100;
/// Most columns of an entry.
const COLUMNS_MAX: usize = 32;
/// Most rows of an entry.
const ROWS_MAX: usize = 200;
/// Most bytes of a text.
const TEXT_MAX: usize = 2048;

const EMBEDDED: [&str; 3] = [
    include_str!("../../data/howard88.toml"),
    include_str!("../../data/citi01-3.toml"),
    include_str!("../../data/gibson97.toml"),
];

/// The papers whose data are embedded.
///
/// # Errors
/// None, unless the data were changed: a test parses them.
pub fn papers() -> Result<Vec<Paper>, PaperError> {
    EMBEDDED.into_iter().map(parse).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    meta: Meta,
    #[serde(default)]
    #[allow(dead_code, reason = "said in words for readers of the file; the model itself is code")]
    model: BTreeMap<String, String>,
    #[serde(default)]
    table: Vec<RawEntry>,
    #[serde(default)]
    figure: Vec<RawEntry>,
    #[serde(default)]
    fact: Vec<toml::Table>,
    #[serde(default)]
    claim: Vec<Claim>,
    #[serde(default)]
    slip: Vec<Slip>,
}

#[derive(Deserialize)]
struct Meta {
    paper: String,
    citation: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    id: String,
    title: String,
    page: String,
    section: String,
    #[serde(default)]
    #[allow(dead_code, reason = "the units of the columns are more exact")]
    unit: String,
    #[serde(default)]
    x: String,
    columns: Vec<String>,
    units: Vec<String>,
    rows: Vec<Vec<Cell>>,
    #[serde(default)]
    total: Vec<f64>,
    #[serde(default)]
    notes: String,
    source: Source,
    #[serde(default)]
    doubtful: Vec<String>,
    missing: Option<String>,
    #[serde(default)]
    #[allow(dead_code, reason = "said in the notes too")]
    same_as: Vec<String>,
}

/// Parses the data of one paper.
///
/// # Errors
/// Another form, a count over its bound, a row with another number of cells than there are columns, an id twice.
pub fn parse(text: &str) -> Result<Paper, PaperError> {
    at_most("the file", "bytes", text.len(), BYTES_MAX)?;
    let file: File = toml::from_str(text)?;
    let paper = file.meta.paper;
    for count in [file.table.len(), file.figure.len(), file.fact.len(), file.claim.len(), file.slip.len()] {
        at_most(&paper, "entries of a kind", count, ENTRIES_MAX)?;
    }
    let tables = file.table.into_iter().map(|raw| entry(raw, Kind::Table));
    let figures = file.figure.into_iter().map(|raw| entry(raw, Kind::Figure));
    let entries: Vec<Entry> = tables.chain(figures).collect::<Result<_, _>>()?;
    let mut seen = BTreeSet::new();
    for entry in &entries {
        if !entry.id.starts_with(&paper) || !seen.insert(entry.id.as_str()) {
            return Err(wrong(&entry.id, "its id is another's, or of another paper"));
        }
    }
    if let Some(slip) = file.slip.iter().find(|slip| !seen.contains(slip.entry.as_str())) {
        return Err(wrong(&slip.id, "its entry does not exist"));
    }
    Ok(Paper { id: paper, citation: file.meta.citation, entries, claims: file.claim, slips: file.slip })
}

fn entry(raw: RawEntry, kind: Kind) -> Result<Entry, PaperError> {
    let id = raw.id;
    at_most(&id, "columns", raw.columns.len(), COLUMNS_MAX)?;
    at_most(&id, "rows", raw.rows.len(), ROWS_MAX)?;
    at_most(&id, "doubtful cells", raw.doubtful.len(), ENTRIES_MAX)?;
    at_most(&id, "bytes of notes", raw.notes.len(), TEXT_MAX)?;
    let texts = raw.rows.iter().flatten().filter_map(Cell::text);
    at_most(&id, "bytes of a cell", texts.map(str::len).max().unwrap_or_default(), TEXT_MAX)?;
    let width = raw.columns.len();
    if raw.units.len() != width || raw.rows.iter().any(|row| row.len() != width) {
        return Err(wrong(&id, "units and cells are not as many as columns"));
    }
    let mut rows = raw.rows;
    if !raw.total.is_empty() {
        let total = [Cell::from("total")].into_iter().chain(raw.total.into_iter().map(Cell::from));
        let mut total: Vec<Cell> = total.collect();
        total.resize(width, Cell::NotAtHand);
        rows.push(total);
    }
    let axis = if raw.x.is_empty() { String::new() } else { format!(" Axis: {}.", raw.x) };
    Ok(Entry {
        id,
        kind,
        title: raw.title,
        page: raw.page,
        section: raw.section,
        sheet: Sheet { columns: raw.columns, units: raw.units, rows },
        notes: raw.notes + &axis,
        source: raw.source,
        doubtful: raw.doubtful,
        missing: raw.missing,
    })
}

fn at_most(entry: &str, what: &str, got: usize, max: usize) -> Result<(), PaperError> {
    if got <= max { Ok(()) } else { Err(wrong(entry, &format!("{got} {what}; {max} are allowed"))) }
}

fn wrong(entry: &str, what: &str) -> PaperError {
    PaperError::Bounds { entry: entry.to_owned(), what: what.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    #[test]
    fn all_embedded_papers_have_their_tables_and_figures() {
        let papers = papers().unwrap();
        let counts: Vec<_> = papers.iter().map(|p| (p.id.as_str(), p.entries.len(), p.slips.len())).collect();
        assert_eq!(counts, [("howard88", 21, 0), ("citi01-3", 9, 0), ("gibson97", 25, 6)]);
        let table = papers[0].entries.iter().find(|entry| entry.id == "howard88.table14").unwrap();
        assert_eq!(table.sheet.points("file_bytes", "andrew_cold").len(), 5);
        assert_eq!(table.sheet.points("file_bytes", "nfs").len(), 1, "what is not at hand is no number");
        assert!(papers.iter().flat_map(|paper| &paper.claims).count() > 40);
    }

    fn with_entry(lines: &str) -> String {
        let text = format!(
            "[meta]\npaper = \"p\"\ncitation = \"c\"\n[[table]]\nid = \"p.t\"\ntitle = \"t\"\npage = \"\"\n\
             section = \"\"\nsource = \"table\"\n{lines}"
        );
        parse(&text)
            .map_or_else(|error| error.to_string(), |paper| format!("{:?}", paper.entries[0].sheet.rows))
    }

    #[test]
    fn what_is_out_of_bounds_or_form_is_refused() {
        let good = "columns = [\"a\"]\nunits = [\"s\"]\nrows = [[1]]\n";
        assert_eq!(with_entry(&format!("{good}total = [2]")), "[[Number(1.0)], [Text(\"total\")]]");
        for (lines, said) in [
            ("columns = [\"a\"]\nunits = []\nrows = [[1]]", "not as many as columns"),
            ("columns = [\"a\"]\nunits = [\"s\"]\nrows = [[1, 2]]", "not as many as columns"),
            (
                &format!("columns = [\"a\"]\nunits = [\"s\"]\nrows = [{}]", "[1],".repeat(201)),
                "201 rows; 200 are allowed",
            ),
            (&format!("{good}notes = \"{}\"", "x".repeat(2049)), "2049 bytes of notes"),
            (&format!("{good}other = 1"), "unknown field"),
            (
                &format!("{good}[[slip]]\nid = \"s\"\nentry = \"p.u\"\nwhat = \"w\""),
                "its entry does not exist",
            ),
        ] {
            let error = with_entry(lines);
            assert!(error.contains(said), "{said}: {error}");
        }
        assert!(parse(&" ".repeat(BYTES_MAX + 1)).is_err());
    }
}
