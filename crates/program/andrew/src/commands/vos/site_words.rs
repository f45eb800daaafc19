//! Words and options that name a volume and the partition it is on, as `vos` of OpenAFS takes them.

/// Server and partition, and the volume if no option names it.
#[derive(clap::Args, Debug)]
pub struct SiteWords {
    /// Server, partition and the volume
    #[arg(value_name = "SERVER PARTITION NAME", num_args = 0..=3)]
    bare: Vec<String>,
    /// Server, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Partition, as OpenAFS's vos takes it
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
}

/// What the words and options name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NamedSite {
    pub volume: Option<String>,
    pub server: Option<String>,
    pub partition: Option<String>,
    /// Whether there are words beside these.
    pub is_too_much: bool,
}

impl SiteWords {
    /// Each by its option, or else by a bare word: the volume by the last one, server and partition by the first ones. `volume` is what
    /// the command's own option for it names.
    pub(super) fn with(self, volume: Option<String>) -> NamedSite {
        named(self.bare, self.server, self.partition, volume)
    }
}

/// As [`SiteWords::with`].
pub(super) fn named(
    mut bare: Vec<String>,
    server: Option<String>,
    partition: Option<String>,
    volume: Option<String>,
) -> NamedSite {
    let volume = volume.or_else(|| bare.pop());
    let mut bare = bare.into_iter();
    let server = server.or_else(|| bare.next());
    let partition = partition.or_else(|| bare.next());
    NamedSite { volume, server, partition, is_too_much: bare.next().is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_words_stand_for_what_no_option_names() {
        let words = |bare: &[&str], server: Option<&str>, volume: Option<&str>| {
            let bare = bare.iter().map(|word| (*word).to_owned()).collect();
            let site = named(bare, server.map(Into::into), None, volume.map(Into::into));
            let part = |word: Option<String>| word.unwrap_or_default();
            (part(site.server), part(site.partition), part(site.volume), site.is_too_much)
        };
        let shown = |server: &str, partition: &str, volume: &str, much| {
            (server.to_owned(), partition.to_owned(), volume.to_owned(), much)
        };
        assert_eq!(words(&["s", "p", "v"], None, None), shown("s", "p", "v", false));
        assert_eq!(words(&["v"], None, None), shown("", "", "v", false));
        assert_eq!(words(&["p"], Some("s"), Some("v")), shown("s", "p", "v", false));
        assert_eq!(words(&["s", "p", "x"], None, Some("v")), shown("s", "p", "v", true));
        assert_eq!(words(&[], None, None), shown("", "", "", false));
    }
}
