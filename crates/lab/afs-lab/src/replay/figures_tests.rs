//! Tests of the replay: against the model's means, the paper's text, and with other costs.
#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use super::*;
use crate::papers::papers;

fn value(sheet: &Sheet, trace: &str, minutes: Option<f64>, what: &str) -> Cell {
    let is_it = |row: &&Vec<Cell>| {
        row[0].text() == Some(trace) && row[1].number() == minutes && row[2].text() == Some(what)
    };
    sheet.rows.iter().find(is_it).unwrap_or_else(|| unreachable!("{trace} {minutes:?} {what}"))[3].clone()
}

#[test]
fn drawn_curves_are_near_the_means_of_the_tables() {
    let papers = papers().unwrap();
    let sheet = figure6(Inputs::of(&papers).unwrap()).unwrap();
    assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()));
    let mut compared = 0;
    for (name, slack) in [
        ("nfs_SAD", 0.15),
        ("nfs_NetSCSI", 0.15),
        ("afs_SAD", 0.20),
        ("afs_NetSCSI", 0.15),
        ("afs_NASD", 0.15),
    ] {
        let (want, got) = (sheet.column(name).unwrap(), sheet.column(&format!("{name}_drawn")).unwrap());
        // Few client-minutes differ too much from one another.
        for row in sheet.rows.iter().filter(|row| row[0].number() >= Some(60.0)) {
            let Some((want, got)) = row[want].number().zip(row[got].number()) else { continue };
            assert!((got / want - 1.0).abs() < slack, "{name}: {got} of {want}");
            compared += 1;
        }
    }
    assert!(compared > 15, "{compared}");
}

#[test]
fn what_the_text_says_of_the_order_of_the_systems_holds() {
    let papers = papers().unwrap();
    let sheet = figure7(Inputs::of(&papers).unwrap(), None).unwrap();
    let number = |trace: &str, minutes, what: &str| value(&sheet, trace, minutes, what).number().unwrap();
    let less = |system| number("NFS", Some(90.0), &format!("{system} less than SAD by, %"));
    assert!((30.0..45.0).contains(&less("NetSCSI")), "{}", less("NetSCSI"));
    assert!((90.0..99.0).contains(&less("NASD")), "{}", less("NASD"));
    for trace in ["NFS", "AFS"] {
        let at90 = ["SAD", "NetSCSI", "NASD"]
            .map(|system| number(trace, Some(90.0), &format!("{system}, processor, s")));
        assert!(at90[0] > at90[1] && at90[1] > at90[2], "{trace}: {at90:?}");
    }
    assert_eq!(value(&sheet, "NFS", None, "first overrun, NASD").text(), Some("none"));
    // Its processor needs more than a minute for 120 client-minutes.
    assert!(number("AFS", None, "first overrun, SAD") <= 120.0);
    assert_eq!(figure7(Inputs::of(&papers).unwrap(), None).unwrap(), sheet, "the same seeds");
}

#[test]
fn costs_that_were_measured_are_used_for_the_traces_that_they_cover() {
    let papers = papers().unwrap();
    let inputs = Inputs::of(&papers).unwrap();
    let calls = ["FetchStatus", "StoreStatus", "FetchData", "StoreData", "RemoveFile", "BulkStatus"]
        .into_iter()
        .chain(["CreateFile", "Rename", "Others"]);
    let all: Vec<String> = calls.map(|call| format!("\"{call}\": [[0, 100]]")).collect();
    let of = |calls: &[String]| {
        let text = format!("{{\"what\": \"a test\", \"calls\": {{{}}}}}", calls.join(","));
        figure7(inputs, Some(&MeasuredCosts::parse(&text).unwrap()))
    };
    let sheet = of(&all).unwrap();
    assert!(sheet.rows.iter().all(|row| row[0].text() == Some("AFS")));
    // Each call takes 100 µs, and about 422 calls are made in a busy minute.
    let busy = value(&sheet, "AFS", Some(100.0), "SAD, processor, s").number().unwrap();
    assert!((3.4..5.0).contains(&busy), "{busy}");
    let error = of(&all[1..]).unwrap_err().to_string();
    assert_eq!(error, "the measured costs have no FetchStatus");
}
