//! Catalogue of experiments: for each table and figure of the papers what it measured, and how it is repeated here.

mod howard;
mod later;
mod method;

pub use method::{
    Benchmarks, CostTable, Experiment, FetchTests, Generated, LayerTable, Loads, Method, PrototypeTable,
    Recomputed,
};

/// All experiments, in the order of the papers.
pub fn experiments() -> impl Iterator<Item = &'static Experiment> {
    howard::EXPERIMENTS.iter().chain(later::CITI).chain(later::GIBSON)
}

/// The experiment of an entry.
#[must_use]
pub fn experiment(id: &str) -> Option<&'static Experiment> {
    experiments().find(|experiment| experiment.id == id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::papers::papers;

    #[test]
    fn every_table_and_figure_of_the_papers_has_its_experiment_and_no_other() {
        let papers = papers().unwrap();
        let mut entries: Vec<&str> =
            papers.iter().flat_map(|paper| &paper.entries).map(|entry| entry.id.as_str()).collect();
        let mut listed: Vec<&str> = experiments().map(|experiment| experiment.id).collect();
        entries.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, entries);
    }

    #[test]
    fn what_cannot_be_had_says_what_it_lacks() {
        for experiment in experiments() {
            assert!(!experiment.measures.is_empty(), "{}", experiment.id);
            if let Method::Lacks(reason) = experiment.method {
                assert!(reason.len() > 10, "{}", experiment.id);
            }
        }
        assert_eq!(experiment("gibson97.table7-afs").map(|one| one.method.runs()), Some(true));
        assert!(experiment("gibson97.table8").is_none());
    }
}
