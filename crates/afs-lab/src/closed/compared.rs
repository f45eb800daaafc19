//! Section 5.3 of Howard et al. 1988, by the model: NFS and Andrew on the same machines, from what each needs at load 1.

use super::network::{AtLoad, Demands};
use super::tables::{LOADS, at_one, tenths};
use crate::papers::{Cell, Paper, PaperError, Sheet};

/// What a run needs alone, in two systems on the same machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// On NFS.
    pub nfs: Demands,
    /// On Andrew, whose cache has the source; `None` if there was no mount.
    pub andrew: Option<Demands>,
}

/// What is told of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Seconds of a run (Figure 3).
    Overall,
    /// Use of the server's processor in percent (Figure 4).
    Processor,
    /// Use of its disk in percent (Figure 5): of NFS's two the first.
    Disk,
    /// Both uses (Table XII).
    Server,
}

/// What a run needed in the paper: on NFS, on Andrew with a cold cache and with a warm one.
struct Printed {
    nfs: Demands,
    cold: Demands,
    warm: Demands,
}

impl Printed {
    fn of(papers: &[Paper]) -> Result<Self, PaperError> {
        let system = |time: &str, processor: &str, disk: &str| -> Result<Demands, PaperError> {
            let elapsed = at_one(papers, "howard88.fig3", time)?;
            let used =
                |column| at_one(papers, "howard88.table12", column).map(|percent| percent / 100.0 * elapsed);
            Ok(Demands { elapsed, processor: used(processor)?, disk: used(disk)? })
        };
        Ok(Self {
            nfs: system("nfs", "nfs_cpu", "nfs_disk1")?,
            cold: system("andrew_cold", "andrew_cold_cpu", "andrew_cold_disk")?,
            // Of the disk with a warm cache the text says only that it is used slightly less than with a cold one.
            warm: system("andrew_warm", "andrew_warm_cpu", "andrew_cold_disk")?,
        })
    }
}

/// A column: its name, its unit, the system, and the number of a load.
type Column = (&'static str, &'static str, Demands, fn(AtLoad) -> Cell);

/// Table XII or one of Figures 3 to 5, from what the paper measured at load 1, and from what was measured here.
///
/// # Errors
/// A number is not in the data.
pub fn compared(papers: &[Paper], told: Told, here: Option<Compared>) -> Result<Sheet, PaperError> {
    let Printed { nfs, cold, warm } = Printed::of(papers)?;
    let seconds: fn(AtLoad) -> Cell = |at| ((at.elapsed * 1e3).round() / 1e3).into();
    let whole: fn(AtLoad) -> Cell = |at| at.elapsed.round().into();
    let processor: fn(AtLoad) -> Cell = |at| tenths(100.0 * at.processor);
    let disk: fn(AtLoad) -> Cell = |at| tenths(100.0 * at.disk);
    let mut columns: Vec<Column> = match told {
        Told::Overall => {
            vec![
                ("nfs", "s", nfs, whole),
                ("andrew_cold", "s", cold, whole),
                ("andrew_warm", "s", warm, whole),
            ]
        }
        Told::Processor => vec![
            ("nfs", "%", nfs, processor),
            ("andrew_cold", "%", cold, processor),
            ("andrew_warm", "%", warm, processor),
        ],
        Told::Disk => vec![("nfs_disk1", "%", nfs, disk), ("andrew_cold", "%", cold, disk)],
        Told::Server => vec![
            ("nfs_cpu", "%", nfs, processor),
            ("nfs_disk1", "%", nfs, disk),
            ("andrew_cold_cpu", "%", cold, processor),
            ("andrew_cold_disk", "%", cold, disk),
            ("andrew_warm_cpu", "%", warm, processor),
        ],
    };
    let (unit, of) = if told == Told::Overall { ("s", seconds) } else { ("%", processor) };
    // The disk is not measured.
    for Compared { nfs, andrew } in here.into_iter().filter(|_| told != Told::Disk) {
        columns.push(("measured_nfs", unit, nfs, of));
        columns.extend(andrew.map(|andrew| ("measured_andrew", unit, andrew, of)));
    }
    Ok(at_all_loads(&columns))
}

fn at_all_loads(columns: &[Column]) -> Sheet {
    let mut sheet = Sheet::new(&[("load_units", "load units")]);
    for (name, unit, ..) in columns {
        sheet.columns.push((*name).to_owned());
        sheet.units.push((*unit).to_owned());
    }
    for load in LOADS {
        let cells = columns.iter().map(|(_, _, demands, of)| of(demands.at_load(load)));
        sheet.rows.push([f64::from(load).into()].into_iter().chain(cells).collect());
    }
    sheet
}

/// The smallest load at which a run on NFS takes longer than one on Andrew, if there is one up to the largest of [`LOADS`].
#[must_use]
pub fn crossing(nfs: Demands, andrew: Demands) -> Option<u32> {
    let largest = LOADS.into_iter().max().unwrap_or_default();
    (1..=largest).find(|load| nfs.at_load(*load).elapsed > andrew.at_load(*load).elapsed)
}

/// The crossings of the paper's systems by the model: Andrew with a warm cache, and with a cold one.
///
/// # Errors
/// A number is not in the data.
pub fn printed_crossings(papers: &[Paper]) -> Result<[Option<u32>; 2], PaperError> {
    let Printed { nfs, cold, warm } = Printed::of(papers)?;
    Ok([crossing(nfs, warm), crossing(nfs, cold)])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::papers::papers;

    /// Section 5.3: "about 3" with a warm cache, "about 4" with a cold one.
    #[test]
    fn nfs_falls_behind_andrew_where_the_paper_says() {
        assert_eq!(printed_crossings(&papers().unwrap()).unwrap(), [Some(3), Some(4)]);
        let one = Demands { elapsed: 1.0, processor: 0.1, disk: 0.0 };
        assert_eq!(crossing(one, one), None);
    }

    #[test]
    fn load_1_is_as_printed_and_what_was_measured_stands_beside() {
        let papers = papers().unwrap();
        let nfs = Demands { elapsed: 4.0, processor: 1.0, disk: 0.0 };
        let here = Compared { nfs, andrew: Some(Demands { processor: 0.2, ..nfs }) };
        let first = |told, here| {
            let sheet = compared(&papers, told, here).unwrap();
            sheet.rows[0].iter().filter_map(Cell::number).collect::<Vec<_>>()
        };
        assert_eq!(first(Told::Overall, Some(here)), [1.0, 511.0, 588.0, 564.0, 4.0, 4.0]);
        assert_eq!(first(Told::Processor, Some(here)), [1.0, 22.0, 3.0, 3.0, 25.0, 5.0]);
        assert_eq!(first(Told::Disk, Some(here)), [1.0, 9.0, 4.0]);
        assert_eq!(first(Told::Server, None), [1.0, 22.0, 9.0, 3.0, 4.0, 3.0]);
        assert_eq!(first(Told::Overall, Some(Compared { andrew: None, ..here })).len(), 5);
    }
}
