//! Overseer calls that start, stop, install or change something, and listings that are always empty.
//!
//! Calls that OpenAFS in restricted mode refuses even to administrators are refused to every caller with the
//! same code. The rest fails with "permission denied" for other callers and with "unknown call" for
//! administrators, so that these need not doubt their identity.

use std::sync::Arc;

use afs_rpc::{ServerCall, Table};
use afs_wire::bos;
use afs_wire::error::AbortCode;

use super::{BosServer, Server};
use crate::audit::Described;
use crate::guard::{Guarded, administrators};

pub(super) fn add(table: Table<BosServer>) -> Table<BosServer> {
    let table = forbidden::<bos::CreateBnode>(table);
    let table = forbidden::<bos::DeleteBnode>(table);
    let table = forbidden::<bos::UnInstall>(table);
    let table = forbidden::<bos::Exec>(table);
    let table = forbidden::<bos::Prune>(table);
    let table = unknown::<bos::SetStatus>(table);
    let table = unknown::<bos::SetTStatus>(table);
    let table = unknown::<bos::ShutdownAll>(table);
    let table = unknown::<bos::RestartAll>(table);
    let table = unknown::<bos::StartupAll>(table);
    let table = unknown::<bos::ReBozo>(table);
    let table = unknown::<bos::Restart>(table);
    let table = unknown::<bos::AddSUser>(table);
    let table = unknown::<bos::DeleteSUser>(table);
    // This call lists keys of single DES, which no cell of ours has.
    let table = answered::<bos::ListKeys>(table, AbortCode::BZDOM);
    let table = unknown::<bos::AddKey>(table);
    let table = unknown::<bos::DeleteKey>(table);
    let table = unknown::<bos::SetCellName>(table);
    let table = unknown::<bos::AddCellHost>(table);
    let table = unknown::<bos::DeleteCellHost>(table);
    let table = unknown::<bos::SetNoAuthFlag>(table);
    let table = unknown::<bos::SetRestartTime>(table);
    // The log of a server is that of its process, wherever the administrator has directed it.
    let table = answered::<bos::GetLog>(table, AbortCode::BZNOENT);
    let table = unknown::<bos::SetRestrictedMode>(table);
    table.streamed(install)
}

fn forbidden<R: Described>(table: Table<BosServer>) -> Table<BosServer> {
    administrators(table, |_: Server, _: R| async { Err(AbortCode::BZACCESS) })
}

fn unknown<R: Described>(table: Table<BosServer>) -> Table<BosServer> {
    answered::<R>(table, AbortCode::RXGEN_OPCODE)
}

/// Replies to every administrator with the same code.
fn answered<R: Described>(table: Table<BosServer>, code: AbortCode) -> Table<BosServer> {
    administrators(table, move |_: Server, _: R| async move { Err(code) })
}

/// Refused before any byte of the program is read.
async fn install(server: Arc<BosServer>, call: ServerCall, request: bos::Install) {
    let guard = server.guard();
    guard.note::<bos::Install>(call.caller(), guard.object(&request), AbortCode::BZACCESS);
    call.abort(AbortCode::BZACCESS);
}
