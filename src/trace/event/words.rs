//! The words that payloads are made of, where there are only so many.

use serde::{Deserialize, Serialize};

/// Declares an enumeration whose members are written as words.
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
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$word),+];

            /// The word in records.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$word => $text, )+ }
            }
        }
    )+};
}

words! {
    /// How a session ended.
    FinalStatus {
        /// It did what it wanted.
        Completed = "completed",
        /// Something failed.
        Error = "error",
        /// It took too long.
        Timeout = "timeout",
        /// Somebody stopped it.
        Cancelled = "cancelled",
    }

    /// Who asks for context.
    RequestType {
        /// The agent.
        Explicit = "explicit",
        /// A checkpoint.
        Checkpoint = "checkpoint",
        /// Keywords of input.
        Keyword = "keyword",
    }

    /// What calls for context.
    InjectTrigger {
        /// Every session has it.
        Always = "always",
        /// Something matches.
        OnMatch = "on_match",
        /// Somebody asks for it.
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

    /// What an agent made of context.
    UsageOutcome {
        /// It went by it.
        Applied = "applied",
        /// It did not.
        Ignored = "ignored",
        /// It went by some of it.
        Partial = "partial",
    }

    /// How much damage an action can do.
    Tier {
        /// It only reads.
        Low = "low",
        /// It changes something that can be changed back.
        Medium = "medium",
        /// It destroys, or touches production.
        High = "high",
        /// It can take a system down.
        Critical = "critical",
    }

    /// What policies say.
    PolicyVerdict {
        /// It may run.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
        /// It runs when an operator approves.
        RequireApproval = "require_approval",
    }

    /// What should become of something risky.
    Recommendation {
        /// It can go ahead.
        Proceed = "proceed",
        /// A person should look at it.
        Verify = "verify",
        /// It should not run.
        Block = "block",
    }

    /// What a checkpoint did.
    ActionTaken {
        /// It let the agent go on.
        Continue = "continue",
        /// It did not.
        Block = "block",
        /// It changed what the agent was given.
        Modify = "modify",
    }

    /// Whether answers keep their rules.
    Validity {
        /// They do.
        Valid = "valid",
        /// They do not.
        Invalid = "invalid",
    }

    /// What an operator says they know of.
    Acknowledged {
        /// That the record does not hold, or cannot be read.
        BrokenChain = "broken_chain",
        /// That a denial was overruled.
        Override = "override",
    }

    /// What became of a claim.
    ClaimWord {
        /// Somebody looks after it who did not before.
        Taken = "taken",
        /// Nobody does any more.
        Released = "released",
        /// Somebody does in the place of another.
        TakenOver = "taken_over",
    }

    /// Where input came from.
    InputSource {
        /// A person.
        User = "user",
        /// The system.
        System = "system",
        /// Another agent.
        OtherAgent = "other_agent",
    }

    /// What kind of output an agent produced.
    OutputType {
        /// Words.
        Text = "text",
        /// Something to be done.
        Action = "action",
        /// Data.
        Structured = "structured",
    }
}
