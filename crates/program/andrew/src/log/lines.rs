//! Lines of the log of a daemon: a line that cannot be written is dropped and counted, so that logging never fails.

use parking_lot::Mutex;
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::Arc;
use tracing_subscriber::fmt::MakeWriter;

/// A log over some output. Clones are one log.
#[derive(Debug)]
pub(crate) struct Log<W>(Arc<Mutex<State<W>>>);

#[derive(Debug)]
struct State<W> {
    out: W,
    /// Lines that could not be written since the last one that could.
    lost: u64,
    /// The error of the last one.
    reason: String,
    /// The output may end within a line.
    is_cut: bool,
}

impl<W> Clone for Log<W> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<W: Write> Log<W> {
    /// A log over `out`, whose writes should not be collected in memory.
    pub(crate) fn over(out: W) -> Self {
        Self(Arc::new(Mutex::new(State { out, lost: 0, reason: String::new(), is_cut: false })))
    }
}

impl<W: Write> State<W> {
    /// Tells of the lines that were lost, and writes the line.
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_cut {
            self.write(b"\n")?;
        }
        if self.lost > 0 {
            let told = format!("{} lines of this log were lost: {}\n", self.lost, self.reason);
            self.write(told.as_bytes())?;
            self.lost = 0;
        }
        self.write(line)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.out.write_all(bytes);
        // How much of it was written is not known after an error.
        self.is_cut = written.is_err() || !bytes.ends_with(b"\n");
        written
    }
}

impl<W: Write> Write for Log<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A line about the writing of a line would wait for it. That of a file open to others is one.
        if !IS_WRITING.replace(true) {
            let mut state = self.0.lock();
            if let Err(error) = state.line(line) {
                state.lost += 1;
                state.reason = error.to_string();
            }
            IS_WRITING.set(false);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    /// Whether this thread writes a line.
    static IS_WRITING: Cell<bool> = const { Cell::new(false) };
}

impl<'a, W: Write + 'a> MakeWriter<'a> for Log<W> {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for some bytes.
    #[derive(Default)]
    struct Disk {
        text: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(io::Error::from_raw_os_error(28));
            }
            self.room -= taken;
            self.text.extend(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_dropped_while_there_is_no_room_and_told_of_afterwards() {
        let log = Log::over(Disk { text: Vec::new(), room: 12 });
        let write = |line: &str| log.clone().write_all(line.as_bytes()).unwrap();
        ["first\n", "second line\n", "third\n"].iter().for_each(|line| write(line));
        log.0.lock().out.room = 1000;
        ["fourth\n", "fifth\n"].iter().for_each(|line| write(line));
        let text = String::from_utf8(log.0.lock().out.text.clone()).unwrap();
        let lost = "2 lines of this log were lost: No space left on device (os error 28)";
        assert_eq!(text, format!("first\nsecond\n{lost}\nfourth\nfifth\n"));
    }

    /// An output that logs what it does.
    struct Talking {
        lines: Vec<u8>,
        log: Option<Log<Talking>>,
    }

    impl Write for Talking {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.lines.extend(bytes);
            self.log.iter_mut().for_each(|log| log.write_all(b"written\n").unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_about_the_writing_of_a_line_is_dropped_and_nobody_waits() {
        let mut log = Log::over(Talking { lines: Vec::new(), log: None });
        log.0.lock().out.log = Some(log.clone());
        log.write_all(b"one\n").unwrap();
        log.write_all(b"two\n").unwrap();
        assert_eq!(log.0.lock().out.lines, b"one\ntwo\n");
    }

    #[test]
    fn an_event_is_no_error_where_nothing_can_be_written() {
        let log = Log::over(Disk::default());
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            (0..5).for_each(|n| tracing::error!(n, "the disk is full"));
        });
        assert_eq!(log.0.lock().lost, 5);
    }
}
