//! Display of conditions as readable text.

use std::fmt;

use super::{Condition, Leaf};

/// `params.amount gt 1000 and not (session.agent eq "bot")`
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(parts) => write_joined(f, parts, " and "),
            Self::Any(parts) => write_joined(f, parts, " or "),
            Self::Not(part) => write!(f, "not ({part})"),
            Self::Leaf(leaf) => write!(f, "{leaf}"),
        }
    }
}

fn write_joined(f: &mut fmt::Formatter<'_>, parts: &[Condition], word: &str) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(word)?;
        }
        match part {
            Condition::All(_) | Condition::Any(_) if parts.len() > 1 => write!(f, "({part})")?,
            Condition::All(_) | Condition::Any(_) | Condition::Not(_) | Condition::Leaf(_) => {
                write!(f, "{part}")?;
            }
        }
    }
    Ok(())
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, test) in self.tests.iter().enumerate() {
            let and = if at > 0 { " and " } else { "" };
            write!(f, "{and}{} {test}", self.written)?;
        }
        Ok(())
    }
}
