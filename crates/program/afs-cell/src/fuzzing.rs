//! Entry points of fuzz targets: each function takes any bytes and must not panic. `fuzz/` calls them with inputs of
//! libFuzzer, the test here with seeded ones.

use crate::cells::fuzzing as cells_of;
use crate::configuration::fuzzing as files;
use crate::drives::fuzzing as drives_of;
use crate::{control, operation_file, socket, tokens};
use afs_wire::fuzzing::changed;

/// Frames of the control socket and of a mount's token socket: the bytes themselves, the bytes in a frame, and as
/// changes of a frame with a token, and of one with a property.
pub fn local_sockets(bytes: &[u8]) {
    let framed = socket::frame::fuzzing::framed(bytes);
    let [token, property] = tokens::frame::fuzzing::samples().map(|sample| changed(&sample, bytes));
    for wire in [bytes, &framed, &token, &property] {
        control::frame::fuzzing::read(wire);
        tokens::frame::fuzzing::read(wire);
    }
}

/// Files of the state directory, in TOML and JSON, and token files: the bytes themselves, or as changes of a valid
/// file. The first byte selects.
pub fn settings(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    match files::SAMPLES.get(usize::from(*choice)) {
        Some(sample) => files::settings(&changed(sample.as_bytes(), rest)),
        None => files::settings(rest),
    };
    let _ = tokens::KeptToken::decode(rest);
}

/// Join keys, the state file of a drive, and the registry of drives: the bytes themselves, or as changes of a valid one. The first
/// byte selects.
pub fn drives(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    match drives_of::SAMPLES.get(usize::from(*choice)) {
        Some(sample) => drives_of::read(&changed(sample.as_bytes(), rest)),
        None => drives_of::read(rest),
    };
}

/// Files of cells (`CellServDB`), and replies of DNS: the bytes themselves, or as changes of a valid one.
pub fn cells(bytes: &[u8]) {
    cells_of::file(bytes);
    cells_of::file(&changed(cells_of::SAMPLE.as_bytes(), bytes));
    cells_of::reply(bytes);
    cells_of::reply(&changed(&cells_of::sample(), bytes));
}

/// Files of the journal of a user's tools, with the plan in them: the bytes themselves, or as changes of a valid file.
pub fn journal_files(bytes: &[u8]) {
    operation_file::read_any(bytes);
    operation_file::read_any(&changed(OPERATION.as_bytes(), bytes));
}

/// A file of an operation, without a checksum, as those of before had none.
const OPERATION: &str = r#"{
  "operation": "rename",
  "volume": 536870918,
  "name": "user.alice",
  "step": "lock",
  "holder": { "who": "alice", "host": "h", "pid": 7 },
  "holding": 1,
  "since": 1700000000,
  "heard": 1700000001,
  "detail": { "operation": "rename", "volume": 536870918, "name": "user.alice", "step": "lock", "new": "user.bob" }
}"#;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_files_to_begin_with_are_sound() {
        for sample in files::SAMPLES {
            assert!(files::settings(sample.as_bytes()), "{sample}");
        }
        assert!(cells_of::file(cells_of::SAMPLE.as_bytes()));
        for sample in drives_of::SAMPLES {
            assert!(drives_of::read(sample.as_bytes()), "{sample}");
        }
        assert!(operation_file::read_any(OPERATION.as_bytes()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), first in 0..8_u8) {
            let bytes = [&[first][..], &bytes].concat();
            local_sockets(&bytes);
            settings(&bytes);
            drives(&bytes);
            cells(&bytes);
            journal_files(&bytes);
        }
    }
}
