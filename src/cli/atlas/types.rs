//! `cra atlas types`: the words of the format, looked up while writing.

use std::io::{self, Write};

use serde_json::json;

use crate::atlas::reference::{CHECKPOINT_TYPES, TIERS};
use crate::cli::args::Types;
use crate::cli::error::{Failure, verdict};
use crate::cli::exit;

/// Prints every checkpoint type and every tier of risk.
pub(in crate::cli) fn types(types: &Types) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    let written = if types.json {
        let all = json!({ "checkpoint_types": CHECKPOINT_TYPES, "risk_tiers": TIERS });
        serde_json::to_writer_pretty(&mut out, &all)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        table(&mut out)
    };
    verdict(exit::OK, written)
}

fn table(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<18} {:>8}  {:<46} FOR",
        "TRIGGER", "PRIORITY", "FIRES WHEN"
    )?;
    for it in CHECKPOINT_TYPES {
        let (trigger, priority) = (it.trigger, it.priority);
        writeln!(
            out,
            "{trigger:<18} {priority:>8}  {:<46} {}",
            it.fires, it.purpose
        )?;
    }
    writeln!(out, "\n{:<18} {:<46} LIKE", "RISK TIER", "MEANS")?;
    for it in TIERS {
        let (tier, examples) = (it.tier, it.examples.join(", "));
        writeln!(out, "{tier:<18} {:<46} {examples}", it.meaning)?;
    }
    Ok(())
}
