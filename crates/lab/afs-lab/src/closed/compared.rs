//! Section 5.3 of Howard et al. 1988, by the model: NFS and Andrew on the same machines, from what each needs at load 1.

use super::network::{AtLoad, Demands};
use super::tables::{LOADS, at_one, tenths};
use crate::papers::{Cell, Paper, PaperError, Sheet};
use std::borrow::Cow;

/// What a run was measured to need alone in one of several systems on the same machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Name of the system.
    pub name: String,
    /// What a run needs there.
    pub demands: Demands,
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

/// A column of the paper's: its name, its unit, the system, and the number of a load.
type Printable = (&'static str, &'static str, Demands, fn(AtLoad) -> Cell);
/// The same with any name.
type Column<'a> = (Cow<'a, str>, &'static str, Demands, fn(AtLoad) -> Cell);

/// Table XII or one of Figures 3 to 5, from what the paper measured at load 1, and from what was measured here: columns
/// `measured_NAME`.
///
/// # Errors
/// A number is not in the data.
pub fn compared(papers: &[Paper], told: Told, here: &[Compared]) -> Result<Sheet, PaperError> {
    let Printed { nfs, cold, warm } = Printed::of(papers)?;
    let seconds: fn(AtLoad) -> Cell = |at| ((at.elapsed * 1e3).round() / 1e3).into();
    let whole: fn(AtLoad) -> Cell = |at| at.elapsed.round().into();
    let processor: fn(AtLoad) -> Cell = |at| tenths(100.0 * at.processor);
    let disk: fn(AtLoad) -> Cell = |at| tenths(100.0 * at.disk);
    let printed: Vec<Printable> = match told {
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
    let here = here.iter().filter(|_| told != Told::Disk);
    let here = here.map(|one| (format!("measured_{}", one.name).into(), unit, one.demands, of));
    let printed = printed.into_iter().map(|(name, unit, demands, of)| (name.into(), unit, demands, of));
    Ok(at_all_loads(&printed.chain(here).collect::<Vec<Column<'_>>>()))
}

fn at_all_loads(columns: &[Column<'_>]) -> Sheet {
    let mut sheet = Sheet::new(&[("load_units", "load units")]);
    for (name, unit, ..) in columns {
        sheet.columns.push(name.as_ref().to_owned());
        sheet.units.push((*unit).to_owned());
    }
    for load in LOADS {
        let cells = columns.iter().map(|(_, _, demands, of)| of(demands.at_load(load)));
        sheet.rows.push([f64::from(load).into()].into_iter().chain(cells).collect());
    }
    sheet
}

/// The smallest load at which a run on one system takes longer than on another one, if there is one up to the largest of
/// [`LOADS`].
#[must_use]
pub fn crossing(one: Demands, other: Demands) -> Option<u32> {
    let largest = LOADS.into_iter().max().unwrap_or_default();
    (1..=largest).find(|load| one.at_load(*load).elapsed > other.at_load(*load).elapsed)
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
        let of = |name: &str, demands| Compared { name: name.to_owned(), demands };
        let here = [of("nfs", nfs), of("kafs", Demands { processor: 0.2, ..nfs })];
        let first = |told, here: &[Compared]| {
            let sheet = compared(&papers, told, here).unwrap();
            sheet.rows[0].iter().filter_map(Cell::number).collect::<Vec<_>>()
        };
        assert_eq!(first(Told::Overall, &here), [1.0, 511.0, 588.0, 564.0, 4.0, 4.0]);
        assert_eq!(first(Told::Processor, &here), [1.0, 22.0, 3.0, 3.0, 25.0, 5.0]);
        assert_eq!(first(Told::Disk, &here), [1.0, 9.0, 4.0]);
        assert_eq!(first(Told::Server, &[]), [1.0, 22.0, 9.0, 3.0, 4.0, 3.0]);
        let columns = compared(&papers, Told::Server, &here).unwrap().columns;
        assert_eq!(columns[columns.len() - 2..], ["measured_nfs", "measured_kafs"]);
    }
}
