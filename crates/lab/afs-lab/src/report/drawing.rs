//! Drawing of a plot: the paper's points as circles, those obtained here as triangles, each with its spread; the legend below.
//! Lines of a colour that another column of the plot has too are dashed.

use super::axis::Axis;
use super::chart::Series;
use super::charts::Chart;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::RGBColor;

/// Width and height of the axes with what they enclose, in units of the SVG.
const SIZE: (u32, u32) = (640, 380);
/// Height of a line of the legend, which has two columns.
const LINE: u32 = 20;

/// Length of a dash, and of the gap after it.
const DASH: i32 = 6;

/// Colours that differ also for the colour-blind (Okabe and Ito 2008; the last two are added), and are seen on white and on
/// black.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(200, 140, 0),
    RGBColor(86, 160, 213),
    RGBColor(120, 94, 240),
    RGBColor(128, 128, 128),
];

impl Series {
    /// Its line; what was obtained here has a thicker one.
    fn style(&self) -> ShapeStyle {
        let colour = COLOURS.get(self.column % COLOURS.len()).unwrap_or(&BLACK);
        colour.stroke_width(if self.is_here { 3 } else { 1 })
    }

    /// Whether another column has its colour.
    fn is_dashed(&self) -> bool {
        self.column >= COLOURS.len()
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Axes<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// Draws all series into `text`.
pub(super) fn draw<'a>(
    chart: &Chart,
    all: &[Series],
    (x, y): (&Axis, &Axis),
    text: &'a mut String,
) -> Drawn<'a> {
    let height = SIZE.1 + LINE * (all.len() as u32).div_ceil(2) + LINE / 2;
    let area = SVGBackend::with_string(text, (SIZE.0, height)).into_drawing_area();
    let (upper, lower) = area.split_vertically(SIZE.1);
    let mut axes = ChartBuilder::on(&upper)
        .margin(10)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x.clone(), y.clone())?;
    axes.configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(chart.x_label)
        .y_desc(chart.y_label)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .draw()?;
    all.iter().try_for_each(|series| lines(&mut axes, series))?;
    legend(&lower, all)?;
    area.present()
}

/// The line of a series, with its marks and spreads.
fn lines<'a>(axes: &mut Axes<'a>, series: &Series) -> Drawn<'a> {
    let style = series.style();
    let points = series.points.iter().map(|point| (point.x, point.y));
    if series.is_dashed() {
        axes.draw_series(DashedLineSeries::new(points.clone(), DASH, DASH, style))?;
    } else {
        axes.draw_series(LineSeries::new(points.clone(), style))?;
    }
    if series.is_here {
        axes.draw_series(points.map(|point| TriangleMarker::new(point, 6, style.color.filled())))?;
    } else {
        axes.draw_series(points.map(|point| Circle::new(point, 3, style.color.stroke_width(2))))?;
    }
    let bars = series.points.iter().filter_map(|point| {
        let (low, high) = point.spread?;
        Some(ErrorBar::new_vertical(point.x, low, point.y, high, style.color.stroke_width(1), 6))
    });
    axes.draw_series(bars)?;
    Ok(())
}

/// Names of the series with their lines and marks, in two columns.
fn legend<'a>(area: &Area<'a>, all: &[Series]) -> Drawn<'a> {
    let rows = all.len().div_ceil(2).max(1);
    for (at, series) in all.iter().enumerate() {
        let x = 74 + 280 * (at / rows) as i32;
        let y = (LINE as usize * (at % rows)) as i32 + LINE as i32 / 2;
        let style = series.style();
        let parts = if series.is_dashed() { vec![(0, 6), (18, 24)] } else { vec![(0, 24)] };
        for (from, to) in parts {
            area.draw(&PathElement::new([(x + from, y), (x + to, y)], style))?;
        }
        if series.is_here {
            area.draw(&TriangleMarker::new((x + 12, y), 6, style.color.filled()))?;
        } else {
            area.draw(&Circle::new((x + 12, y), 3, style.color.stroke_width(2)))?;
        }
        area.draw(&Text::new(series.name.as_str(), (x + 32, y - 7), ("sans-serif", 13)))?;
    }
    Ok(())
}
