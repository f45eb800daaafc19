//! Costs of operations: fixed ones, and lines through measured points for those that depend on a size.

use super::inputs::Inputs;
use super::work::TraceKind;
use crate::papers::PaperError;

/// NFS getattr, in thousand cycles, with more digits than Table 3(c) prints (33): these give all of Table 7's cells.
const GETATTR: f64 = 33.33;
/// NFS lookup, likewise (50).
const LOOKUP: f64 = 50.15;
/// Directory entries of a BulkStatus. The paper does not tell them; these give Table 7's cell.
const BULK_ENTRIES: f64 = 13.03;

/// Value at `x` of the straight lines between points in order of x; the first and last line are prolonged. `None` of less
/// than two points.
#[must_use]
pub fn line(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let last = points.len().checked_sub(2)?;
    let after = points.iter().skip(1).position(|point| x <= point.0).unwrap_or(last);
    let ((x0, y0), (x1, y1)) = (*points.get(after)?, *points.get(after + 1)?);
    Some(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
}

/// Cost of an operation as Table 6 names it, in thousand cycles. `bytes` is the size of a read or write.
pub(crate) fn cost(inputs: Inputs<'_>, charged: &str, bytes: f64) -> Result<f64, PaperError> {
    match charged {
        "getattr" => Ok(GETATTR),
        "lookup" => Ok(LOOKUP),
        "setattr" => inputs.number("table3c", charged, "kcycles"),
        "create" => inputs.number("table3d", charged, "kcycles"),
        "remove" => inputs.number("table3d", "unlink (last link)", "kcycles"),
        "read" | "write" => inputs.on_line("table3b", "bytes", charged, 0.0, bytes),
        // Below 1 KB the costs are not in the order of the sizes.
        "FetchData" | "StoreData" => inputs.on_line("table4b", "bytes", charged, 1024.0, bytes),
        "BulkStatus" => inputs.on_line("table4c", "entries", "kcycles", 0.0, BULK_ENTRIES),
        // Table 7 charges all removals as that of the smallest file.
        "RemoveFile" => inputs.on_line("table4b", "bytes", charged, 0.0, 1.0),
        _ => inputs.number("table4d", charged, "kcycles"),
    }
}

/// Mean bytes of a data operation in the busy client-minutes: Table 5's bytes by Table 7's count.
pub(super) fn mean_bytes(inputs: Inputs<'_>, trace: TraceKind, operation: &str) -> Result<f64, PaperError> {
    let what = match operation {
        "BlockRead" | "FetchData" => "read data, GB",
        "BlockWrite" | "StoreData" => "write data, GB",
        _ => return Ok(0.0),
    };
    let count_k = inputs.number(trace.table7(), operation, "count_k")?;
    Ok(inputs.number("table5", what, trace.column())? * 1e6 / count_k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_points_and_beyond() {
        let points = [(1.0, 10.0), (2.0, 20.0), (4.0, 60.0)];
        let at = |x| line(&points, x);
        assert_eq!(
            [at(0.0), at(1.0), at(1.5), at(2.0), at(3.0), at(5.0)].map(Option::unwrap_or_default),
            [0.0, 10.0, 15.0, 20.0, 40.0, 80.0]
        );
        assert_eq!((line(&points[..1], 1.0), line(&[], 1.0)), (None, None));
    }
}
