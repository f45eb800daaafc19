//! Mapping of authenticated names to principals: the cell's own realms, and exceptions.

use std::collections::BTreeSet;

use afs_rpc::{Principal, Terms};

use super::translate::{check_part, check_realm};
use super::{AfsName, NameError, afs_name};

/// Name of the cell's own servers, in tickets that they make themselves.
const CELL_SERVICE: &str = "afs";

/// Mapping of the names in tickets and tokens to those of the protection database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LocalNames {
    /// The cell's name. The realm of the same name, whatever its case, is the cell's own.
    pub cell: String,
    /// More realms whose users are the cell's own (OpenAFS's `krb.conf`), whatever their case.
    pub realms: Vec<String>,
    /// Foreign users although their realm is in `realms`: `name@REALM` or `name.instance@REALM`, case kept (OpenAFS's
    /// `krb.excl`).
    pub exceptions: BTreeSet<String>,
}

impl LocalNames {
    /// A cell whose only realm has its own name.
    #[must_use]
    pub fn of_cell(cell: impl Into<String>) -> Self {
        Self { cell: cell.into(), ..Self::default() }
    }

    /// The principal of an authenticated name. An empty realm is the cell's own: only its key makes such tickets, and
    /// `afs` in it is the cell's key itself.
    ///
    /// # Errors
    /// [`NameError`] for parts that are empty, too long or misleading.
    pub fn principal(&self, name: &str, instance: &str, realm: &str) -> Result<Principal, NameError> {
        check_part(name)?;
        check_part(instance)?;
        check_realm(realm)?;
        if name.is_empty() {
            return Err(NameError::Length);
        }
        if (name, instance, realm) == (CELL_SERVICE, "", "") {
            return Ok(Principal::CellKey);
        }
        let full = if instance.is_empty() { name.to_owned() } else { format!("{name}.{instance}") };
        let foreign = !self.is_local(&full, realm);
        let cell = foreign.then(|| realm.to_ascii_lowercase().into());
        Ok(Principal::Named { name: full.to_ascii_lowercase().into(), cell, terms: Terms::default() })
    }

    /// The principal of a Kerberos name in text form, as `alice@EXAMPLE.ORG`, `alice/admin@EXAMPLE.ORG`, or `alice`
    /// of the cell itself. Never the cell's key.
    ///
    /// # Errors
    /// [`NameError`], also for `afs` without a realm.
    pub fn principal_of_text(&self, text: &str) -> Result<Principal, NameError> {
        let (path, realm) = match text.rsplit_once('@') {
            Some((_, "")) => return Err(NameError::Length),
            Some(parts) => parts,
            None => (text, ""),
        };
        let components: Vec<&str> = path.splitn(3, '/').collect();
        let AfsName { name, instance } = afs_name(&components)?;
        match self.principal(name, instance, realm)? {
            Principal::CellKey => Err(NameError::Reserved),
            named @ Principal::Named { .. } => Ok(named),
        }
    }

    fn is_local(&self, full: &str, realm: &str) -> bool {
        let listed = || self.realms.iter().any(|local| local.eq_ignore_ascii_case(realm));
        let excepted = || self.exceptions.contains(&format!("{full}@{realm}"));
        realm.is_empty() || realm.eq_ignore_ascii_case(&self.cell) || (listed() && !excepted())
    }
}
