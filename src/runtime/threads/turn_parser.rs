//! Parsing of turns in files: the fields of a turn, with its session and its thread.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};

use super::SessionTurn;
use crate::base::id::SessionId;
use crate::memento::{ExternalName, MementoError, Turn, read_all_strictly};

impl SessionTurn {
    /// Reads one turn, or a list of turns.
    ///
    /// # Errors
    /// Fails when one of them is not exactly a turn, with the position. None is read then.
    pub fn read_all(text: &[u8]) -> Result<Vec<Self>, MementoError> {
        read_all_strictly(text, "turn")
    }
}

impl<'de> Deserialize<'de> for SessionTurn {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(TurnVisitor)
    }
}

struct TurnVisitor;

impl<'de> Visitor<'de> for TurnVisitor {
    type Value = SessionTurn;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a turn, as an object with its `session`")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SessionTurn, A::Error> {
        let (mut session, mut thread) = (None, None);
        let rest = TurnFields {
            map,
            session: &mut session,
            thread: &mut thread,
            said: BTreeSet::new(),
        };
        let turn = Turn::deserialize(MapAccessDeserializer::new(rest))?;
        Ok(SessionTurn {
            session: session.ok_or_else(|| A::Error::missing_field("session"))?,
            thread,
            turn,
        })
    }
}

/// The fields of the turn. `session` and `thread` are taken out on the way, so an unknown or duplicate
/// field is still refused.
struct TurnFields<'r, A> {
    map: A,
    session: &'r mut Option<SessionId>,
    thread: &'r mut Option<ExternalName>,
    said: BTreeSet<&'static str>,
}

impl<'de, A: MapAccess<'de>> TurnFields<'_, A> {
    fn once(&mut self, name: &'static str) -> Result<(), A::Error> {
        if self.said.insert(name) {
            return Ok(());
        }
        Err(A::Error::duplicate_field(name))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for TurnFields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.next_key::<String>()? {
            match name.as_str() {
                "session" => {
                    self.once("session")?;
                    *self.session = Some(self.map.next_value()?);
                }
                "thread" => {
                    self.once("thread")?;
                    *self.thread = self.map.next_value()?;
                }
                _ => return seed.deserialize(name.into_deserializer()).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<SessionTurn>, String> {
        SessionTurn::read_all(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_turn_names_its_session_and_may_name_its_thread() {
        let one = read(r#"{"message": "go", "session": "s-1", "message_id": "m-1"}"#).unwrap();
        assert_eq!(one[0].session.as_str(), "s-1");
        assert_eq!(one[0].thread().unwrap().as_str(), "s-1");
        let two = r#" [{"session": "s-1", "message_id": "m-1", "message": "go"},
            {"session": "s-1", "thread": "t-1", "message_id": "m-2", "message": "on"}]"#;
        let two = read(two).unwrap();
        assert_eq!(two[1].thread().unwrap().as_str(), "t-1");
        assert_eq!(two[1].turn.message_id.as_str(), "m-2");
        assert!(read("[]").unwrap().is_empty());
    }

    #[test]
    fn an_invalid_turn_is_refused_with_its_position() {
        let table = [
            (
                r#"{"message_id": "m", "message": "go"}"#,
                "missing field `session`",
            ),
            (
                r#"{"session": "s-1", "message_id": "m", "message": "go", "mood": 1}"#,
                "unknown field `mood`",
            ),
            (
                r#"{"session": "s-1", "session": "s-2", "message_id": "m", "message": "go"}"#,
                "session: duplicate key",
            ),
            (
                r#"{"session": "s-1", "message": "a", "message_id": "m", "message": "go"}"#,
                "message: duplicate key",
            ),
            (
                r#"[{"session": "s-1", "message_id": "m", "message": "go", "signals": 4}]"#,
                "[0].signals: ",
            ),
            (
                r#"[{"session": "s-1", "message_id": "m", "message": "go", "pressure": [1, 2]}]"#,
                "must be an object, not a list",
            ),
            (
                r#"{"session": "s", "thread": null, "thread": "t", "message_id": "m", "message": "go"}"#,
                "thread: duplicate key",
            ),
            (r#"[["s-1"]]"#, "[0]: invalid type: sequence"),
            (
                r#"{"session": "", "message_id": "m", "message": "go"}"#,
                "session: ",
            ),
            ("", "turn: "),
        ];
        for (text, wanted) in table {
            let problem = read(text).unwrap_err();
            assert!(
                problem.contains(wanted),
                "`{wanted}` in {problem}, for {text}"
            );
        }
    }
}
