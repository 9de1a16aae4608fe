//! Location of a store, and the functions that open the store there.
//!
//! The rest of the program names no database: it opens a [`StoreUrl`] and gets a [`Store`] or a [`StoreReader`]. Another
//! backend is a folder beside [`super::sqlite`] and one arm in each function here.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use super::sqlite::{self, SqliteReader, SqliteStore};
use super::{Store, StoreError, StoreReader};

/// Scheme of a store in SQLite files of a local folder.
const SQLITE: &str = "sqlite";

/// Location of a store: `sqlite:FOLDER`, or just the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    folder: PathBuf,
}

impl StoreUrl {
    /// Returns the location of the embedded store in a folder.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Folder of the store's files, and of the keys and reports that belong to this machine.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path that people know the store by.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(sqlite::FILE_NAME)
    }

    /// Size of the stored record in bytes; 0 if there is none.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        fs::metadata(self.path()).map_or(0, |found| found.len())
    }

    /// True if a file shows that a store is or was here.
    #[must_use]
    pub fn has_traces(&self) -> bool {
        let names = [
            sqlite::FILE_NAME,
            sqlite::HEAD_FILE_NAME,
            sqlite::LOCK_FILE_NAME,
        ];
        names.iter().any(|name| self.folder.join(name).exists())
    }
}

impl FromStr for StoreUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let refuse = |what: String| StoreError::Open {
            path: text.to_owned(),
            what,
        };
        let folder = match text.split_once(':') {
            Some((SQLITE, folder)) => folder.strip_prefix("//").unwrap_or(folder),
            Some((scheme, _)) if is_scheme(scheme) => {
                return Err(refuse(format!(
                    "unknown kind of store `{scheme}`; expected a folder or `{SQLITE}:FOLDER`"
                )));
            }
            Some(_) | None => text,
        };
        if folder.is_empty() {
            return Err(refuse("the folder is missing".to_owned()));
        }
        Ok(Self::in_folder(folder))
    }
}

/// True for the scheme of a URL. A path such as `./a:b` has none.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '+')
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SQLITE}:{}", self.folder.display())
    }
}

/// Opens a store for writing, or creates it. `quota_bytes` limits its size.
///
/// # Errors
/// When the store cannot be opened or created, belongs to another program or version, is damaged, is missing although its
/// key exists, or is in use; and when the disk is full. Nothing is changed then.
pub fn open(url: &StoreUrl, quota_bytes: Option<u64>) -> Result<Arc<dyn Store>, StoreError> {
    let store = SqliteStore::open(&url.folder)?.with_quota(quota_bytes);
    Ok(Arc::new(store))
}

/// Opens a store that another process may write to. Every write to it fails.
///
/// # Errors
/// When the store does not exist, or cannot be read.
pub fn open_read_only(url: &StoreUrl) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(SqliteStore::open_read_only(&url.folder)?))
}

/// Opens a blocking reader of a store; `None` if there is no store.
///
/// # Errors
/// When the store is missing although its key exists, is not a store of this version, or is damaged.
pub fn open_reader(url: &StoreUrl) -> Result<Option<Box<dyn StoreReader>>, StoreError> {
    let path = url.path();
    sqlite::check_not_missing(&path)?;
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some(Box::new(SqliteReader::open(&path)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_and_a_sqlite_url_name_one_store() {
        let plain: StoreUrl = "/var/lib/cra".parse().unwrap();
        for text in ["sqlite:/var/lib/cra", "sqlite:///var/lib/cra"] {
            assert_eq!(text.parse::<StoreUrl>().unwrap(), plain, "{text}");
        }
        assert_eq!(plain.to_string(), "sqlite:/var/lib/cra");
        assert_eq!(plain.to_string().parse::<StoreUrl>().unwrap(), plain);
        let odd: StoreUrl = "./a:b".parse().unwrap();
        assert_eq!(odd.folder(), Path::new("./a:b"));
    }

    #[test]
    fn an_unknown_kind_of_store_is_refused() {
        for text in ["mysql://host/db", "s3:bucket", "sqlite:", ""] {
            let refused = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(refused.starts_with("cannot open the store"), "{refused}");
        }
    }

    #[test]
    fn a_reader_of_a_folder_without_a_store_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let url = StoreUrl::in_folder(folder.path());
        assert!(open_reader(&url).unwrap().is_none());
        assert!(!url.has_traces());
        drop(open(&url, None).unwrap());
        assert!(open_reader(&url).unwrap().is_some());
        assert!(url.has_traces());
        assert!(url.size_bytes() > 0);
    }
}
