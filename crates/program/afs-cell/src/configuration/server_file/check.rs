//! Checks of a configuration file: roles, addresses, and the tables that go with each role.

use super::{DatabaseTable, ServerFile};
use crate::configuration::options::RoleName;
use crate::configuration::ports::{BASE_PORT_MAX, BASE_PORT_MIN};
use std::collections::BTreeSet;

impl ServerFile {
    /// Whether the values are valid, one by one and together.
    ///
    /// # Errors
    /// The first fault, and what would be right.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_address()?;
        self.check_databases()?;
        self.check_partitions()?;
        self.scrub.check()?;
        self.data_path.check()?;
        self.check_duplicates()
    }

    fn check_address(&self) -> Result<(), String> {
        if self.roles.is_empty() {
            return Err("roles: say \"database\", \"files\", or both".into());
        }
        if !(BASE_PORT_MIN..=BASE_PORT_MAX).contains(&self.base_port) {
            return Err(format!("base_port is {BASE_PORT_MIN} to {BASE_PORT_MAX}"));
        }
        if self.listen.is_unspecified() || self.listen.is_multicast() || self.listen.is_broadcast() {
            let listen = self.listen;
            return Err(format!("listen: clients cannot reach {listen}; give one address of this host"));
        }
        Ok(())
    }

    fn check_databases(&self) -> Result<(), String> {
        let serves = self.roles.contains(&RoleName::Database);
        if !serves && self.database_servers.is_empty() {
            let fault = "database_servers: name those of the cell, or give this host the role \"database\"";
            return Err(fault.into());
        }
        if !serves && self.database.is_some() {
            let fault = "[database] is for hosts with the role \"database\"; remove it, or add the role";
            return Err(fault.into());
        }
        match &self.database {
            Some(DatabaseTable::Embedded) | None if serves && self.joins => {
                Err("joins: a host that joins a cell has no databases of its own; see [database]".into())
            }
            Some(DatabaseTable::Etcd(table)) => table.check(),
            _ => Ok(()),
        }
    }

    fn check_partitions(&self) -> Result<(), String> {
        if !self.roles.contains(&RoleName::Files) && !self.partitions.is_empty() {
            let fault = "[[partition]] is for hosts with the role \"files\"; remove it, or add the role";
            return Err(fault.into());
        }
        Ok(())
    }

    fn check_duplicates(&self) -> Result<(), String> {
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for partition in &self.partitions {
            if !names.insert(partition.name) || !paths.insert(&partition.path) {
                return Err(format!("[[partition]]: {} is there twice", partition.name));
            }
        }
        Ok(())
    }
}
