//! Plots as SVG: what is drawn (the paper's columns, and those obtained here with their spread), and the ranges of the axes.

use super::axis::Axis;
use super::charts::{Chart, Here};
use super::drawing::draw;
use super::shown::{is_spread, spread};
use crate::papers::{Cell, Sheet};

/// A value with its lowest and highest.
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) spread: Option<(f64, f64)>,
}

/// A column of the paper or of the result.
pub(super) struct Series {
    /// Name in the legend.
    pub(super) name: String,
    /// Position of its column in the chart: the same of the paper and here have the same colour.
    pub(super) column: usize,
    pub(super) is_here: bool,
    pub(super) points: Vec<Point>,
}

/// Rules by which a plot that stands alone has its own ground and ink, light or dark as the reader's screen.
const ALONE: &str = "<style>\
    svg { color-scheme: light dark; background: #fff; color: #1a1a1a; }\
    @media (prefers-color-scheme: dark) { svg { background: #16181c; color: #e6e6e6; } }\
    text { fill: currentColor; } [stroke=\"#000000\"] { stroke: currentColor; }\
    </style>";

/// The plot, for a page that has colours for it; `None` if there is no point, or the library refuses it.
pub(super) fn svg(chart: &Chart, paper: &Sheet, here: Option<&Sheet>) -> Option<String> {
    let mut all = series(chart, paper, false);
    all.extend(here.into_iter().flat_map(|sheet| series(chart, sheet, true)));
    let is_log = are_apart(&all);
    if is_log {
        all.iter_mut().flat_map(|series| &mut series.points).for_each(Point::make_logarithmic);
    }
    let points = || all.iter().flat_map(|series| &series.points);
    let x = Axis::over(points().map(|point| point.x), chart.is_log)?;
    let values = points().flat_map(|point| {
        let (low, high) = point.spread.unwrap_or((point.y, point.y));
        [low, point.y, high]
    });
    let y = match is_log {
        true => Axis::over(values, true)?,
        false => Axis::from_nothing(values.max_by(f64::total_cmp)?),
    };
    let mut text = String::new();
    draw(chart, &all, (&x, &y), &mut text).ok()?;
    Some(text)
}

/// How many times as high as another a series is where a linear axis would show the lower one as a line on the ground.
const APART: f64 = 30.0;

fn are_apart(all: &[Series]) -> bool {
    let values = |series: &Series| series.points.iter().map(|point| point.y).collect::<Vec<_>>();
    if all.iter().flat_map(values).any(|value| value <= 0.0) {
        return false;
    }
    let tops = || all.iter().filter_map(|series| values(series).into_iter().max_by(f64::total_cmp));
    let (low, high) = (tops().min_by(f64::total_cmp), tops().max_by(f64::total_cmp));
    low.zip(high).is_some_and(|(low, high)| high / low > APART)
}

impl Point {
    /// Of a spread that reaches nothing, the lower part is not drawn.
    fn make_logarithmic(&mut self) {
        let low = |low: f64| if low > 0.0 { low } else { self.y };
        self.spread = self.spread.map(|(lowest, highest)| (low(lowest).log10(), highest.log10()));
        self.y = self.y.log10();
    }
}

/// The same plot as a file of its own.
pub(super) fn alone(svg: &str) -> String {
    svg.split_once('>').map_or_else(String::new, |(head, rest)| format!("{head}>{ALONE}{rest}"))
}

/// Columns of a sheet that have points.
fn series(chart: &Chart, sheet: &Sheet, is_here: bool) -> Vec<Series> {
    let sheet = &(chart.form)(sheet);
    let whose = if is_here { "here" } else { "paper" };
    let here = if is_here { further(chart, sheet) } else { Vec::new() };
    let series = chart.series.iter().copied().chain(here).enumerate().map(|(column, name)| Series {
        name: format!("{}, {whose}", name.replace('_', " ")),
        column,
        is_here,
        points: points(chart, sheet, name),
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

/// Columns that only the result has.
fn further<'a>(chart: &Chart, sheet: &'a Sheet) -> Vec<&'a str> {
    match chart.here {
        Here::Named(names) => names.to_vec(),
        Here::All => {
            let is_new = |name: &&str| *name != chart.x && !chart.series.contains(name);
            sheet
                .columns
                .iter()
                .map(String::as_str)
                .filter(|name| !is_spread(sheet, name))
                .filter(is_new)
                .collect()
        }
    }
}

fn points(chart: &Chart, sheet: &Sheet, column: &str) -> Vec<Point> {
    let (Some(x), Some(y)) = (sheet.column(chart.x), sheet.column(column)) else { return Vec::new() };
    let point = |row: &Vec<Cell>| {
        let (x, y) = (row.get(x)?.number()?, row.get(y)?.number()?);
        let x = if chart.is_log { x.log10() } else { x };
        x.is_finite().then_some(Point {
            x,
            y,
            spread: spread(sheet, column, row).map(|(low, high)| (low.max(0.0), high)),
        })
    };
    sheet.rows.iter().filter_map(point).collect()
}
