//! Axes of a plot: their ranges and the round numbers on them.

use super::shown::rounded;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// Most numbers on an axis, roughly.
const TICKS: f64 = 9.0;

/// An axis; positions on a logarithmic one are logarithms to the base of 10.
#[derive(Clone)]
pub(super) struct Axis {
    range: Range<f64>,
    is_log: bool,
    ticks: Vec<f64>,
}

impl Axis {
    /// An axis with room for all positions; `None` if there is none.
    pub(super) fn over(positions: impl Iterator<Item = f64> + Clone, is_log: bool) -> Option<Self> {
        let low = positions.clone().min_by(f64::total_cmp)?;
        let high = positions.max_by(f64::total_cmp)?;
        let margin = ((high - low) * 0.04).max(if is_log { 0.1 } else { 1e-9 });
        let range = low - margin..high + margin;
        let ticks = if is_log { logarithmic(&range) } else { linear(&range) };
        Some(Self { range, is_log, ticks })
    }
}

impl Axis {
    /// A linear axis from nothing to above the highest value.
    pub(super) fn from_nothing(highest: f64) -> Self {
        let range = 0.0..highest.max(1e-9) * 1.06;
        Self { ticks: linear(&range), range, is_log: false }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, position: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (position - self.range.start) / (self.range.end - self.range.start);
        first + (part * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, position: &f64) -> String {
        label(*position, self.is_log)
    }
}

/// Multiples of 1, 2 or 5 times a power of 10.
fn linear(range: &Range<f64>) -> Vec<f64> {
    let least = (range.end - range.start) / TICKS;
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(least);
    let first = (range.start / step).ceil();
    let ticks = (0..=TICKS as u32).map(|count| (first + f64::from(count)) * step);
    ticks.filter(|tick| range.contains(tick)).collect()
}

/// 1, 2 and 5 times the powers of 10; of many powers, these alone.
fn logarithmic(range: &Range<f64>) -> Vec<f64> {
    let factors: &[f64] = if range.end - range.start > TICKS / 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = range.start.floor() as i32..=range.end.ceil() as i32;
    let ticks = powers.flat_map(|power| factors.iter().map(move |one| f64::from(power) + one.log10()));
    ticks.filter(|tick| range.contains(tick)).collect()
}

/// A number on the axis.
fn label(position: f64, is_log: bool) -> String {
    let value = if is_log { 10_f64.powf(position) } else { position };
    rounded(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    fn labels(positions: &[f64], is_log: bool) -> Vec<String> {
        let axis = Axis::over(positions.iter().copied(), is_log).unwrap();
        axis.ticks.iter().map(|tick| label(*tick, is_log)).collect()
    }

    #[test]
    fn the_numbers_on_an_axis_are_round() {
        assert_eq!(labels(&[10.0, 120.0], false), ["20", "40", "60", "80", "100", "120"]);
        assert_eq!(labels(&[0.0, 1.0], false), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(
            labels(&[0.0, 500_f64.log10()], true),
            ["1", "2", "5", "10", "20", "50", "100", "200", "500"]
        );
        assert_eq!(labels(&[0.0, 6.0], true).last().map(String::as_str), Some("1000000"));
        assert_eq!(labels(&[-4.0, 2.0], true), ["0.0001", "0.001", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(&[-2.0, -1.0], true), ["0.01", "0.02", "0.05", "0.1"]);
    }

    #[test]
    fn one_position_has_an_axis_and_none_has_not() {
        assert!(Axis::over([3.0].into_iter(), false).unwrap().range.contains(&3.0));
        assert!(Axis::over(std::iter::empty(), true).is_none());
    }
}
