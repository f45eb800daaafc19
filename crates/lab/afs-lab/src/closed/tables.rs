//! Tables VI and VII and Figures 1 and 2 of Howard et al. 1988, by the model, to loads that the paper did not reach.

use super::network::{AtLoad, Demands};
use crate::papers::{Cell, Entry, Paper, PaperError, Sheet};

/// Loads of the paper, and beyond.
pub const LOADS: [u32; 12] = [1, 2, 5, 8, 10, 15, 20, 50, 100, 200, 300, 500];

fn sheet<'a>(papers: &'a [Paper], id: &str) -> Result<&'a Sheet, PaperError> {
    let is_it = |entry: &&Entry| entry.id == id;
    let entry = papers.iter().flat_map(|paper| &paper.entries).find(is_it);
    entry.map(|entry| &entry.sheet).ok_or_else(|| PaperError::Absent(id.to_owned()))
}

/// A number of the paper at load 1.
pub(super) fn at_one(papers: &[Paper], id: &str, column: &str) -> Result<f64, PaperError> {
    let points = sheet(papers, id)?.points("load_units", column);
    let found = points.into_iter().find(|point| point.0 == 1.0);
    found.map(|point| point.1).ok_or_else(|| PaperError::Absent(format!("{id}, {column}, load 1")))
}

/// What a run needed in the paper, alone (Tables VI and VII).
fn printed(papers: &[Paper]) -> Result<Demands, PaperError> {
    let elapsed = at_one(papers, "howard88.table6", "overall")?;
    let of = |column| at_one(papers, "howard88.table7", column).map(|percent| percent / 100.0 * elapsed);
    Ok(Demands { elapsed, processor: of("cpu")?, disk: of("disk")? })
}

pub(super) fn tenths(number: f64) -> Cell {
    Cell::from((number * 10.0).round() / 10.0)
}

fn relative(demands: Demands, at: AtLoad) -> Cell {
    tenths(100.0 * at.elapsed / demands.elapsed)
}

/// Table VII and Figure 2, with the time of a run: from what the paper measured at load 1, and from what was measured here.
///
/// # Errors
/// A number is not in the data.
pub fn table7(papers: &[Paper], here: Option<Demands>) -> Result<Sheet, PaperError> {
    let printed = printed(papers)?;
    let mut sheet =
        Sheet::new(&[("load_units", "load units"), ("cpu", "%"), ("disk", "%"), ("overall", "s")]);
    if here.is_some() {
        sheet.columns.extend(["measured_cpu", "measured_overall"].map(str::to_owned));
        sheet.units.extend(["%", "s"].map(str::to_owned));
    }
    for load in LOADS {
        let at = printed.at_load(load);
        let mut row = vec![f64::from(load).into(), tenths(100.0 * at.processor), tenths(100.0 * at.disk)];
        row.push(at.elapsed.round().into());
        row.extend(
            here.map(|here| here.at_load(load))
                .into_iter()
                .flat_map(|at| [tenths(100.0 * at.processor), Cell::from((at.elapsed * 1e3).round() / 1e3)]),
        );
        sheet.rows.push(row);
    }
    Ok(sheet)
}

/// Figure 1: time of a run in percent of that at load 1. The prototype's server cannot be modelled so (it is run: `crate::clients`): what a run needed of
/// it is not printed, and grew with the load.
///
/// # Errors
/// A number is not in the data.
pub fn figure1(papers: &[Paper], here: Option<Demands>) -> Result<Sheet, PaperError> {
    let printed = printed(papers)?;
    let mut sheet = Sheet::new(&[("load_units", "load units"), ("prototype", "%"), ("revised", "%")]);
    if here.is_some() {
        sheet.columns.push("measured".into());
        sheet.units.push("%".into());
    }
    for load in LOADS {
        let of = |demands: Demands| relative(demands, demands.at_load(load));
        let row = [f64::from(load).into(), Cell::NotAtHand, of(printed)];
        sheet.rows.push(row.into_iter().chain(here.map(of)).collect());
    }
    Ok(sheet)
}

/// Adds the loads above 1 to a sheet with the columns `load_units` and `overall`, from what was measured at load 1.
pub fn more_loads(sheet: &mut Sheet, here: Demands) {
    let (Some(load_units), Some(overall)) = (sheet.column("load_units"), sheet.column("overall")) else {
        return;
    };
    for load in LOADS.into_iter().skip(1) {
        let mut row = vec![Cell::NotAtHand; sheet.columns.len()];
        row[load_units] = f64::from(load).into();
        // As many digits as the measured row has.
        row[overall] = ((here.at_load(load).elapsed * 1e4).round() / 1e4).into();
        sheet.rows.push(row);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::papers::papers;

    /// The paper's own other loads are a check of the model: times within a fifth, for all that it leaves out.
    #[test]
    fn times_of_other_loads_follow_from_load_1_within_a_fifth() {
        let papers = papers().unwrap();
        let got = table7(&papers, None).unwrap().points("load_units", "overall");
        let want = sheet(&papers, "howard88.table6").unwrap().points("load_units", "overall");
        assert_eq!(want.len(), 7);
        for (load, want) in want {
            let got = got.iter().find(|point| point.0 == load).unwrap().1;
            assert!((got / want - 1.0).abs() < 0.2, "load {load}: {got}, printed {want}");
        }
        assert_eq!(got.last().unwrap().0, 500.0);
    }

    #[test]
    fn load_1_is_as_printed_and_measured_numbers_stand_beside() {
        let papers = papers().unwrap();
        let here = Demands { elapsed: 2.0, processor: 0.2, disk: 0.0 };
        let row = &table7(&papers, Some(here)).unwrap().rows[0];
        let numbers: Vec<f64> = row.iter().filter_map(Cell::number).collect();
        assert_eq!(numbers, [1.0, 8.1, 2.7, 949.0, 10.0, 2.0]);
        let figure = figure1(&papers, Some(here)).unwrap();
        assert_eq!(figure.rows[0], [1.0.into(), Cell::NotAtHand, 100.0.into(), 100.0.into()]);
    }

    #[test]
    fn a_measured_table_gets_the_other_loads() {
        let mut sheet = Sheet::new(&[("load_units", ""), ("overall", "s"), ("copy", "s")]);
        sheet.rows.push(vec![1.0.into(), 2.0.into(), 0.5.into()]);
        more_loads(&mut sheet, Demands { elapsed: 2.0, processor: 0.2, disk: 0.0 });
        assert_eq!(sheet.rows.len(), LOADS.len());
        assert_eq!(sheet.rows.last().unwrap(), &[500.0.into(), 100.0.into(), Cell::NotAtHand]);
    }
}
