//! Loading of an Atlas from a file; returns the Atlas or all problems.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::decoder::decode;
use super::diagnostic::{
    Code, Diagnostic, ManifestProblem, Problems, ReportColour, Severity, render,
};
use super::document::AtlasManifest;
use super::model::Atlas;
use super::origin::AtlasOrigin;
use super::validate::{KnownExtensions, validate_manifest};
use super::yaml;
use crate::base::digest::Digest;
use crate::base::limits::MAX_ATLAS_BYTES;
use crate::base::text::one_line;

/// A transformation of every manifest before validation, by registered checkpoint types and plugins. Empty by
/// default.
#[derive(Clone, Default)]
pub struct ManifestTransform(Option<Arc<ManifestTransformFn>>);

/// A function that changes a manifest.
type ManifestTransformFn = dyn Fn(&mut AtlasManifest) + Send + Sync;

impl ManifestTransform {
    /// Creates a transformation from a function.
    pub fn new(configure: impl Fn(&mut AtlasManifest) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(configure)))
    }

    /// Applies the transformation.
    pub fn apply(&self, manifest: &mut AtlasManifest) {
        if let Some(configure) = &self.0 {
            configure(manifest);
        }
    }
}

impl fmt::Debug for ManifestTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Configure").field(&self.0.is_some()).finish()
    }
}

/// An Atlas that can be used.
#[derive(Debug)]
pub struct LoadOutcome {
    /// The Atlas.
    pub atlas: Atlas,
    /// Warnings for the steward.
    pub warnings: Vec<Diagnostic>,
    /// Source text, for rendering the warnings.
    pub source: String,
}

/// The reason why an Atlas could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {source}", one_line(&path.to_string_lossy()))]
    Io {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The text exceeds the size limit of an Atlas.
    #[error(
        "`{}` exceeds the limit of {MAX_ATLAS_BYTES} bytes for an Atlas",
        one_line(name)
    )]
    TooLarge {
        /// File name as given by the caller.
        name: String,
    },
    /// The file is not text.
    #[error(
        "`{}` is not UTF-8 text: the first invalid byte is at offset {offset}",
        one_line(name)
    )]
    NotUtf8 {
        /// File name as given by the caller.
        name: String,
        /// Offset of the first byte that is not UTF-8.
        offset: usize,
    },
    /// The manifest has errors.
    #[error("{}", summary(diagnostics))]
    Invalid {
        /// Every error and warning, in the order of the text.
        diagnostics: Vec<Diagnostic>,
        /// Source text.
        source_text: String,
    },
}

impl LoadError {
    /// Renders all problems as human-readable text, with source lines underlined where positions are known.
    #[must_use]
    pub fn report(&self, colour: ReportColour) -> String {
        match self {
            Self::Io { .. } | Self::TooLarge { .. } | Self::NotUtf8 { .. } => {
                format!("error: {self}\n")
            }
            Self::Invalid {
                diagnostics,
                source_text,
            } => render(diagnostics, source_text, colour),
        }
    }

    /// Returns the diagnostics; empty if the text could not be read.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Io { .. } | Self::TooLarge { .. } | Self::NotUtf8 { .. } => &[],
            Self::Invalid { diagnostics, .. } => diagnostics,
        }
    }
}

/// Loads an Atlas from a file, YAML or JSON.
///
/// # Errors
/// Fails when the file cannot be read, is too large, is not UTF-8, or is not a valid manifest.
pub fn load_file(path: impl AsRef<Path>) -> Result<LoadOutcome, LoadError> {
    load_file_with(path, &ManifestTransform::default())
}

/// Loads an Atlas from a file after changes to its manifest.
///
/// # Errors
/// Fails when the file cannot be read, or the changed manifest is not valid.
pub fn load_file_with(
    path: impl AsRef<Path>,
    configure: &ManifestTransform,
) -> Result<LoadOutcome, LoadError> {
    let path = path.as_ref();
    let name = path.to_string_lossy();
    let loaded = load_configured(
        &name,
        read_bytes(path)?,
        |manifest| configure.apply(manifest),
        None,
    )?;
    Ok(with_file(loaded, path))
}

/// Loads a file again. Returns `None` if its content equals `before`.
///
/// # Errors
/// As for [`load_file_with`].
pub fn load_if_changed(
    path: impl AsRef<Path>,
    before: &str,
    configure: &ManifestTransform,
) -> Result<Option<LoadOutcome>, LoadError> {
    let path = path.as_ref();
    let bytes = read_bytes(path)?;
    if bytes == before.as_bytes() {
        return Ok(None);
    }
    let name = path.to_string_lossy();
    let loaded = load_configured(&name, bytes, |manifest| configure.apply(manifest), None)?;
    Ok(Some(with_file(loaded, path)))
}

/// Sets the file of origin.
fn with_file(mut loaded: LoadOutcome, path: &Path) -> LoadOutcome {
    loaded.atlas.origin = Arc::new(AtlasOrigin {
        file: Some(path.to_owned()),
        ..(*loaded.atlas.origin).clone()
    });
    loaded
}

/// Loads a file as [`load_file`] does, and adds advice about extensions of the Atlas that are not in `known`.
///
/// # Errors
/// As for [`load_file`].
pub fn lint_file(
    path: impl AsRef<Path>,
    known: &KnownExtensions,
) -> Result<LoadOutcome, LoadError> {
    lint_file_with(path, known, &ManifestTransform::default())
}

/// Loads a file as [`lint_file`] does, after changes to its manifest.
///
/// # Errors
/// As for [`load_file_with`].
pub fn lint_file_with(
    path: impl AsRef<Path>,
    known: &KnownExtensions,
    configure: &ManifestTransform,
) -> Result<LoadOutcome, LoadError> {
    let path = path.as_ref();
    let name = path.to_string_lossy();
    let bytes = read_bytes(path)?;
    load_configured(
        &name,
        bytes,
        |manifest| configure.apply(manifest),
        Some(known),
    )
}

/// Loads an Atlas from text; messages use `name` as the file name.
///
/// # Errors
/// Fails when the text is too large or is not a valid manifest.
///
/// ```
/// let text = "atlas_version: '1.0'\natlas_id: com.example\nversion: '1'\nname: Example\n";
/// let loaded = cra_core::atlas::load_str("example.yaml", text)?;
/// assert_eq!(loaded.atlas.id, "com.example");
/// # Ok::<(), cra_core::atlas::LoadError>(())
/// ```
pub fn load_str(name: &str, text: &str) -> Result<LoadOutcome, LoadError> {
    load_str_with(name, text, |_| {})
}

/// Loads an Atlas from text after changes to its manifest, for example by a plugin.
///
/// # Errors
/// Fails when the text is too large, or the changed manifest is not valid.
pub fn load_str_with(
    name: &str,
    text: &str,
    configure: impl FnOnce(&mut AtlasManifest),
) -> Result<LoadOutcome, LoadError> {
    load_configured(name, text.as_bytes().to_vec(), configure, None)
}

/// Loads an Atlas from the bytes of a file.
#[cfg(test)]
pub(crate) fn load_bytes(name: &str, bytes: Vec<u8>) -> Result<LoadOutcome, LoadError> {
    load_configured(name, bytes, |_| {}, None)
}

fn load_configured(
    name: &str,
    bytes: Vec<u8>,
    configure: impl FnOnce(&mut AtlasManifest),
    known: Option<&KnownExtensions>,
) -> Result<LoadOutcome, LoadError> {
    let source = to_text(name, bytes)?;
    let mut problems = Problems::new(name, &source);
    let atlas = build(&source, configure, known, &mut problems);
    let diagnostics = problems.into_diagnostics();
    match atlas {
        Some((atlas, origin)) => Ok(LoadOutcome {
            atlas: Atlas {
                origin: Arc::new(AtlasOrigin {
                    name: name.to_owned(),
                    warnings: diagnostics.clone(),
                    ..origin
                }),
                ..atlas
            },
            warnings: diagnostics,
            source,
        }),
        None => Err(LoadError::Invalid {
            diagnostics,
            source_text: source,
        }),
    }
}

impl AtlasManifest {
    /// Reads a manifest from YAML or JSON, as from a file, without validation.
    ///
    /// ```
    /// use cra_core::AtlasManifest;
    /// use cra_core::atlas::Atlas;
    ///
    /// let mut manifest = AtlasManifest::from_yaml(
    ///     "atlas_version: '1.0'\natlas_id: com.example\nversion: '1'\nname: Example\n\
    ///      checkpoints: [{checkpoint_id: start, trigger: {type: session_start}}]\n",
    /// )?;
    /// assert_eq!(manifest.get_session_start_checkpoints().len(), 1);
    /// manifest.name = "Changed by code".to_owned();
    /// let loaded = Atlas::from_manifest(&manifest)?;
    /// assert_eq!(loaded.atlas.name, "Changed by code");
    /// # Ok::<(), cra_core::atlas::LoadError>(())
    /// ```
    ///
    /// # Errors
    /// Fails when the text is too large, or is not a manifest: every error with its position.
    pub fn from_yaml(text: &str) -> Result<Self, LoadError> {
        let source = to_text(FROM_CODE, text.as_bytes().to_vec())?;
        let mut problems = Problems::new(FROM_CODE, &source);
        let root = yaml::parse(&source, &mut problems).filter(|_| !problems.has_errors());
        let manifest = root.map(|root| decode(&root, &mut problems));
        match manifest {
            Some(manifest) if !problems.has_errors() => Ok(manifest),
            Some(_) | None => Err(LoadError::Invalid {
                diagnostics: problems.into_diagnostics(),
                source_text: source,
            }),
        }
    }
}

impl Atlas {
    /// Validates a manifest built in code. Its source text, for the record, is the manifest as JSON.
    ///
    /// # Errors
    /// Fails when the manifest is not valid: every error with its position in that text.
    pub fn from_manifest(manifest: &AtlasManifest) -> Result<LoadOutcome, LoadError> {
        match serde_json::to_string_pretty(manifest) {
            Ok(text) => load_str(FROM_CODE, &text),
            Err(error) => {
                let mut problems = Problems::new(FROM_CODE, "");
                problems.add(ManifestProblem::new(Code::Syntax, error.to_string()));
                Err(LoadError::Invalid {
                    diagnostics: problems.into_diagnostics(),
                    source_text: String::new(),
                })
            }
        }
    }
}

/// Name, in messages, of a manifest that does not come from a file.
const FROM_CODE: &str = "manifest";

/// Converts bytes to text, within the size limit of an Atlas.
pub(super) fn to_text(name: &str, bytes: Vec<u8>) -> Result<String, LoadError> {
    if bytes.len() > MAX_ATLAS_BYTES {
        return Err(LoadError::TooLarge {
            name: name.to_owned(),
        });
    }
    String::from_utf8(bytes).map_err(|error| LoadError::NotUtf8 {
        name: name.to_owned(),
        offset: error.utf8_error().valid_up_to(),
    })
}

fn build<'s>(
    source: &'s str,
    configure: impl FnOnce(&mut AtlasManifest),
    known: Option<&KnownExtensions>,
    problems: &mut Problems<'s>,
) -> Option<(Atlas, AtlasOrigin)> {
    let root = yaml::parse(source, problems)?;
    // A tree with a duplicate key or an alias may not be what the steward intended.
    if problems.has_errors() {
        return None;
    }
    let mut manifest = decode(&root, problems);
    // Not all problems are in the list any more, so consequences could not be told apart from causes.
    if problems.is_full() {
        return None;
    }
    let written = manifest.clone();
    configure(&mut manifest);
    let mut hash = Digest::of(source.as_bytes());
    if manifest != written {
        // A decision made under the original manifest must not count under the changed one.
        let became = serde_json::to_string(&manifest).unwrap_or_default();
        hash = Digest::of_parts([source.as_bytes(), became.as_bytes()]);
    }
    let atlas = validate_manifest(manifest, &root, hash, known, problems)?;
    let atlas = Atlas {
        text: source.into(),
        ..atlas
    };
    Some((atlas, AtlasOrigin::of(&root, source)))
}

/// Reads the bytes of a file, limited to what is needed to detect an oversized file.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, LoadError> {
    read_bounded(path).map_err(|source| LoadError::Io {
        path: path.to_owned(),
        source,
    })
}

/// Reads at most one byte more than an Atlas may have, which is enough to detect an oversized file.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_ATLAS_BYTES).unwrap_or(u64::MAX);
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
    let Some(first) = errors.next() else {
        return "the manifest is not valid".to_owned();
    };
    let listed = errors.clone().count();
    if errors.any(|diagnostic| diagnostic.code == Code::MoreErrors) {
        format!("{first} (and at least {listed} more)")
    } else if listed > 0 {
        format!("{first} (and {listed} more)")
    } else {
        first.to_string()
    }
}

#[cfg(test)]
mod tests;
