use super::*;
use parking_lot::Mutex;
use std::fs;
use std::sync::Arc;

/// An output that keeps what is written. Clones are one output.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an output has when `work` has made its lines and the log has ended.
fn logged(out: Output, work: impl FnOnce()) {
    let log = Log::over(out);
    let repeats = RepeatedLines::new(log.clone());
    let _begun = Begun(repeats.clone());
    let written = fmt::layer().with_ansi(false).with_writer(log);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(repeats).with(written), work);
}

fn missed(from: u32) {
    tracing::info!(from, "a client does not take its broken callbacks");
}

#[test]
fn lines_that_anybody_can_cause_are_counted_and_no_count_is_lost_at_the_end() {
    let kept = Kept::default();
    logged(Box::new(kept.clone()), || {
        (0..100_000).for_each(missed);
        tracing::warn!("of another place");
    });
    let text = kept.text();
    let (of_flood, others) = text.lines().partition::<Vec<_>, _>(|line| line.contains("does not take"));
    assert_eq!((of_flood.len(), others.len()), (256, 2), "{others:?}");
    assert!(others[0].ends_with("of another place"));
    assert!(others[1].contains("99744 more lines like this were left out"), "{}", others[1]);
}

#[test]
fn a_log_is_set_aside_when_it_is_full_and_all_files_have_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    logged(Box::new(Files(Rotated::new(path.clone(), 2000, 3))), || (0..256).for_each(missed));
    let mut files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(
        files,
        [path.clone()]
            .into_iter()
            .chain((1..4).map(|n| dir.path().join(format!("log.{n}"))))
            .collect::<Vec<_>>()
    );
    assert!(files.iter().all(|file| fs::metadata(file).unwrap().len() <= 2000));
    assert!(fs::read_to_string(&path).unwrap().ends_with("from=255\n"));
}
