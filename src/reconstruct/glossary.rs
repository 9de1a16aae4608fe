//! Constants of the protocol: versions, glossary and guidelines.

/// Version of the protocol.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Format version of snapshot files that the protocol supports.
pub const COMPATIBLE_WITH: &str = "2.0";

/// Date of the last change of the protocol.
pub const UPDATED: &str = "2025-10-17";

/// Glossary of snapshot files.
pub const GLOSSARY: [(&str, &str); 12] = [
    (
        "blocking_issue",
        "an unresolved question that keeps everything from moving on",
    ),
    (
        "checkpoint_type",
        "the kind of snapshot: cognitive, transition or completion",
    ),
    (
        "completion_percentage",
        "how far the conversation or the design has come",
    ),
    (
        "confidence",
        "how sure a decision or an approach is: high, medium or low",
    ),
    (
        "critical_question",
        "the one unresolved question that needs attention first",
    ),
    (
        "deferred_items",
        "what was put off on purpose until something holds",
    ),
    ("intellectual_journey", "the way that the conversation took"),
    (
        "key_pivots",
        "moments that changed the direction, and what was understood there",
    ),
    (
        "momentum",
        "where it is heading: exploratory, converging or implementing",
    ),
    (
        "phase",
        "the major part of the work: foundation, design, implementation",
    ),
    (
        "readiness_for_implementation",
        "whether the design is solid enough to build",
    ),
    ("stage", "the place within a phase: early, mid or late"),
];

/// Reasons to load artifacts.
pub const LOAD_ARTIFACTS_FOR: [&str; 4] = [
    "the user asks about what is in one",
    "technical details are needed",
    "earlier work is reviewed or revised",
    "one component is looked into deeply",
];

/// Reasons not to load artifacts.
pub const NEVER_LOAD_ARTIFACTS_FOR: [&str; 3] = [
    "while the context is being reconstructed",
    "when the conversation simply goes on",
    "when the overview is enough",
];

/// Quality goals of a reconstruction for the user, the agent and the conversation.
pub const QUALITY: [(&str, [&str; 4]); 3] = [
    (
        "user",
        [
            "need not explain the context again",
            "finds that the conversation simply goes on",
            "sees that it is understood what is resolved and what is not",
            "hears the same tone as before",
        ],
    ),
    (
        "agent",
        [
            "knows earlier decisions and why they were made",
            "suggests nothing that was put off or is premature",
            "is as sure as it has reason to be",
            "can explain why the conversation stands where it does",
        ],
    ),
    (
        "conversation",
        [
            "is taken up where it was left",
            "keeps its momentum, exploring or deciding",
            "goes on with a step that fits",
            "respects what the user wants and how they work",
        ],
    ),
];
