//! Atlases named by arguments: files, and folders of files.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::Failure;
use crate::atlas::{Atlas, ManifestTransform, load_file_with};

/// Loads all named Atlases; rejects two with the same identifier.
pub(super) fn load_all(
    named: &[PathBuf],
    configure: &ManifestTransform,
) -> Result<Vec<Atlas>, Failure> {
    let mut known = AtlasIds::default();
    let mut atlases = Vec::new();
    for file in files_of(named)? {
        let atlas = load_file_with(&file, configure)?.atlas;
        if let Some(first) = known.insert(&atlas.id, &file) {
            return Err(Failure::SameAtlas {
                id: atlas.id,
                first,
                second: file,
            });
        }
        atlases.push(atlas);
    }
    Ok(atlases)
}

/// Named files: a folder stands for every Atlas in it.
pub(super) fn files_of(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = files_in(path)?;
        if found.is_empty() {
            return Err(Failure::NoAtlas(path.clone()));
        }
        files.extend(found);
    }
    Ok(files)
}

/// Atlas files of a folder, by name: files with a matching extension that are not hidden. A missing
/// folder has none, and subfolders are not searched.
pub(super) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error| Failure::Read(folder.to_owned(), error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let name = path.file_name().map(|name| name.to_string_lossy());
        let hidden = name.is_some_and(|name| name.starts_with('.'));
        if matches!(ending, Some("yaml" | "yml" | "json")) && !hidden && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Identifiers in use, each with its file.
#[derive(Default)]
pub(super) struct AtlasIds(BTreeMap<String, PathBuf>);

impl AtlasIds {
    /// Earlier file with this identifier; `None` the first time.
    pub(super) fn insert(&mut self, id: &str, file: &Path) -> Option<PathBuf> {
        if let Some(first) = self.0.get(id) {
            return Some(first.clone());
        }
        self.0.insert(id.to_owned(), file.to_owned());
        None
    }
}
