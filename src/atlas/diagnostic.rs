//! Problems of a manifest, with their positions.
//!
//! Messages are in lower case, quote the file in backticks and end without a period. Advice is separate, in `help`.
//! All text from the file is sanitized before it gets here, so a diagnostic can be shown as it is.

mod problems;
mod renderer;

use std::fmt;

use serde::{Serialize, Serializer};

use crate::base::text::one_line;

pub(super) use problems::{ByteSpan, ManifestProblem, Problems};
pub use renderer::{ReportColour, render};

/// Maximum length of a quotation from the file in a message; the position shows the rest.
const MAX_QUOTED_CHARS: usize = 60;

/// One problem of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Kind of problem, for documentation and tools.
    pub code: Code,
    /// Severity: an error makes the manifest unusable.
    pub severity: Severity,
    /// Description of the problem.
    pub message: String,
    /// File name as given by the caller.
    pub file: String,
    /// Path in the manifest, like `checkpoints[2].trigger.type`; empty for the whole manifest.
    pub path: String,
    /// Position in the text.
    pub span: Option<SourceLocation>,
    /// Advice for a fix.
    pub help: Option<String>,
}

/// A range of the text with its line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SourceLocation {
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte in characters, from 1.
    pub column: usize,
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The manifest cannot be used.
    Error,
    /// The manifest can be used, though perhaps not as intended.
    Warning,
}

impl Severity {
    /// The severity's name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $severity:ident;)+) => {
        /// The kinds of problem. A number is never reused for another kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Returns the code as shown in reports, like `E012`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// Returns the severity of problems of this kind.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)+ }
            }
        }
    };
}

codes! {
    /// The text is not YAML.
    Syntax = "E001", Error;
    /// A key is written twice in one map.
    DuplicateKey = "E002", Error;
    /// The text uses a YAML feature that an Atlas does not allow: anchors, aliases, merge keys, tags, directives or
    /// several documents.
    YamlFeature = "E003", Error;
    /// The text is nested too deeply or has too many values.
    Limit = "E004", Error;
    /// The file is empty.
    Empty = "E005", Error;
    /// The text contains a character that is not allowed in a manifest.
    ForbiddenCharacter = "E006", Error;
    /// A key is not text.
    KeyNotText = "E007", Error;
    /// A number is invalid or cannot be represented exactly.
    Number = "E008", Error;
    /// A required key is missing.
    MissingKey = "E010", Error;
    /// A value has the wrong type.
    WrongType = "E011", Error;
    /// A key does not exist in the format.
    UnknownKey = "E012", Error;
    /// A word is not one of the known words.
    UnknownValue = "E013", Error;
    /// A number is outside its range.
    OutOfRange = "E014", Error;
    /// The format defines the feature, but this version does not enforce it yet.
    NotEnforced = "E020", Error;
    /// The format version is not supported.
    FormatVersion = "E030", Error;
    /// An identifier is empty, too long or deceptive.
    BadId = "E031", Error;
    /// Two parts of one kind share an identifier.
    DuplicateId = "E032", Error;
    /// A reference points to a part that does not exist.
    UnknownReference = "E033", Error;
    /// A pattern, or a list of patterns, can never match.
    EmptyPattern = "E034", Error;
    /// A regular expression does not compile.
    BadRegex = "E035", Error;
    /// Rules contradict each other, so that no answer can satisfy them.
    Contradiction = "E036", Error;
    /// A question has no text.
    EmptyQuestion = "E037", Error;
    /// A value is not a valid JSON Schema.
    BadSchema = "E038", Error;
    /// A condition cannot be evaluated.
    BadCondition = "E039", Error;
    /// An extension cannot be called.
    BadExtension = "E040", Error;
    /// An address must not be called.
    BadAddress = "E041", Error;
    /// Guidance does not have the format that it declares.
    BadGuidance = "E042", Error;
    /// The list of errors was cut.
    MoreErrors = "E099", Error;
    /// A key of the steward's own.
    IgnoredKey = "W001", Warning;
    /// A name has a canonical form.
    Alias = "W002", Warning;
    /// A capability names an action that is not declared.
    UndeclaredAction = "W003", Warning;
    /// A setting is accepted but has no effect for the agents of this version.
    NoEffect = "W004", Warning;
    /// A question asks for credentials, which must not be recorded.
    AsksForCredentials = "W005", Warning;
    /// The default for most actions is not written down.
    ImplicitDefault = "W006", Warning;
    /// The Atlas has more gates than operators can answer with care.
    ManyGates = "W007", Warning;
    /// A keyword is short enough to be a part of many words.
    ShortKeyword = "W008", Warning;
    /// A question has rules that are not shown to the respondent.
    HiddenRules = "W009", Warning;
    /// Rules are so tight that they invite meaningless answers.
    TightRules = "W010", Warning;
    /// Only checkpoints, or no rules at all, protect actions that can take a system down.
    NoPolicy = "W011", Warning;
    /// A crash may lose the record of a critical gate.
    AsyncRecord = "W012", Warning;
    /// An extension is not in the operator's list.
    UnlistedExtension = "W013", Warning;
    /// Parameters look like secrets and are recorded unredacted.
    UnredactedSecret = "W014", Warning;
    /// A pattern of a rule matches no declared action.
    DeadPattern = "W015", Warning;
    /// A gate before a critical action passes without a valid answer.
    SoftGate = "W016", Warning;
    /// A condition or a cost uses a parameter that no action has.
    UnknownParameter = "W017", Warning;
    /// A limit does not say which runs it counts together.
    ImplicitScope = "W018", Warning;
    /// A condition that can never hold.
    DeadCondition = "W019", Warning;
    /// A rule that another rule, or what is declared, keeps from applying.
    DeadRule = "W020", Warning;
    /// More warnings than are listed.
    MoreWarnings = "W099", Warning;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Displays the diagnostic on one line, in the style of a compiler: `atlas.yaml:3:9: error[E013]: unknown mode
/// ...`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.file))?;
        if let Some(place) = self.span {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(
            f,
            ": {}[{}]: {}",
            self.severity.as_str(),
            self.code,
            self.message
        )
    }
}

/// Quotes text of the file for a message: in backticks, on one line, sanitized and shortened.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}

/// Returns text of the file on one line, sanitized and shortened.
pub(super) fn shortened(text: &str) -> String {
    let mut characters = text.chars();
    let mut shown: String = characters.by_ref().take(MAX_QUOTED_CHARS).collect();
    if characters.next().is_some() {
        shown.push_str("...");
    }
    one_line(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostic_serializes_its_code_as_text() {
        let diagnostic = Diagnostic {
            code: Code::UnknownKey,
            severity: Severity::Error,
            message: "unknown key `x`".to_owned(),
            file: "a.yaml".to_owned(),
            path: "policies[0].x".to_owned(),
            span: Some(SourceLocation {
                start: 4,
                end: 5,
                line: 2,
                column: 3,
            }),
            help: None,
        };
        assert_eq!(
            serde_json::to_value(&diagnostic).unwrap(),
            serde_json::json!({
                "code": "E012",
                "severity": "error",
                "message": "unknown key `x`",
                "file": "a.yaml",
                "path": "policies[0].x",
                "span": {"start": 4, "end": 5, "line": 2, "column": 3},
                "help": null,
            })
        );
        assert_eq!(
            diagnostic.to_string(),
            "a.yaml:2:3: error[E012]: unknown key `x`"
        );
    }

    #[test]
    fn quoted_text_is_shortened_and_sanitized() {
        assert_eq!(quoted("a\u{202e}b\n"), "`a\\u{202e}b\\n`");
        let long = "x".repeat(MAX_QUOTED_CHARS + 1);
        assert_eq!(
            quoted(&long),
            format!("`{}...`", "x".repeat(MAX_QUOTED_CHARS))
        );
    }
}
