//! Audit sink of a test cell.

use std::io;

use afs_server::AuditSink;
use afs_server::audit::AuditRecord;
use parking_lot::Mutex;

/// Keeps records until a test reads them: `who call object -> code` a line.
#[derive(Default)]
pub struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl AuditSink for Recorder {
    fn write(&self, records: &[AuditRecord]) -> io::Result<()> {
        let line = |record: &AuditRecord| match record {
            AuditRecord::Call(call) => {
                let who = call.identity.principal().map_or("-".into(), ToString::to_string);
                format!("{who} {} {} -> {}", call.call, call.object, call.code.0)
            }
            AuditRecord::Counted(counted) => {
                format!("{:?} {} {} more", counted.caller, counted.call, counted.count)
            }
            AuditRecord::Lost(_, count) => format!("lost {count}"),
        };
        self.0.lock().extend(records.iter().map(line));
        Ok(())
    }
}
