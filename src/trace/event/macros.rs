//! Macros that declare event types.

/// Declares every event type once: its name, the fields of its payload, and the enum of all payloads.
///
/// A type that results from rules says `under` after its name. A type from which a steward may redact
/// parts says `redacted`. A type whose numbers may be recorded as text names that field last. Types
/// declared elsewhere are named first. Doc comments also become `Payload::DESCRIPTIONS`.
macro_rules! payloads {
    (elsewhere { $( $(#[doc = $their_doc:literal])+ $theirs:ident = $their_text:literal, )* }
    $(
        $(#[doc = $doc:literal])+
        $name:ident = $text:literal $(under $judged:ident)? $(, $left_out:ident $(, $large:ident)?)? {
            $(
                $(#[doc = $field_doc:literal])+
                $(#[serde($($attribute:tt)*)])?
                $field:ident : $type:ty
            ),* $(,)?
        }
    )*) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $name {
                $(
                    $(#[doc = $field_doc])+
                    $(#[serde($($attribute)*)])?
                    pub $field: $type,
                )*
                $(
                    /// Atlases whose rules led to this event.
                    #[serde(default, skip_serializing_if = "Vec::is_empty")]
                    pub $judged: Vec<AtlasRef>,
                )?
                $(
                    /// Parts that were redacted from the event.
                    #[serde(default, skip_serializing_if = "Vec::is_empty")]
                    pub $left_out: Vec<Redaction>,
                    $(
                        /// Paths of numbers that are recorded as strings of digits.
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

        /// Type of an event with its details.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Payload {
            $( $(#[doc = $doc])+ $name($name), )*
            $( $(#[doc = $their_doc])+ $theirs($theirs), )*
            /// Event of a registered type.
            Registered(super::RegisteredEvent),
        }

        impl Payload {
            /// Names of the built-in event types.
            pub const TYPES: &'static [&'static str] = &[$($text,)* $($their_text),*];

            /// Descriptions of the built-in event types, in the order of [`Self::TYPES`].
            pub const DESCRIPTIONS: &'static [super::TypeDescription] = &[
                $( super::TypeDescription {
                    name: $text,
                    description: concat!($($doc),+),
                    fields: &[
                        $( super::FieldDescription {
                            name: stringify!($field),
                            type_name: stringify!($type),
                            attribute: stringify!($($($attribute)*)?),
                            description: concat!($($field_doc),+),
                        }, )*
                        $( super::FieldDescription {
                            name: stringify!($judged),
                            type_name: "Vec<AtlasRef>",
                            attribute: "default",
                            description: "Atlases whose rules led to this event.",
                        }, )?
                        $(
                            super::FieldDescription {
                                name: stringify!($left_out),
                                type_name: "Vec<Redaction>",
                                attribute: "default",
                                description: "Parts that were redacted from the event.",
                            },
                            $( super::FieldDescription {
                                name: stringify!($large),
                                type_name: "Vec<String>",
                                attribute: "default",
                                description: "Paths of numbers that are recorded as strings of digits.",
                            }, )?
                        )?
                    ],
                }, )*
                $( super::TypeDescription {
                    name: $their_text,
                    description: concat!($($their_doc),+),
                    fields: $theirs::FIELD_DESCRIPTIONS,
                }, )*
            ];

            /// Name of the event type.
            #[must_use]
            pub fn event_type(&self) -> &str {
                match self {
                    $( Self::$name(_) => $text, )*
                    $( Self::$theirs(_) => $their_text, )*
                    Self::Registered(registered) => registered.event_type(),
                }
            }

            /// Fields that an event type can have.
            #[must_use]
            pub fn field_names(event_type: &str) -> &'static [&'static str] {
                match canonical_type(event_type) {
                    $( $text => &[$(stringify!($field),)* $(stringify!($judged),)? $(stringify!($left_out), $(stringify!($large),)?)?], )*
                    $( $their_text => $theirs::FIELDS, )*
                    _ => &[],
                }
            }

            /// Atlases whose rules led to the event, if its type names them.
            pub fn judged_under_mut(&mut self) -> Option<&mut Vec<AtlasRef>> {
                match self {
                    $( $( Self::$name(payload) => Some(&mut payload.$judged), )? )*
                    _ => None,
                }
            }

            /// Details as they are recorded.
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

            /// Writes the details in canonical form, as they are hashed.
            pub fn write_canonical(&self, out: &mut String) {
                use crate::base::canonical_json::write_canonical;
                match self {
                    $( Self::$name(payload) => write_canonical(payload, out), )*
                    $( Self::$theirs(payload) => write_canonical(payload, out), )*
                    Self::Registered(registered) => write_canonical(registered.fields(), out),
                }
            }

            /// Parses the details of an event type.
            ///
            /// # Errors
            /// When the type is unknown, or the details do not match it.
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

/// Declares the payload of one type; the enum of all payloads only refers to it.
macro_rules! payload {
    (
        $(#[doc = $doc:literal])+
        $name:ident {
            $(
                $(#[doc = $field_doc:literal])+
                $(#[serde($($attribute:tt)*)])?
                $field:ident : $type:ty,
            )*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[doc = $field_doc])+
                $(#[serde($($attribute)*)])?
                pub $field: $type,
            )*
        }

        impl $name {
            /// Names of the fields.
            pub(super) const FIELDS: &'static [&'static str] = &[$(stringify!($field),)*];

            /// Descriptions of the fields, in the same order.
            pub(super) const FIELD_DESCRIPTIONS: &'static [super::FieldDescription] = &[
                $( super::FieldDescription {
                    name: stringify!($field),
                    type_name: stringify!($type),
                    attribute: stringify!($($($attribute)*)?),
                    description: concat!($($field_doc),+),
                }, )*
            ];
        }
    };
}

pub(super) use {payload, payloads};
