//! Plots as SVG: the paper's points as circles, those obtained here as triangles, each with its spread.

use super::charts::Chart;
use super::shown::spread;
use crate::papers::Sheet;
use plotters::prelude::*;
use plotters::style::RGBColor;
use std::ops::Range;

/// Width and height in units of the SVG.
const SIZE: (u32, u32) = (640, 400);

/// Colours that differ also for the colour-blind (Okabe and Ito 2008), and are seen on white and on black.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(200, 140, 0),
    RGBColor(86, 160, 213),
];

/// A value with its lowest and highest.
struct Point {
    x: f64,
    y: f64,
    spread: Option<(f64, f64)>,
}

/// A column of the paper or of the result.
struct Series {
    name: String,
    colour: RGBColor,
    is_here: bool,
    points: Vec<Point>,
}

/// The plot; `None` if there is no point, or the library refuses it.
pub(super) fn svg(chart: &Chart, paper: &Sheet, here: Option<&Sheet>) -> Option<String> {
    let sheets = [(Some(paper), false), (here, true)];
    let mut all = Vec::new();
    for (sheet, is_here) in sheets.into_iter().filter_map(|(sheet, is_here)| Some((sheet?, is_here))) {
        let columns = chart.series.iter().zip(COLOURS.into_iter().cycle());
        all.extend(columns.map(|(column, colour)| Series {
            name: format!("{}, {}", column.replace('_', " "), if is_here { "here" } else { "paper" }),
            colour,
            is_here,
            points: points(chart, sheet, column),
        }));
    }
    all.retain(|series: &Series| !series.points.is_empty());
    let (x, y) = ranges(&all)?;
    let mut text = String::new();
    draw(chart, &all, x, y, &mut text).ok()?;
    Some(text)
}

fn points(chart: &Chart, sheet: &Sheet, column: &str) -> Vec<Point> {
    let (Some(x), Some(y)) = (sheet.column(chart.x), sheet.column(column)) else { return Vec::new() };
    let point = |row: &Vec<crate::papers::Cell>| {
        let (x, y) = (row.get(x)?.number()?, row.get(y)?.number()?);
        let x = if chart.is_log { x.log10() } else { x };
        x.is_finite().then_some(Point { x, y, spread: spread(sheet, column, row) })
    };
    sheet.rows.iter().filter_map(point).collect()
}

/// Ranges of the axes: all points with a margin; the vertical one begins at 0.
fn ranges(all: &[Series]) -> Option<(Range<f64>, Range<f64>)> {
    let points = || all.iter().flat_map(|series| &series.points);
    let low = points().map(|point| point.x).min_by(f64::total_cmp)?;
    let high = points().map(|point| point.x).max_by(f64::total_cmp)?;
    let top = points().map(|point| point.spread.map_or(point.y, |(_, high)| high.max(point.y)));
    let top = top.max_by(f64::total_cmp)?.max(1e-9);
    let margin = ((high - low) * 0.04).max(0.1);
    Some((low - margin..high + margin, 0.0..top * 1.06))
}

type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn draw<'a>(chart: &Chart, all: &[Series], x: Range<f64>, y: Range<f64>, text: &'a mut String) -> Drawn<'a> {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    let mut context = ChartBuilder::on(&area)
        .margin(10)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)?;
    let is_log = chart.is_log;
    context
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(8)
        .y_labels(6)
        .x_desc(chart.x_label)
        .y_desc(chart.y_label)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .x_label_formatter(&|x| label(*x, is_log))
        .draw()?;
    for series in all {
        let style = series.colour.stroke_width(if series.is_here { 3 } else { 1 });
        let (colour, is_here) = (series.colour, series.is_here);
        let line = series.points.iter().map(|point| (point.x, point.y));
        context.draw_series(LineSeries::new(line.clone(), style))?.label(&*series.name).legend(
            move |(x, y)| {
                PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(if is_here { 3 } else { 1 }))
            },
        );
        if is_here {
            context.draw_series(line.map(|point| TriangleMarker::new(point, 6, colour.filled())))?;
        } else {
            context.draw_series(line.map(|point| Circle::new(point, 3, colour.stroke_width(2))))?;
        }
        let bars = series.points.iter().filter_map(|point| {
            let (low, high) = point.spread?;
            Some(ErrorBar::new_vertical(point.x, low.max(0.0), point.y, high, colour.stroke_width(1), 6))
        });
        context.draw_series(bars)?;
    }
    context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()
}

/// A number on the horizontal axis.
fn label(x: f64, is_log: bool) -> String {
    let value = if is_log { 10_f64.powf(x) } else { x };
    match value.abs() {
        _ if value == value.trunc() => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.0}"),
        size if size >= 0.095 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
