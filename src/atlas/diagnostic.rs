//! What is wrong with a manifest, and where.
//!
//! Messages are lower-case, quote what the file says in backticks and end without a period; advice
//! stands apart, in `help`. Everything that comes from the file has been made harmless before it gets
//! here, so a diagnostic can be shown as it is.

mod problems;
mod render;

use std::fmt;

use serde::{Serialize, Serializer};

use crate::base::text::one_line;

pub(super) use problems::{Problem, Problems, Span};
pub use render::{Colour, render};

/// Longest piece of the file that a message repeats; the place shows the rest.
const MAX_QUOTED_CHARS: usize = 60;

/// One problem of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Which kind of problem, for documentation and for tools.
    pub code: Code,
    /// Whether the manifest can be used all the same.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// The file, as it was named.
    pub file: String,
    /// Where in the manifest, like `checkpoints[2].trigger.type`; empty for the whole of it.
    pub path: String,
    /// Where in the text.
    pub span: Option<Place>,
    /// What to do about it.
    pub help: Option<String>,
}

/// A stretch of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte in characters, from 1.
    pub column: usize,
}

/// Whether a manifest can be used all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, though perhaps not as meant.
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
        /// The kinds of problem. A number is never given to another kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// The code as reports write it, like `E012`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// How much a problem of this kind weighs.
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
    /// A part of YAML that an Atlas does not use: anchors, aliases, merge keys, tags, directives,
    /// several documents.
    YamlFeature = "E003", Error;
    /// Too deep, or too many values.
    Limit = "E004", Error;
    /// There is nothing in the file.
    Empty = "E005", Error;
    /// A character that cannot stand in a manifest.
    ForbiddenCharacter = "E006", Error;
    /// A key that is not text.
    KeyNotText = "E007", Error;
    /// A number that cannot be kept exactly, or is none.
    Number = "E008", Error;
    /// A key that must be there is not.
    MissingKey = "E010", Error;
    /// A value of another type is expected.
    WrongType = "E011", Error;
    /// A key that the format does not have.
    UnknownKey = "E012", Error;
    /// A word that is none of the known ones.
    UnknownValue = "E013", Error;
    /// A number outside of its range.
    OutOfRange = "E014", Error;
    /// The format has it, this version does not hold anyone to it yet.
    NotEnforced = "E020", Error;
    /// Another version of the format.
    FormatVersion = "E030", Error;
    /// An identifier that is empty, too long or not what it seems.
    BadId = "E031", Error;
    /// Two things of one kind share an identifier.
    DuplicateId = "E032", Error;
    /// A reference to something that does not exist.
    UnknownReference = "E033", Error;
    /// A pattern, or a list of them, that can never match.
    EmptyPattern = "E034", Error;
    /// A regular expression that does not compile.
    BadRegex = "E035", Error;
    /// Rules that no answer can keep.
    Contradiction = "E036", Error;
    /// A question without words.
    EmptyQuestion = "E037", Error;
    /// A JSON Schema that is none.
    BadSchema = "E038", Error;
    /// A condition that cannot be evaluated.
    BadCondition = "E039", Error;
    /// An extension that cannot be asked.
    BadExtension = "E040", Error;
    /// An address that may not be called.
    BadAddress = "E041", Error;
    /// Guidance that is not in the format it says.
    BadGuidance = "E042", Error;
    /// More errors than are listed.
    MoreErrors = "E099", Error;
    /// A key of the steward's own.
    IgnoredKey = "W001", Warning;
    /// A name for which there is a canonical one.
    Alias = "W002", Warning;
    /// A capability names an action that is not declared.
    UndeclaredAction = "W003", Warning;
    /// Accepted, and without effect for the agents of this version.
    NoEffect = "W004", Warning;
    /// A question asks for what must not be recorded.
    AsksForCredentials = "W005", Warning;
    /// What holds for most actions is not said.
    ImplicitDefault = "W006", Warning;
    /// More gates than people answer with care.
    ManyGates = "W007", Warning;
    /// A keyword that is part of many words.
    ShortKeyword = "W008", Warning;
    /// A question with rules that nobody who answers it is told.
    HiddenRules = "W009", Warning;
    /// Rules that invite answers without a meaning.
    TightRules = "W010", Warning;
    /// Only checkpoints stand before what can take a system down, or nothing does.
    NoPolicy = "W011", Warning;
    /// A critical gate whose firing may be lost in a crash.
    AsyncRecord = "W012", Warning;
    /// An extension that the operator's list does not have.
    UnlistedExtension = "W013", Warning;
    /// Parameters that look like secrets, and that records keep as they are.
    UnredactedSecret = "W014", Warning;
    /// A pattern of a rule that matches no declared action.
    DeadPattern = "W015", Warning;
    /// A gate before something critical that passes without a good answer.
    SoftGate = "W016", Warning;
    /// A condition or a cost on a parameter that no action has.
    UnknownParameter = "W017", Warning;
    /// A limit that does not say whose runs it counts.
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

/// One line, as compilers write it: `atlas.yaml:3:9: error[E013]: unknown mode ...`.
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

/// Text of the file for a message: in backticks, on one line, harmless and short.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}

/// Text of the file on one line, harmless and short.
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
    fn a_diagnostic_is_json_with_its_code_as_text() {
        let diagnostic = Diagnostic {
            code: Code::UnknownKey,
            severity: Severity::Error,
            message: "unknown key `x`".to_owned(),
            file: "a.yaml".to_owned(),
            path: "policies[0].x".to_owned(),
            span: Some(Place {
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
    fn quoted_text_is_short_and_harmless() {
        assert_eq!(quoted("a\u{202e}b\n"), "`a\\u{202e}b\\n`");
        let long = "x".repeat(MAX_QUOTED_CHARS + 1);
        assert_eq!(
            quoted(&long),
            format!("`{}...`", "x".repeat(MAX_QUOTED_CHARS))
        );
    }
}
