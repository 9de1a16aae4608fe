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
        "critical unresolved question preventing forward progress",
    ),
    (
        "checkpoint_type",
        "nature of checkpoint (cognitive, transition, completion)",
    ),
    (
        "completion_percentage",
        "how far through design/conversation process",
    ),
    (
        "confidence",
        "level of certainty about decision/approach (high/medium/low)",
    ),
    (
        "critical_question",
        "the primary unresolved issue requiring attention",
    ),
    (
        "deferred_items",
        "elements intentionally postponed until conditions met",
    ),
    (
        "intellectual_journey",
        "path of exploration showing how conversation evolved",
    ),
    ("key_pivots", "major direction changes or insight moments"),
    (
        "momentum",
        "current trajectory (exploratory, converging, implementing)",
    ),
    (
        "phase",
        "major stage of work (foundation, design, implementation, etc.)",
    ),
    (
        "readiness_for_implementation",
        "boolean indicating if design is solid enough to build",
    ),
    ("stage", "specific point within a phase (early, mid, late)"),
];

/// Reasons to load artifacts.
pub const LOAD_ARTIFACTS_FOR: [&str; 4] = [
    "the user asks a specific question about its content",
    "detailed technical information is needed",
    "previous work is reviewed or revised",
    "a specific component is examined in depth",
];

/// Reasons not to load artifacts.
pub const NEVER_LOAD_ARTIFACTS_FOR: [&str; 3] = [
    "during the initial reconstruction",
    "when the conversation continues naturally",
    "when the high-level context is sufficient",
];

/// Quality goals of a reconstruction for the user, the agent and the conversation.
pub const QUALITY: [(&str, [&str; 4]); 3] = [
    (
        "user",
        [
            "does not need to explain the context again",
            "can continue the conversation naturally",
            "sees that the agent knows what is resolved and what is not",
            "finds the same communication style as before",
        ],
    ),
    (
        "agent",
        [
            "knows previous decisions and their rationale",
            "suggests nothing that is deferred or premature",
            "states accurate confidence levels",
            "can explain why the conversation is at this point",
        ],
    ),
    (
        "conversation",
        [
            "continues where it left off",
            "keeps its momentum (exploratory or decisive)",
            "continues with an appropriate next action",
            "respects the goals and the approach of the user",
        ],
    ),
];
