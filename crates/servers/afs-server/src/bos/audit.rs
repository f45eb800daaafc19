//! Audit kind and object of every call of the overseer service.
//!
//! The status of instances counts as a probe; keys are never recorded.

use afs_wire::bos;

use crate::audit::described;

described! {
    Probe: bos::GetStatus |call| &*call.instance;
    Probe: bos::EnumerateInstance |_| ();
    Probe: bos::GetInstanceInfo |call| &*call.instance;
    Probe: bos::GetInstanceParm |call| &*call.instance;
    Probe: bos::GetInstanceStrings |call| &*call.instance;
    Probe: bos::GetCellName |_| ();
    Probe: bos::GetCellHost |_| ();
    Probe: bos::GetDates |call| &*call.path;
    Probe: bos::GetRestartTime |_| ();
    Probe: bos::GetRestrictedMode |_| ();
    Read: bos::ListSUsers |_| ();
    Read: bos::ListKeys |_| ();
    Read: bos::GetLog |call| &*call.name;
    Read: bos::WaitAll |_| ();
}

described! {
    Change: bos::CreateBnode |call| &*call.instance;
    Change: bos::DeleteBnode |call| &*call.instance;
    Change: bos::SetStatus |call| &*call.instance;
    Change: bos::SetTStatus |call| &*call.instance;
    Change: bos::ShutdownAll |_| ();
    Change: bos::RestartAll |_| ();
    Change: bos::StartupAll |_| ();
    Change: bos::ReBozo |_| ();
    Change: bos::Restart |call| &*call.instance;
    Change: bos::AddSUser |call| &*call.name;
    Change: bos::DeleteSUser |call| &*call.name;
    Change: bos::CellKeys |_| ();
    Change: bos::AddKey |_| ();
    Change: bos::DeleteKey |_| ();
    Change: bos::SetCellName |call| &*call.name;
    Change: bos::AddCellHost |call| &*call.name;
    Change: bos::DeleteCellHost |call| &*call.name;
    Change: bos::SetNoAuthFlag |_| ();
    Change: bos::Install |_| ();
    Change: bos::UnInstall |call| &*call.path;
    Change: bos::Exec |call| &*call.command;
    Change: bos::Prune |_| ();
    Change: bos::SetRestartTime |_| ();
    Change: bos::SetRestrictedMode |_| ();
}
