//! Which entries are plotted, and how.

use crate::papers::{Cell, Sheet};

/// Columns that only a result has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Here {
    /// Those of these names.
    Named(&'static [&'static str]),
    /// Whatever systems were measured: all that are neither of the plot already, nor spreads.
    All,
}

/// A plot of columns over a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chart {
    /// Id of the entry.
    pub(super) id: &'static str,
    /// Column of the horizontal axis.
    pub(super) x: &'static str,
    /// Name of that axis, with its unit.
    pub(super) x_label: &'static str,
    /// Whether it is logarithmic.
    pub(super) is_log: bool,
    /// Name of the vertical axis, with its unit.
    pub(super) y_label: &'static str,
    /// Columns of the vertical axis, of the paper or of the result.
    pub(super) series: &'static [&'static str],
    /// Further ones, which only the result has.
    pub(super) here: Here,
    /// Gives a sheet these columns.
    pub(super) form: fn(&Sheet) -> Sheet,
}

impl Chart {
    /// The same plot with further columns of the result.
    const fn and_here(self, here: &'static [&'static str]) -> Self {
        Self { here: Here::Named(here), ..self }
    }

    /// The same plot with all further columns of the result.
    const fn and_all(self) -> Self {
        Self { here: Here::All, ..self }
    }
}

/// The model reaches loads far above the paper's.
const LOAD: (&str, &str, bool) = ("load_units", "load units", true);

const fn plot(
    id: &'static str,
    (x, x_label, is_log): (&'static str, &'static str, bool),
    y_label: &'static str,
    series: &'static [&'static str],
) -> Chart {
    Chart { id, x, x_label, is_log, y_label, series, here: Here::Named(&[]), form: Sheet::clone }
}

const BYTES: (&str, &str, bool) = ("bytes", "bytes", true);

const CHARTS: &[Chart] = &[
    plot("howard88.table3", LOAD, "overall time, s", &["overall"]).and_here(&["andrew_overall"]),
    plot("howard88.table6", LOAD, "time, s", &["overall", "copy", "make"]),
    plot("howard88.table7", LOAD, "use of the server, %", &["cpu", "disk"])
        .and_here(&["measured_cpu", "ran_cpu"]),
    plot(
        "howard88.table14",
        ("file_bytes", "file size, bytes", true),
        "open, read and close, ms",
        &["andrew_cold", "andrew_warm", "standalone"],
    )
    .and_all(),
    plot("howard88.fig1", LOAD, "time, % of that at load 1", &["prototype", "revised"]).and_here(&[
        "measured",
        "ran_prototype",
        "ran_andrew",
    ]),
    plot("howard88.fig2", LOAD, "use of the server, %", &["cpu", "disk"])
        .and_here(&["measured_cpu", "ran_cpu"]),
    plot("howard88.fig3", LOAD, "overall time, s", &["nfs", "andrew_cold", "andrew_warm"]).and_all(),
    plot("howard88.fig4", LOAD, "use of the processor, %", &["nfs", "andrew_cold", "andrew_warm"]).and_all(),
    plot("howard88.fig5", LOAD, "use of the disk, %", &["nfs_disk1", "nfs_disk2", "andrew_cold"]),
    plot("citi01-3.fig5", ("size_mb", "file size, MB", true), "MB/s", &["caching", "combined"]),
    plot("gibson97.table3b", BYTES, "thousand cycles", &["read", "write"]),
    plot("gibson97.table4b", BYTES, "thousand cycles", &["FetchData", "StoreData", "RemoveFile"]),
    plot("gibson97.table4c", ("entries", "directory entries", false), "thousand cycles", &["kcycles"]),
    plot(
        "gibson97.fig4",
        ("seconds", "server work of a client-minute, s", true),
        "client-minutes, %",
        &["nfs", "afs"],
    ),
    Chart { form: drawn, ..plot("gibson97.fig6", MINUTES, "processor time, s", CURVES) },
    Chart {
        form: by_curve,
        ..plot("gibson97.fig7", MINUTES, "processor time, s", CURVES).and_here(CURVES_HERE)
    },
];

const MINUTES: (&str, &str, bool) = ("client_minutes", "busy client-minutes", false);

/// Curves of systems that have numbers only with measured costs.
const CURVES_HERE: &[&str] = &["nfs_SID", "nfs_NASD_groups", "afs_SID", "afs_NASD_groups"];

const CURVES: &[&str] = &["nfs_SAD", "nfs_NetSCSI", "nfs_NASD", "afs_SAD", "afs_NetSCSI", "afs_NASD"];

/// Draws in the place of the means of which they are draws: these are the paper's.
fn drawn(sheet: &Sheet) -> Sheet {
    let mut drawn = sheet.clone();
    for column in &mut drawn.columns {
        let (stem, end) = column.split_once("_drawn").unwrap_or((column, ""));
        *column = match sheet.column(&format!("{column}_drawn")) {
            Some(_) => format!("{column}_mean"),
            None => format!("{stem}{end}"),
        };
    }
    drawn
}

/// Rows `NFS, 90, "SAD, processor, s", 58.9, 1.2` as columns `nfs_SAD` and `nfs_SAD_ci90` over the client-minutes. The
/// other rows of the sheet are no points of a curve, as are all of the paper's.
fn by_curve(sheet: &Sheet) -> Sheet {
    let mut wide = Sheet::new(&[("client_minutes", "")]);
    let curves = CURVES.iter().chain(CURVES_HERE);
    wide.columns.extend(curves.flat_map(|curve| [(*curve).to_owned(), format!("{curve}_ci90")]));
    wide.units = vec![String::new(); wide.columns.len()];
    for row in &sheet.rows {
        let [trace, minutes, what, value, half] = row.as_slice() else { continue };
        let curve = what.text().and_then(|what| what.strip_suffix(", processor, s")).zip(trace.text());
        let curve = curve.map(|(system, trace)| format!("{}_{system}", trace.to_lowercase()));
        let Some(at) = curve.and_then(|curve| wide.column(&curve)) else { continue };
        let mut point = vec![Cell::NotAtHand; wide.columns.len()];
        for (column, cell) in [(0, minutes), (at, value), (at + 1, half)] {
            if let Some(place) = point.get_mut(column) {
                *place = cell.clone();
            }
        }
        wide.rows.push(point);
    }
    wide
}

/// The plot of an entry.
pub(super) fn of(id: &str) -> Option<&'static Chart> {
    CHARTS.iter().find(|chart| chart.id == id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::papers::papers;

    #[test]
    fn every_plot_is_of_columns_of_its_entry() {
        let papers = papers().unwrap();
        for chart in CHARTS {
            let entry = papers.iter().flat_map(|paper| &paper.entries).find(|entry| entry.id == chart.id);
            let sheet = &(chart.form)(&entry.unwrap().sheet);
            for column in [chart.x].iter().chain(chart.series) {
                assert!(sheet.column(column).is_some(), "{}: {column}", chart.id);
            }
        }
    }
}
