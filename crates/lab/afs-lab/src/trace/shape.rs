//! Published distributions of a trace, from the papers' data.

use crate::model::{Inputs, TraceKind, charged, cost};
use crate::papers::PaperError;

/// Largest NFS transfer in bytes.
const BLOCK_LEN: f64 = 8192.0;

/// Distribution of the size of a data operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// No data.
    None,
    /// A full block with this probability, otherwise 1 to a block evenly.
    Block(f64),
    /// Exponential with this mean in bytes.
    Exponential(f64),
}

/// A request type.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name in Table 7.
    pub name: String,
    /// Its probability among the requests of the class.
    pub probability: f64,
    /// Its size.
    pub size: Size,
}

/// Busy client-minutes, or the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Mean requests of a client-minute.
    pub requests: f64,
    /// The request types, in the same order in both classes.
    pub operations: Vec<Operation>,
}

/// Distributions of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Which trace.
    pub kind: TraceKind,
    /// Client machines.
    pub clients: u32,
    /// Minutes that the trace lasts.
    pub minutes: u32,
    /// Probability that a client makes requests in a minute.
    pub active: f64,
    /// Probability that such a client-minute is busy.
    pub busy_share: f64,
    /// Fewest requests of a busy client-minute: 0.1 s of work of the mean request.
    pub busy_min: f64,
    /// Busy client-minutes.
    pub busy: Class,
    /// The others.
    pub other: Class,
}

/// A request type: its name in the table of the whole trace, and the factor to thousands there.
struct Counted<'a> {
    name: &'a str,
    busy_k: f64,
    other_k: f64,
}

impl Shape {
    /// The shape of a trace, from Tables 2, 3(a), 4(a), 5 and 7.
    ///
    /// # Errors
    /// A number is not in the data.
    pub fn of(inputs: Inputs<'_>, kind: TraceKind) -> Result<Self, PaperError> {
        let column = kind.column();
        let counted = counted(inputs, kind)?;
        let [busy_k, other_k] =
            [counted.iter().map(|one| one.busy_k).sum::<f64>(), counted.iter().map(|one| one.other_k).sum()];
        let busy_minutes = inputs.number("table5", "busy client-minutes", column)?;
        let share =
            inputs.number("table5", "busy client-minutes", &format!("{column}_pct_of_trace"))? / 100.0;
        let clients = inputs.number("table2", "client machines", column)?;
        let minutes = inputs.number("table2", "hours", column)? * 60.0;
        let all_minutes = busy_minutes / share;
        // Thousand cycles of the mean request at a server with disks.
        let request = inputs.number(kind.table7(), "total", "SAD")? * 1e3 / busy_k;
        Ok(Self {
            kind,
            clients: clients as u32,
            minutes: minutes as u32,
            active: all_minutes / (clients * minutes),
            busy_share: share,
            busy_min: 0.1 * clock(kind) / 1e3 / request,
            busy: class(inputs, kind, &counted, busy_k / busy_minutes * 1e3, true)?,
            other: class(inputs, kind, &counted, other_k / (all_minutes - busy_minutes) * 1e3, false)?,
        })
    }
}

/// Clock of the machine whose costs Tables 3 and 4 give, in cycles a second.
pub(super) fn clock(kind: TraceKind) -> f64 {
    match kind {
        TraceKind::Nfs => 133e6,
        TraceKind::Afs => 150e6,
    }
}

/// Thousands of requests of each type: of the busy client-minutes, and of the others.
fn counted(inputs: Inputs<'_>, kind: TraceKind) -> Result<Vec<Counted<'_>>, PaperError> {
    let names = inputs.operations(kind.table7())?.into_iter().filter(|name| *name != "Open");
    names
        .map(|name| {
            let busy_k = inputs.number(kind.table7(), name, "count_k")?;
            let all_k = match kind {
                TraceKind::Nfs => {
                    let record = if name == "DirRW" { "DirReadWrite" } else { name };
                    inputs.number("table3a", record, "quantity_m")? * 1e3
                }
                TraceKind::Afs => inputs.number("table4a", name, "quantity_k")?,
            };
            Ok(Counted { name, busy_k, other_k: (all_k - busy_k).max(0.0) })
        })
        .collect()
}

fn class(
    inputs: Inputs<'_>,
    kind: TraceKind,
    counted: &[Counted<'_>],
    requests: f64,
    is_busy: bool,
) -> Result<Class, PaperError> {
    let count = |one: &Counted<'_>| if is_busy { one.busy_k } else { one.other_k };
    let all: f64 = counted.iter().map(count).sum();
    let operation = |one: &Counted<'_>| {
        let size = size(inputs, kind, one.name, count(one), is_busy)?;
        Ok(Operation { name: one.name.to_owned(), probability: count(one) / all, size })
    };
    Ok(Class { requests, operations: counted.iter().map(operation).collect::<Result<_, PaperError>>()? })
}

/// Distribution of a type's size, whose mean is bytes by requests.
fn size(
    inputs: Inputs<'_>,
    kind: TraceKind,
    name: &str,
    count_k: f64,
    is_busy: bool,
) -> Result<Size, PaperError> {
    let what = match name {
        "BlockRead" | "FetchData" => "read data, GB",
        "BlockWrite" | "StoreData" => "write data, GB",
        _ => return Ok(Size::None),
    };
    let busy = inputs.number("table5", what, kind.column())?;
    let bytes = if is_busy { busy } else { inputs.number("table2", what, kind.column())? - busy };
    let mean = bytes * 1e6 / count_k;
    // Half a block is the mean of sizes that are evenly distributed.
    let full = (2.0 * mean / BLOCK_LEN - 1.0).clamp(0.0, 1.0);
    Ok(if kind == TraceKind::Nfs { Size::Block(full) } else { Size::Exponential(mean) })
}

/// Cost of a request type without data at a server with disks, in thousand cycles.
///
/// # Errors
/// A number is not in the data.
pub(super) fn fixed_cost(inputs: Inputs<'_>, kind: TraceKind, name: &str) -> Result<f64, PaperError> {
    let [at_server, ..] = charged(inputs, kind, name)?;
    at_server.map_or(Ok(0.0), |rule| cost(inputs, &rule, 0.0))
}
