//! Processor time of the server for the calls by which it gives out capabilities and layouts
//! (`docs/protocol/extensions.md`): what a manager of drives serves in the place of bytes.

use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    CapabilityAccess, CapabilityRequest, CapabilityRequests, DataPath, FetchStatus, Fids, GetCapability,
    GetLayout, GetLayoutReply, LayoutRequest, LayoutRequests, OWN_DRIVE, StatusAndCapability,
};
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;
use afs_wire::xdr::Fixed;

use super::Target;
use super::costs::{CALLS_MIN, Costs, Files, Kind, files};
use super::error::{LoadError, is_refused_as};
use crate::measured_costs::MeasuredCosts;

/// Requests of one call.
pub const REQUESTS: [usize; 4] = [1, 8, 16, 32];
/// Name of the costs of a GetCapability by requests.
const CAPABILITIES_BY_REQUESTS: &str = "GetCapability by requests";
/// The same, of drives that layouts name.
const RENEWALS_BY_REQUESTS: &str = "GetCapability again by requests";
/// Calls that a client makes for capabilities and layouts.
pub const CAPABILITY_CALLS: [&str; 4] =
    [DataPath::NAME, GetCapability::NAME, StatusAndCapability::NAME, GetLayout::NAME];
/// Statuses of a StatusAndCapability: those of the BulkStatus that Table 7 implies.
const STATUSES: usize = 13;
/// Bytes of a file whose layout is asked for.
const LAYOUT_BYTES: u64 = 1 << 20;

impl Costs<'_> {
    /// Adds the calls for capabilities. Adds nothing where the server does not give any.
    ///
    /// # Errors
    /// The first call that fails ends the measurement; files may then be left behind, named `load-N`.
    pub async fn add_capabilities(&self, costs: &mut MeasuredCosts) -> Result<(), LoadError> {
        if is_absent(&self.target.call(&DataPath {}).await)? {
            return Ok(());
        }
        let files = files(self.calls.max(CALLS_MIN));
        self.each(Kind::Create, &files).await?;
        costs.add(DataPath::NAME, 0.0, self.asked(&files, |_| DataPath {}).await?);
        let capabilities = |fids: Around<'_>, requests| GetCapability {
            wanted: CapabilityRequests::first_of(fids.take(requests).map(request)),
        };
        let one = move |fids: Around<'_>| capabilities(fids, 1);
        costs.add(GetCapability::NAME, 0.0, self.asked(&files, one).await?);
        let with_statuses = |fids: Around<'_>| StatusAndCapability {
            fids: Fids::first_of(fids.take(STATUSES)),
            wanted: request(fids.first()),
        };
        costs.add(StatusAndCapability::NAME, 0.0, self.asked(&files, with_statuses).await?);
        for requests in REQUESTS {
            let wanted = move |fids: Around<'_>| capabilities(fids, requests);
            costs.add(CAPABILITIES_BY_REQUESTS, requests as f64, self.asked(&files, wanted).await?);
        }
        self.each(Kind::Remove, &files).await.map(drop)
    }

    /// Adds GetLayout, and the capabilities of layouts given again, by the number of files. Adds nothing where the volume has no layouts, or its
    /// bytes are on no drive that clients may use.
    ///
    /// # Errors
    /// As [`Costs::add_capabilities`].
    pub async fn add_layouts(&self, costs: &mut MeasuredCosts) -> Result<(), LoadError> {
        let files = files(self.calls_with(LAYOUT_BYTES));
        self.each(Kind::Create, &files).await?;
        self.each(Kind::Store(LAYOUT_BYTES), &files).await?;
        let first = Around(&files, 0).first();
        let version = self.target.call(&FetchStatus { fid: first }).await?.status.data_version;
        // All files have the same history, so the same version.
        let layouts = move |fids: Around<'_>, count| {
            let request = |fid| LayoutRequest { fid, version, start: 0, end: LAYOUT_BYTES };
            GetLayout { wanted: LayoutRequests::first_of(fids.take(count).map(request)) }
        };
        let told = self.target.call(&layouts(Around(&files, 0), 1)).await;
        if !is_absent(&told)?
            && let Some(drive) = drive_of(told?)
        {
            for count in REQUESTS {
                let wanted = move |fids: Around<'_>| layouts(fids, count);
                costs.add(GetLayout::NAME, count as f64, self.asked(&files, wanted).await?);
                let again = move |fids: Around<'_>| GetCapability {
                    wanted: CapabilityRequests::first_of(
                        fids.take(count).map(|fid| CapabilityRequest { drive, ..request(fid) }),
                    ),
                };
                costs.add(RENEWALS_BY_REQUESTS, count as f64, self.asked(&files, again).await?);
            }
        }
        self.each(Kind::Remove, &files).await.map(drop)
    }

    /// Microseconds of a call that is asked about each file, once before to warm what it needs.
    async fn asked<R>(
        &self,
        files: &Files,
        request: impl Fn(Around<'_>) -> R + Copy + Send + Sync + 'static,
    ) -> Result<f64, LoadError>
    where
        R: Request + Send + Sync,
        R::Reply: Send,
    {
        let calls = self.calls.max(CALLS_MIN);
        let one = |files: Files| {
            move |target: Target, number: u32| {
                let request = request(Around(&files, number as usize));
                async move { target.call(&request).await.map(drop) }
            }
        };
        self.mean(CALLS_MIN, one(files.clone())).await?;
        self.mean(calls, one(files.clone())).await
    }
}

/// The files from one of them on, in a circle.
#[derive(Clone, Copy)]
struct Around<'a>(&'a Files, usize);

impl<'a> Around<'a> {
    fn take(self, count: usize) -> impl Iterator<Item = Fid> + use<'a> {
        let made = self.0.iter().cycle().skip(self.1 % self.0.len().max(1));
        made.filter_map(|file| file.get().copied()).take(count)
    }

    fn first(self) -> Fid {
        self.take(1).next().unwrap_or_default()
    }
}

fn request(fid: Fid) -> CapabilityRequest {
    CapabilityRequest { fid, access: CapabilityAccess::READ, drive: OWN_DRIVE }
}

/// The drive that has bytes of the first file of a reply; `None` where none has.
fn drive_of(told: GetLayoutReply) -> Option<Fixed<16>> {
    let layout = told.outcomes.into_iter().next()?.into_layout().ok()?;
    let has_copies = layout.parts.parts().iter().any(|part| !part.copies.is_empty());
    layout.drives.first().map(|offer| offer.drive).filter(|_| has_copies)
}

/// Whether the server does not know the call, or does not do this for the volume.
///
/// # Errors
/// Any other failure.
pub(super) fn is_absent<T>(outcome: &Result<T, LoadError>) -> Result<bool, LoadError> {
    let Err(LoadError::Call { operation, source }) = outcome else { return Ok(outcome.is_err()) };
    let is_unknown = source.abort_code() == Some(AbortCode::RXGEN_OPCODE);
    if is_unknown || is_refused_as(outcome, Errno::EOPNOTSUPP) {
        return Ok(true);
    }
    Err(LoadError::Call { operation, source: source.clone() })
}
