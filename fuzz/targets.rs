//! One program of all fuzz targets: `ANDREW_FUZZ` names the function that libFuzzer's inputs go to, `list` prints the names.
#![no_main]

use std::sync::OnceLock;

#[path = "../crates/data/afs-datapath/tests/conversations/mod.rs"]
mod conversations;

use conversations::Reached;

type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("acl", afs_wire::fuzzing::acl),
    ("bucket_objects", afs_bucket::fuzzing::objects),
    ("cache_index", afs_venus::fuzzing::cache_index),
    ("callback_service", afs_wire::fuzzing::callback_service),
    ("cells", afs_cell::fuzzing::cells),
    ("chunk_header", afs_drive::fuzzing::chunk_header),
    ("client_session", client_session),
    ("data_path", afs_datapath::fuzzing::data_path),
    ("directory", afs_wire::fuzzing::directory),
    ("drive_segment", afs_drive::fuzzing::segment),
    ("drive_session", drive_session),
    ("drives", afs_cell::fuzzing::drives),
    ("dump", afs_wire::fuzzing::dump),
    ("etcd_answers", afs_etcd::fuzzing::answers),
    ("file_service", afs_wire::fuzzing::file_service),
    ("import_location", afs_db::fuzzing::import_location),
    ("import_protection", afs_db::fuzzing::import_protection),
    ("index_pages", afs_kv::fuzzing::index),
    ("index_row", afs_volume::fuzzing::index_row),
    ("journal_files", afs_cell::fuzzing::journal_files),
    ("kerberos", afs_krb5::fuzzing::kerberos),
    ("key_files", afs_auth::rxkad::fuzzing::key_files),
    ("local_sockets", afs_cell::fuzzing::local_sockets),
    ("location_service", afs_wire::fuzzing::location_service),
    ("log_records", afs_kv::fuzzing::log),
    ("login_service", afs_wire::fuzzing::login_service),
    ("login_values", afs_login::fuzzing::login_values),
    ("mount_point", afs_wire::fuzzing::mount_point),
    ("names", afs_wire::fuzzing::names),
    ("object_address", afs_s3::read_any_address),
    ("operations_service", afs_wire::fuzzing::operations_service),
    ("overseer_service", afs_wire::fuzzing::overseer_service),
    ("pin_list", afs_venus::fuzzing::pin_list),
    ("processes", afs_fuse::read_any_process),
    ("protection_service", afs_wire::fuzzing::protection_service),
    ("rx_endpoint", afs_rx::fuzzing::endpoint),
    ("rxgk", afs_auth::fuzzing::rxgk),
    ("rxkad_handshake", afs_auth::rxkad::fuzzing::rxkad_handshake),
    ("rxkad_ticket", afs_auth::rxkad::fuzzing::rxkad_ticket),
    ("settings", afs_cell::fuzzing::settings),
    ("ssh_agent", afs_login::fuzzing::ssh_agent_replies),
    ("store_credentials", afs_s3::fuzzing::store_credentials),
    ("store_replies", afs_s3::fuzzing::store_replies),
    ("unsaved_record", afs_venus::fuzzing::unsaved_record),
    ("volume_service", afs_wire::fuzzing::volume_service),
];

/// A conversation with the end of a drive.
fn drive_session(script: &[u8]) {
    conversations::play_to_drive(script, &Reached::default());
}

/// A conversation with the end of a client.
fn client_session(script: &[u8]) {
    conversations::play_to_client(script, &Reached::default());
}

static CHOSEN: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(init: choose(), |bytes: &[u8]| {
    if let Some(target) = CHOSEN.get() {
        target(bytes);
    }
});

/// Ends the process where no target of this name is: a run that tries nothing would look like one that finds nothing.
fn choose() {
    let name = std::env::var("ANDREW_FUZZ").unwrap_or_default();
    if name == "list" {
        TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        std::process::exit(0);
    }
    let Some((_, target)) = TARGETS.iter().find(|(known, _)| *known == name) else {
        eprintln!("fuzz: ANDREW_FUZZ is '{name}', which is no target; ANDREW_FUZZ=list prints them");
        std::process::exit(2);
    };
    let _ = CHOSEN.set(*target);
}
