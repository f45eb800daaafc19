//! Outcomes of what runs on the prototype of 1984, and what many clients of it and of Andrew used.

use super::measured::{Memo, ran, refused};
use super::outcome::Outcome;
use super::own::many;
use super::setting::Setting;
use crate::catalogue::PrototypeTable;
use crate::clients::{self, PrototypeClients, PrototypeRan, Ran};
use crate::prototype::{self, Counted};
use crate::sheet::Sheet;

const CALLS: &str = "The prototype's rules on real files, and a client that runs the script of the Andrew benchmark on a program of 70 \
                     files: its own distribution, not that of a month of use.";
const TIMES: &str = "The prototype made anew: a process of the server's for each client, path names resolved by it, a TestAuth at each open and each \
                     status, whole files cached, no callbacks. Clients are processes too; each runs the benchmark's script, whose source is at the server. \
                     Medians of runs, and of TestAuth of the clients' means. Nothing is encrypted, \
                     and no store is flushed to the disk before its reply; both are so on Andrew.";
const USAGE: &str = "During the runs of Table III, not of days of use: processor time of the listener and of the processes for the clients, in \
                     percent of the server's part of a processor, shared out as these processes used it outside of the kernel and in it; KB \
                     (10³ bytes) that they gave to the file system. How long the disk worked is not measured.";

impl Memo {
    /// Tables II to IV.
    pub(super) fn prototype(&self, setting: &Setting<'_>, table: PrototypeTable) -> Outcome {
        if table == PrototypeTable::Calls {
            return calls(setting);
        }
        match self.prototype_ran(setting) {
            Ok(None) => refused("the program, which starts servers and clients for it"),
            Err(error) => Outcome::Failed { error },
            Ok(Some((prototype, andrew))) => {
                let (sheet, what) = match table {
                    PrototypeTable::Usage => (clients::table4(prototype), USAGE),
                    _ => (clients::table3(prototype, andrew), TIMES),
                };
                ran(Some(sheet), "", &[what, &part_note(prototype, andrew)])
            }
        }
    }

    /// What was run of Figure 1, and what is to be said of it.
    pub(super) fn relative(&self, setting: &Setting<'_>) -> Result<Option<(Sheet, String)>, String> {
        let Some((prototype, andrew)) = self.prototype_ran(setting)? else { return Ok(None) };
        let andrew_column = andrew.map(|andrew| ("ran_andrew", andrew));
        let columns: Vec<_> = [("ran_prototype", &prototype.ran)].into_iter().chain(andrew_column).collect();
        let note = part_note(prototype, andrew);
        let note =
            format!("Columns with 'ran' were run, as Tables III and VII: so many processes at once. {note}");
        Ok(Some((clients::relative_times(&columns), note)))
    }

    /// Many clients on the prototype, and on Andrew if there is a mount; `None` without the program.
    fn prototype_ran(&self, setting: &Setting<'_>) -> Result<Option<(&PrototypeRan, Option<&Ran>)>, String> {
        let Some(program) = setting.program else { return Ok(None) };
        let andrew = self.clients(setting).as_ref().map_err(String::clone)?.as_ref();
        let measure = || {
            let clients = PrototypeClients {
                program,
                local: setting.local,
                part: andrew.map(|andrew| andrew.part).filter(|part| *part < 1.0),
                quick: setting.quick,
                stop: setting.stop,
            };
            clients.run().map_err(|error| error.to_string())
        };
        let prototype = self.prototype.get_or_init(measure).as_ref().map_err(String::clone)?;
        Ok(Some((prototype, andrew)))
    }

    /// Many clients in the mount, if there is one.
    pub(super) fn clients(&self, setting: &Setting<'_>) -> &Result<Option<Ran>, String> {
        self.clients.get_or_init(|| many(setting).map_err(|error| error.to_string()))
    }
}

/// Table II.
fn calls(setting: &Setting<'_>) -> Outcome {
    let Counted { sheet, calls, components, admin_reads, processes } = match prototype::table2(setting.local)
    {
        Ok(counted) => counted,
        Err(error) => return Outcome::Failed { error: error.to_string() },
    };
    let work = format!(
        "In the first run's {calls} calls the servers resolved {components} components of path names and read {admin_reads} \
         status files. In the end they have {processes} processes, one for each of two clients at each of two servers."
    );
    Outcome::Ran { sheet, notes: vec![CALLS.into(), work], demands: Vec::new() }
}

/// What the server had of a processor.
fn part_note(PrototypeRan { ran, .. }: &PrototypeRan, andrew: Option<&Ran>) -> String {
    let part = ran.part;
    let server = if part >= 1.0 {
        "The server was not bounded: that needs root and control groups, and a client that uses less than 8.1 % of a processor.".to_owned()
    } else if andrew.is_some_and(|andrew| andrew.part < 1.0) {
        format!(
            "Both servers had {part:.3} of a processor, by a control group: so much that one client of Andrew uses 8.1 % of it, as in the paper."
        )
    } else {
        format!(
            "The server had {part:.3} of a processor, by a control group: so much that one client of it uses 8.1 % of it, as the paper's of the revised system."
        )
    };
    let seconds = ran.think.as_secs();
    let alone = ran.demands.processor * part * 1e3;
    format!(
        "Waiting of {seconds} s stands for compiling. {server} A run alone took {alone:.0} ms of the processor."
    )
}
