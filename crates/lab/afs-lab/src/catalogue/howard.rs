//! Experiments of Howard et al. 1988.

use super::method::{Benchmarks, Experiment, Loads, Method, PrototypeTable, at};
use crate::closed::Told;
use Method::{Benchmark, Compared, Prototype};

const LIVE_SERVERS: Method = Method::Lacks(
    "servers that many people use for weekdays, each of them differently; Tables IV and VII have a server under the load of the benchmark",
);
const LIVE_USERS: Method = Method::Lacks(
    "people who come and go at many servers for days; the clients of a run here are as many as its load says",
);

pub(super) const EXPERIMENTS: &[Experiment] = &[
    at(
        "howard88.table1",
        "time of the Andrew benchmark on a local disk, by phase and machine",
        Benchmark(Benchmarks::Phases),
    ),
    at(
        "howard88.table2",
        "calls by type at each server of the prototype, a month of use",
        Prototype(PrototypeTable::Calls),
    ),
    at(
        "howard88.table3",
        "time of the benchmark and of TestAuth on the prototype, by load",
        Prototype(PrototypeTable::Times),
    ),
    at(
        "howard88.table4",
        "processor and disk use of the prototype's servers in daily use",
        Prototype(PrototypeTable::Usage),
    ),
    at("howard88.table5", "the calls of the interface between client and server", Method::Description),
    at(
        "howard88.table6",
        "time of the benchmark on the revised system, by phase and load",
        Benchmark(Benchmarks::Revised),
    ),
    at(
        "howard88.table7",
        "server processor and disk use during the benchmark, by load",
        Method::Loads(Loads::Server),
    ),
    at("howard88.table8", "processor and disk use of 13 servers in daily use", LIVE_SERVERS),
    at("howard88.table9", "calls by type at each server, three days of use", Benchmark(Benchmarks::Calls)),
    at("howard88.table10", "active users at each server, three days of use", LIVE_USERS),
    at(
        "howard88.table11",
        "time of the benchmark on NFS and Andrew, cold and warm, by phase and load",
        Benchmark(Benchmarks::Others),
    ),
    at(
        "howard88.table12",
        "server processor and disk use under NFS and Andrew, by load",
        Compared(Told::Server),
    ),
    at("howard88.table13", "packets during one run of the benchmark", Benchmark(Benchmarks::Packets)),
    at("howard88.table14", "time to open a file, read its first byte and close it", Method::Latency),
    at(
        "howard88.section6",
        "nothing; the section tells of clones, moves, quotas, read-only replicas and backup",
        Method::Volumes,
    ),
    at(
        "howard88.fig1",
        "relative time of the benchmark, prototype and revised system, by load",
        Method::Loads(Loads::Relative),
    ),
    at("howard88.fig2", "server processor and disk use, by load", Method::Loads(Loads::Server)),
    at("howard88.fig3", "time of the benchmark on NFS and Andrew, by load", Compared(Told::Overall)),
    at("howard88.fig4", "server processor use under NFS and Andrew, by load", Compared(Told::Processor)),
    at("howard88.fig5", "server disk use under NFS and Andrew, by load", Compared(Told::Disk)),
    at(
        "howard88.derived-server-work",
        "server processor and disk seconds of one run, by load",
        Benchmark(Benchmarks::ServerWork),
    ),
];
