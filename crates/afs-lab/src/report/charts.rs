//! Which entries are plotted, and how.

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
}

const LOAD: (&str, &str, bool) = ("load_units", "load units", false);

const fn plot(
    id: &'static str,
    (x, x_label, is_log): (&'static str, &'static str, bool),
    y_label: &'static str,
    series: &'static [&'static str],
) -> Chart {
    Chart { id, x, x_label, is_log, y_label, series }
}

const BYTES: (&str, &str, bool) = ("bytes", "bytes", true);

const CHARTS: &[Chart] = &[
    plot("howard88.table3", LOAD, "overall time, s", &["overall"]),
    plot("howard88.table6", LOAD, "time, s", &["overall", "copy", "make"]),
    plot("howard88.table7", LOAD, "use of the server, %", &["cpu", "disk"]),
    plot(
        "howard88.table14",
        ("file_bytes", "file size, bytes", true),
        "open, read and close, ms",
        &["andrew_cold", "andrew_warm", "standalone"],
    ),
    plot("howard88.fig1", LOAD, "time, % of that at load 1", &["prototype", "revised"]),
    plot("howard88.fig2", LOAD, "use of the server, %", &["cpu", "disk"]),
    plot("howard88.fig3", LOAD, "overall time, s", &["nfs", "andrew_cold", "andrew_warm"]),
    plot("howard88.fig4", LOAD, "use of the processor, %", &["nfs", "andrew_cold", "andrew_warm"]),
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
    plot(
        "gibson97.fig6",
        ("client_minutes", "busy client-minutes", false),
        "processor time, s",
        &["nfs_SAD", "nfs_NetSCSI", "nfs_NASD", "afs_SAD", "afs_NetSCSI", "afs_NASD"],
    ),
];

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
            let sheet = &entry.unwrap().sheet;
            for column in [chart.x].iter().chain(chart.series) {
                assert!(sheet.column(column).is_some(), "{}: {column}", chart.id);
            }
        }
    }
}
