//! Why a store does not do what it is asked, and the way out.

/// Why a store does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error("cannot open the store `{path}`: {what}")]
    Open {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// The file is something else.
    #[error("`{path}` is not a cra store: {what}")]
    Foreign {
        /// The file.
        path: String,
        /// What it seems to be.
        what: String,
    },
    /// The file was written by another version.
    #[error("`{path}` has store format {found}; this version of cra reads format {known}")]
    Version {
        /// The file.
        path: String,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The database is not there, and other files say that it was.
    #[error(
        "the database `{path}` {what}, and {relics} beside it belong to a record that was begun"
    )]
    Missing {
        /// The file.
        path: String,
        /// What is wrong with it.
        what: &'static str,
        /// The files that are there.
        relics: String,
    },
    /// There is no room on the disk.
    #[error("{what}")]
    Full {
        /// Where, how much is free, and how much is needed.
        what: String,
    },
    /// Another console has it.
    #[error("the store `{path}` is in use by another console{holder}")]
    InUse {
        /// The file.
        path: String,
        /// Who, where that is known.
        holder: String,
    },
    /// What is in it cannot be read.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// Nobody wanted to know any more.
    #[error("the check was stopped: nothing was proven")]
    Stopped,
    /// A write failed; nothing more is taken.
    #[error("the store no longer takes records: {what}")]
    Poisoned {
        /// What failed.
        what: String,
    },
}

impl StoreError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Open { .. } => {
                "check the folder and its permissions, or name another with --data-dir"
            }
            Self::Missing { .. } => {
                "nothing was changed; restore the database with its -wal from a backup; to begin a new record \
                 instead, move those files to another folder, or name another folder with --data-dir"
            }
            Self::Full { .. } => "free some space, then try again: what is on record is kept",
            Self::Foreign { .. } => "nothing was changed; name another folder with --data-dir",
            Self::Version { found, known, .. } if found < known => {
                "open it once with cra, which brings it up to date"
            }
            Self::Version { .. } => {
                "nothing was changed; use the version of cra that wrote it, or another --data-dir"
            }
            Self::InUse { .. } => "use that console, or name another folder with --data-dir",
            Self::Damaged { .. } => {
                "nothing was changed; keep the file, restore a backup beside it, and name its folder with --data-dir"
            }
            Self::Stopped => "check again, and wait for it",
            Self::Poisoned { .. } => {
                "check the disk (space, permissions, errors), then start cra again: what was acknowledged is kept"
            }
        }
    }
}
