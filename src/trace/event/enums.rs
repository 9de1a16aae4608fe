//! Enumerations that payloads record as fixed words.

use serde::{Deserialize, Serialize};

/// Declares an enumeration whose variants are recorded as words.
macro_rules! words {
    ($(
        $(#[$doc:meta])*
        $name:ident { $( $(#[$word_doc:meta])* $word:ident = $text:literal ),+ $(,)? }
    )+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $( $(#[$word_doc])* #[serde(rename = $text)] $word, )+
        }

        impl $name {
            /// All variants.
            pub const ALL: &'static [Self] = &[$(Self::$word),+];

            /// Word used in records.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$word => $text, )+ }
            }
        }
    )+};
}

words! {
    /// Final status of a session.
    FinalStatus {
        /// The session finished its work.
        Completed = "completed",
        /// An error ended it.
        Error = "error",
        /// A time limit ended it.
        Timeout = "timeout",
        /// An operator or the agent stopped it.
        Cancelled = "cancelled",
    }

    /// Origin of a context request.
    RequestType {
        /// The agent.
        Explicit = "explicit",
        /// A checkpoint.
        Checkpoint = "checkpoint",
        /// Keywords in the input.
        Keyword = "keyword",
    }

    /// Reason for an injection of context.
    InjectTrigger {
        /// The Atlas injects it into every session.
        Always = "always",
        /// A condition matched.
        OnMatch = "on_match",
        /// The agent requested it.
        OnDemand = "on_demand",
        /// An action is risky.
        RiskBased = "risk_based",
    }

    /// Source of the justification of an approval.
    JustificationSource {
        /// A reason that the operator typed.
        Operator = "operator",
        /// A reason that the agent wrote, at a gate that the agent answers.
        Agent = "agent",
        /// The answers to the gate, put into one line because no reason was typed.
        Answers = "answers",
    }

    /// Use that an agent made of a context.
    UsageOutcome {
        /// The agent followed it.
        Applied = "applied",
        /// The agent ignored it.
        Ignored = "ignored",
        /// The agent followed a part of it.
        Partial = "partial",
    }

    /// Risk tier: the damage an action can do.
    RiskTierInfo {
        /// Read-only.
        Low = "low",
        /// Changes that can be reverted.
        Medium = "medium",
        /// Destructive, or touches production.
        High = "high",
        /// Can take a system down.
        Critical = "critical",
    }

    /// Result of a policy evaluation.
    PolicyOutcome {
        /// The action may run.
        Allow = "allow",
        /// The action must not run.
        Deny = "deny",
        /// The action runs after an operator approves it.
        RequireApproval = "require_approval",
    }

    /// Recommended handling of a risk.
    Recommendation {
        /// The action can proceed.
        Proceed = "proceed",
        /// An operator should verify it.
        Verify = "verify",
        /// The action should not run.
        Block = "block",
    }

    /// Effect of a checkpoint.
    ActionTaken {
        /// The agent continued.
        Continue = "continue",
        /// The agent was blocked.
        Block = "block",
        /// The agent's input was changed.
        Modify = "modify",
    }

    /// Result of answer validation.
    Validity {
        /// The answers follow their rules.
        Valid = "valid",
        /// The answers break a rule.
        Invalid = "invalid",
    }

    /// Subject of an operator's acknowledgement.
    Acknowledged {
        /// The record is broken or cannot be read.
        BrokenChain = "broken_chain",
        /// A denial was overridden.
        Override = "override",
    }

    /// Change of a claim.
    ClaimWord {
        /// An operator claimed an unclaimed request.
        Taken = "taken",
        /// The claim was released.
        Released = "released",
        /// An operator took the claim over from another operator.
        TakenOver = "taken_over",
    }

    /// Origin of input.
    InputSource {
        /// A person.
        User = "user",
        /// The system.
        System = "system",
        /// Another agent.
        OtherAgent = "other_agent",
    }

    /// Kind of output that an agent produced.
    OutputType {
        /// Plain text.
        Text = "text",
        /// A request to act.
        Action = "action",
        /// Structured data.
        Structured = "structured",
    }
}
