//! Identifiers: a separate type for each kind, so that the id of a held request cannot be passed as a session id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::limits::MAX_ID_LEN;

/// The error for a text that is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an identifier: 1 to {MAX_ID_LEN} characters of A-Z a-z 0-9 . _ -")]
pub struct IdError {
    text: String,
}

/// Returns true if `text` may appear in a record's envelope, where `:` separates the fields.
#[must_use]
pub fn is_restricted(text: &str) -> bool {
    is_id_length(text) && has_restricted_bytes(text.as_bytes())
}

/// Returns true if `text` consists of usual envelope names, with exactly this many `:` between and after them.
///
/// Usual names are short and in lower case. The length of each name is not checked.
#[must_use]
pub fn are_usual_names(text: &str, separators: u8) -> bool {
    let bytes = text.as_bytes();
    // Processors handle sixteen bytes at once. The remainder is checked again as the end of the last sixteen bytes.
    let (chunks, rest) = bytes.as_chunks::<16>();
    let chunks = chunks.as_flattened();
    let odd = |odd: u8, byte: &u8| {
        let letter = u8::from(byte.wrapping_sub(b'a') < 26);
        // A `:` comes right after the digits in ASCII.
        let digit = u8::from(byte.wrapping_sub(b'0') < 11);
        odd | ((letter | digit | u8::from(*byte == b'-')) ^ 1)
    };
    let count = |count: u8, byte: &u8| count.wrapping_add(u8::from(*byte == b':'));
    let fits = bytes
        .last_chunk::<16>()
        .is_some_and(|last| chunks.iter().fold(0, odd) | last.iter().fold(0, odd) == 0);
    // The counter is a byte.
    let short = u8::try_from(bytes.len()).is_ok();
    fits && short && rest.iter().fold(chunks.iter().fold(0, count), count) == separators
}

/// Returns true if `text` has a valid length for an identifier.
#[must_use]
pub fn is_id_length(text: &str) -> bool {
    (1..=MAX_ID_LEN).contains(&text.len())
}

/// Returns true if all bytes are allowed in identifiers. Without branches, so that many bytes are checked at once.
fn has_restricted_bytes(bytes: &[u8]) -> bool {
    let odd = bytes.iter().fold(0, |odd, &byte| {
        let letter = u8::from((byte | 0x20).wrapping_sub(b'a') < 26);
        let digit = u8::from(byte.wrapping_sub(b'0') < 10);
        // `-` and `.` are neighbours in ASCII.
        let mark = u8::from(byte.wrapping_sub(b'-') < 2) | u8::from(byte == b'_');
        odd | ((letter | digit | mark) ^ 1)
    });
    odd == 0
}

macro_rules! restricted_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The identifier's text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::try_from(text.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                if is_restricted(&text) {
                    Ok(Self(text))
                } else {
                    Err(IdError { text: text.chars().take(MAX_ID_LEN).collect() })
                }
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id.hyphenated().to_string())
            }
        }
    };
}

restricted_id!(
    /// One agent session, from start to end.
    SessionId
);
restricted_id!(
    /// One record of TRACE.
    EventId
);
restricted_id!(
    /// One operation: everything that a request causes has the same trace id.
    TraceId
);
restricted_id!(
    /// One node of the span tree.
    SpanId
);
restricted_id!(
    /// A request held for an answer, in its displayed form: `c-12`.
    HeldRequestId
);
restricted_id!(
    /// One allowed run of one action.
    ExecutionId
);

impl SessionId {
    /// Prefix of log names. A log is a session without an agent.
    pub const LOG_PREFIX: &str = "log-";

    /// Returns true for the name of a log.
    #[must_use]
    pub fn is_log(&self) -> bool {
        self.0.starts_with(Self::LOG_PREFIX)
    }
}

impl HeldRequestId {
    /// Creates the id of the `number`th held request of a store.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(format!("c-{number}"))
    }
}

/// The source of new identifiers, injected so that a run can be repeated exactly.
pub trait IdSource: Send {
    /// Returns an identifier that this source has not returned before.
    fn next(&mut self) -> Uuid;
}

/// Time-ordered random identifiers (UUID version 7).
#[derive(Debug, Default, Clone, Copy)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next(&mut self) -> Uuid {
        Uuid::now_v7()
    }
}

/// The identifiers 1, 2, 3 ..., for tests and for replaying a run.
#[derive(Debug, Default, Clone)]
pub struct CountedIds(u128);

impl CountedIds {
    /// Creates identifiers after `start`, for a run that continues another one.
    #[must_use]
    pub fn starting_at(start: u128) -> Self {
        Self(start)
    }
}

impl IdSource for CountedIds {
    fn next(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_restricted_text_is_an_id() {
        assert!("s-12".parse::<SessionId>().is_ok());
        assert!("A.b_C-9".parse::<SessionId>().is_ok());
        for text in ["", "a:b", "a b", "é", "a\n", &"x".repeat(MAX_ID_LEN + 1)] {
            assert!(text.parse::<SessionId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_byte_is_classified_as_allowed_or_not_in_an_id() {
        for byte in 0..=u8::MAX {
            let fine = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
            assert_eq!(has_restricted_bytes(&[b'a', byte]), fine, "{byte}");
        }
    }

    #[test]
    fn usual_names_have_allowed_bytes_and_the_given_separator_count() {
        // At every position, in texts whose length is and is not a multiple of sixteen.
        for length in [16, 17, 31, 32, 40] {
            for place in 0..length {
                for byte in 0..=0x7f_u8 {
                    let mut text = vec![b'a'; length];
                    text[place] = byte;
                    let text = String::from_utf8(text).unwrap();
                    let fine = byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
                    assert_eq!(are_usual_names(&text, 0), fine, "{text}");
                    assert_eq!(are_usual_names(&text, 1), byte == b':', "{text}");
                }
            }
        }
        // More separators than a byte can count.
        assert!(!are_usual_names(&":".repeat(256 + 5), 5));
        assert!(
            !are_usual_names("s-1", 0),
            "too short to be looked at at once"
        );
    }

    #[test]
    fn counted_ids_are_repeatable() {
        let first: Vec<_> = std::iter::repeat_with({
            let mut ids = CountedIds::default();
            move || ids.next()
        })
        .take(3)
        .collect();
        let mut again = CountedIds::default();
        assert_eq!(first, [again.next(), again.next(), again.next()]);
    }
}
