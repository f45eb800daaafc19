//! Mean of a few values with its 90 % confidence interval.

/// Upper 5 % point of Student's t with 1 to 9 degrees of freedom.
const STUDENT: [f64; 9] = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833];

/// A mean, and half the width of its 90 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) mean: f64,
    pub(super) half: f64,
}

impl Interval {
    /// Of 2 to 10 values; `None` of others.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let student = STUDENT.get(values.len().checked_sub(2)?)?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { mean, half: student * (squares / (count - 1.0) / count).sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // Standard deviation 1.5811, over the root of 5: 0.7071.
        let five = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(five.is_some_and(|five| five.mean == 3.0 && (five.half - 1.5075).abs() < 1e-3), "{five:?}");
        assert_eq!(Interval::of(&[2.0, 2.0]), Some(Interval { mean: 2.0, half: 0.0 }));
        assert_eq!((Interval::of(&[1.0]), Interval::of(&[])), (None, None));
    }
}
