//! How event types are declared.

/// Declares every event type once: its name, its payload's fields, and the enum over them all. One that is the
/// result of rules says `under` behind its name, one from which a steward may have something left out says
/// `redacted`, and one whose numbers may be recorded as text says so last. Those that are declared elsewhere are
/// named first.
macro_rules! payloads {
    (elsewhere { $( $(#[$their_doc:meta])* $theirs:ident = $their_text:literal, )* }
    $(
        $(#[$doc:meta])*
        $name:ident = $text:literal $(under $judged:ident)? $(, $left_out:ident $(, $large:ident)?)? {
            $( $(#[$field_doc:meta])* $field:ident : $type:ty ),* $(,)?
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $name {
                $( $(#[$field_doc])* pub $field: $type, )*
                $(
                    /// Atlases whose rules led to it.
                    #[serde(default, skip_serializing_if = "Vec::is_empty")]
                    pub $judged: Vec<AtlasRef>,
                )?
                $(
                    /// What was left out of it.
                    #[serde(default, skip_serializing_if = "Vec::is_empty")]
                    pub $left_out: Vec<Redaction>,
                    $(
                        /// Paths of numbers that are recorded as strings of their digits.
                        #[serde(default, skip_serializing_if = "Vec::is_empty")]
                        pub $large: Vec<String>,
                    )?
                )?
            }

            impl From<$name> for Payload {
                fn from(payload: $name) -> Self {
                    Self::$name(payload)
                }
            }
        )*

        $(
            impl From<$theirs> for Payload {
                fn from(payload: $theirs) -> Self {
                    Self::$theirs(payload)
                }
            }
        )*

        /// What happened, with the details its type calls for.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Payload {
            $( $(#[$doc])* $name($name), )*
            $( $(#[$their_doc])* $theirs($theirs), )*
            /// Something of a type that was registered.
            Registered(super::Registered),
        }

        impl Payload {
            /// Names of this program's own event types.
            pub const TYPES: &'static [&'static str] = &[$($text,)* $($their_text),*];

            /// The event type's name.
            #[must_use]
            pub fn event_type(&self) -> &str {
                match self {
                    $( Self::$name(_) => $text, )*
                    $( Self::$theirs(_) => $their_text, )*
                    Self::Registered(registered) => registered.event_type(),
                }
            }

            /// The fields that an event type can have.
            #[must_use]
            pub fn field_names(event_type: &str) -> &'static [&'static str] {
                match canonical_type(event_type) {
                    $( $text => &[$(stringify!($field),)* $(stringify!($judged),)? $(stringify!($left_out), $(stringify!($large),)?)?], )*
                    $( $their_text => $theirs::FIELDS, )*
                    _ => &[],
                }
            }

            /// The Atlases whose rules led to it, where its type names them.
            pub fn judged_under_mut(&mut self) -> Option<&mut Vec<AtlasRef>> {
                match self {
                    $( $( Self::$name(payload) => Some(&mut payload.$judged), )? )*
                    _ => None,
                }
            }

            /// The details as they are recorded.
            #[must_use]
            pub fn fields(&self) -> Map<String, Value> {
                let value = match self {
                    $( Self::$name(payload) => serde_json::to_value(payload), )*
                    $( Self::$theirs(payload) => serde_json::to_value(payload), )*
                    Self::Registered(registered) => return registered.fields().clone(),
                };
                // INVARIANT: every payload is a struct with string keys, so it becomes an object.
                match value {
                    Ok(Value::Object(fields)) => fields,
                    Ok(_) | Err(_) => Map::new(),
                }
            }

            /// Writes the details as they are hashed.
            pub fn write_canonical(&self, out: &mut String) {
                use crate::base::canon::write_canonical;
                match self {
                    $( Self::$name(payload) => write_canonical(payload, out), )*
                    $( Self::$theirs(payload) => write_canonical(payload, out), )*
                    Self::Registered(registered) => write_canonical(registered.fields(), out),
                }
            }

            /// Reads the details of an event type.
            ///
            /// # Errors
            /// When the type is unknown, or the details are not the ones it calls for.
            pub fn read(event_type: &str, fields: Map<String, Value>) -> Result<Self, PayloadError> {
                let value = Value::Object(fields);
                let wrong = |source| PayloadError::Fields { event_type: event_type.to_owned(), source };
                match canonical_type(event_type) {
                    $( $text => serde_json::from_value(value).map(Self::$name).map_err(wrong), )*
                    $( $their_text => serde_json::from_value(value).map(Self::$theirs).map_err(wrong), )*
                    _ => Err(PayloadError::UnknownType { event_type: event_type.to_owned() }),
                }
            }
        }
    };
}

/// Declares a payload that the enum over them all only names.
macro_rules! payload {
    (
        $(#[$doc:meta])*
        $name:ident { $( $(#[$field_doc:meta])* $field:ident : $type:ty, )* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl $name {
            /// Its fields.
            pub(super) const FIELDS: &'static [&'static str] = &[$(stringify!($field),)*];
        }
    };
}

pub(super) use {payload, payloads};
