//! Experiments of CITI TR 01-3 and of Gibson et al. 1997.

use super::method::{CostTable, Experiment, FetchTests, Generated, LayerTable, Method, Recomputed, at};
use Method::{Costs, Description, Fetch, Generate, Layers, Recompute};

pub(super) const CITI: &[Experiment] = &[
    at(
        "citi01-3.table1",
        "throughput of the layers of the network, raw to Rx and TCP",
        Layers(LayerTable::Stack),
    ),
    at(
        "citi01-3.table2",
        "throughput of Rx with the layer below it exchanged",
        Layers(LayerTable::Exchanged),
    ),
    at(
        "citi01-3.table3",
        "time to fetch a file through the disk cache and past it",
        Fetch(FetchTests::Bypass),
    ),
    at(
        "citi01-3.table4",
        "time to fetch a file through the cache, and past it by a path beside the calls",
        Fetch(FetchTests::Combined),
    ),
    at("citi01-3.fig1", "the testbed", Description),
    at(
        "citi01-3.fig2",
        "time for five chunks, with and without a lock that the reader needs",
        Layers(LayerTable::Chunks),
    ),
    at("citi01-3.fig3", "who uses which path", Description),
    at("citi01-3.fig4", "time to fetch 100 MB", Fetch(FetchTests::Largest)),
    at("citi01-3.fig5", "throughput by size of the file", Fetch(FetchTests::Throughput)),
];

pub(super) const GIBSON: &[Experiment] = &[
    at("gibson97.table1", "who takes part in what, in four architectures", Description),
    at("gibson97.table2", "requests, bytes and hours of the traces", Generate(Generated::Totals)),
    at(
        "gibson97.table3a",
        "NFS requests by type, and their shares of cycles",
        Recompute(Recomputed::NfsShares),
    ),
    at("gibson97.table3b", "cycles of NFS reads and writes, by size", Costs(CostTable::NfsSized)),
    at("gibson97.table3c", "cycles of NFS calls that have no size", Costs(CostTable::NfsFixed)),
    at("gibson97.table3d", "cycles of NFS create and remove", Costs(CostTable::NfsNames)),
    at("gibson97.table4a", "AFS calls by type, and their shares of cycles", Recompute(Recomputed::AfsShares)),
    at(
        "gibson97.table4b",
        "cycles of FetchData, StoreData and RemoveFile, by size",
        Costs(CostTable::AfsSized),
    ),
    at("gibson97.table4c", "cycles of BulkStatus, by entries", Costs(CostTable::AfsEntries)),
    at("gibson97.table4d", "cycles of AFS calls that have no size", Costs(CostTable::AfsFixed)),
    at(
        "gibson97.table5",
        "the busy client-minutes, and their shares of the traces",
        Recompute(Recomputed::BusyShares),
    ),
    at("gibson97.table6-nfs", "what each NFS request is charged with", Recompute(Recomputed::NfsRules)),
    at("gibson97.table6-afs", "what each AFS call is charged with", Recompute(Recomputed::AfsRules)),
    at(
        "gibson97.table7-nfs",
        "work of the NFS file manager in three systems",
        Recompute(Recomputed::NfsWork),
    ),
    at(
        "gibson97.table7-afs",
        "work of the AFS file manager in three systems",
        Recompute(Recomputed::AfsWork),
    ),
    at("gibson97.netscsi-security", "levels of security of disks that obey the server", Description),
    at("gibson97.fig1", "messages with disks behind the server", Description),
    at("gibson97.fig2", "messages with disks that obey the server", Description),
    at("gibson97.fig3", "messages with disks that serve by capability", Description),
    at(
        "gibson97.fig4",
        "distribution of server work over client-minutes",
        Generate(Generated::WorkDistribution),
    ),
    at("gibson97.fig5", "set-up of the replay", Description),
    at(
        "gibson97.fig6",
        "server work by number of client-minutes, from the model",
        Recompute(Recomputed::Curves),
    ),
    at("gibson97.fig7", "server work by number of client-minutes, from a replay", Method::Replay),
    at("gibson97.derived-costs", "cost of each operation that Table 7 implies", Recompute(Recomputed::Costs)),
    at("gibson97.derived-nfs-nasd", "server work under other rules for opens", Recompute(Recomputed::Opens)),
];
