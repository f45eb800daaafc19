//! Exit status and advice for each error of `afs-krb5`.

use super::{CommandError, is_bad_file};
use afs_krb5::{ConfigError, KerberosError, LocationError, NetworkError, SearchError};

impl From<KerberosError> for CommandError {
    fn from(error: KerberosError) -> Self {
        let advice = match &error {
            KerberosError::Location(LocationError::Kind(_)) => {
                "; put them in a file with `KRB5CCNAME=FILE:/tmp/krb5cc_andrew kinit` and give andrew the same KRB5CCNAME"
            }
            _ => "",
        };
        Self::of(is_input(&error), format!("{error}{advice}"))
    }
}

fn is_input(error: &KerberosError) -> bool {
    match error {
        KerberosError::Name(_) => true,
        KerberosError::Config(error)
        | KerberosError::Search(SearchError::Network(NetworkError::Config(error))) => {
            !matches!(error, ConfigError::Read { .. })
        }
        KerberosError::Location(error) => match error {
            LocationError::NotText | LocationError::NoPath(_) | LocationError::Kind(_) => true,
            LocationError::Secret(error) => is_bad_file(error),
            LocationError::Missing(_)
            | LocationError::Damaged { .. }
            | LocationError::Primary { .. }
            | LocationError::NamesNone(_) => false,
        },
        KerberosError::Search(_) | KerberosError::Threads(_) | KerberosError::Ticket { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_krb5::NameError;

    #[test]
    fn a_cache_that_is_no_file_is_bad_input_and_the_message_says_what_to_do() {
        let said = CommandError::from(KerberosError::from(LocationError::Kind("KCM".into())));
        assert_eq!(said.status, CommandError::USAGE);
        assert_eq!(
            said.message,
            "tickets in a credential cache of kind KCM can only be read by Kerberos's own programs; put them in a file with `KRB5CCNAME=FILE:/tmp/krb5cc_andrew kinit` and give andrew the same KRB5CCNAME"
        );
    }

    #[test]
    fn bad_input_and_failures_are_distinguished() {
        let status = |error: KerberosError| CommandError::from(error).status;
        let no_kdc = || ConfigError::NoKdc("R".into());
        for input in [
            NameError::Realm("a@b".into()).into(),
            LocationError::NoPath("FILE:".into()).into(),
            no_kdc().into(),
            SearchError::Network(no_kdc().into()).into(),
        ] {
            assert_eq!(status(input), CommandError::USAGE);
        }
        for failed in
            [LocationError::Missing("/tmp/x".into()).into(), SearchError::Unknown(String::new()).into()]
        {
            assert_eq!(status(failed), CommandError::FAILURE);
        }
    }
}
