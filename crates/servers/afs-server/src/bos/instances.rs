//! The roles of the process, as instances of an overseer.
//!
//! A process that replies is running: all roles start and end with the process.

use afs_rpc::Table;
use afs_wire::bos::{self, InstanceStatus, RestartKind, RestartTime, RunState, Text};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;

use super::{BosServer, Role, Server, text};
use crate::guard::{administrators, anyone};

pub(super) fn add(table: Table<BosServer>) -> Table<BosServer> {
    let table = anyone(table, |server: Server, call: bos::EnumerateInstance| async move {
        let role = nth(&server.overseen.roles, call.index)?;
        Ok(bos::EnumerateInstanceReply { instance: text(role.name()) })
    });
    let table = anyone(table, |server: Server, call: bos::GetStatus| async move {
        let role = server.role(&call.instance)?;
        Ok(bos::GetStatusReply { state: RunState::RUNNING, auxiliary: text(role.auxiliary()) })
    });
    let table = anyone(table, |server: Server, call: bos::GetInstanceInfo| async move {
        let role = server.role(&call.instance)?;
        Ok(bos::GetInstanceInfoReply { kind: text(role.kind()), status: server.status() })
    });
    let table = anyone(table, |server: Server, call: bos::GetInstanceParm| async move {
        server.role(&call.instance)?;
        let command = nth(&[&server.overseen.command], call.index).map(|command| text(command))?;
        Ok(bos::GetInstanceParmReply { command })
    });
    let table = anyone(table, |server: Server, call: bos::GetInstanceStrings| async move {
        server.role(&call.instance)?;
        let [error_name, spare1, spare2, spare3] = [const { Text::empty() }; 4];
        Ok(bos::GetInstanceStringsReply { error_name, spare1, spare2, spare3 })
    });
    // No role is ever starting or stopping, so there is nothing to wait for.
    let table = administrators(table, |_: Server, _: bos::WaitAll| async move { Ok(()) });
    programs(table)
}

/// Calls about installed programs: the overseer manages none.
fn programs(table: Table<BosServer>) -> Table<BosServer> {
    let table = anyone(table, |_: Server, _: bos::GetDates| async move {
        let never = UnixSeconds(0);
        Ok(bos::GetDatesReply { new: never, bak: never, old: never })
    });
    anyone(table, |_: Server, call: bos::GetRestartTime| async move {
        match call.kind {
            RestartKind::EVERYTHING | RestartKind::NEW_PROGRAMS => {
                Ok(bos::GetRestartTimeReply { time: RestartTime::NEVER })
            }
            _ => Err(AbortCode::BZDOM),
        }
    })
}

impl BosServer {
    fn role(&self, name: &[u8]) -> Result<Role, AbortCode> {
        let found = self.overseen.roles.iter().find(|role| role.name().as_bytes() == name);
        found.copied().ok_or(AbortCode::BZNOENT)
    }

    fn status(&self) -> InstanceStatus {
        InstanceStatus {
            goal: RunState::RUNNING,
            file_goal: RunState::RUNNING,
            process_started: self.started,
            process_starts: 1,
            ..InstanceStatus::default()
        }
    }
}

/// The list element at an index that a caller counts from 0.
pub(super) fn nth<T>(list: &[T], index: impl TryInto<usize>) -> Result<&T, AbortCode> {
    let index = index.try_into().map_err(|_| AbortCode::BZDOM)?;
    list.get(index).ok_or(AbortCode::BZDOM)
}
