//! `cra atlas types`: the checkpoint types and risk tiers of the format.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::atlas::reference::{CHECKPOINT_TYPES, TIERS};
use crate::base::text::one_line;
use crate::cli::args::AtlasTypesArgs;
use crate::cli::error::{Failure, verdict};
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::runtime::extension::CustomType;

/// Prints every checkpoint type, those of extensions included, and every risk tier.
pub(in crate::cli) fn types(settings: &Settings, types: &AtlasTypesArgs) -> Result<u8, Failure> {
    let custom = settings.extensions()?.custom_types();
    let mut out = io::stdout().lock();
    let written = if types.json {
        let all = json!({
            "checkpoint_types": CHECKPOINT_TYPES,
            "custom_types": custom.iter().map(to_json).collect::<Vec<_>>(),
            "risk_tiers": TIERS,
        });
        serde_json::to_writer_pretty(&mut out, &all)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        table(&mut out, &custom)
    };
    verdict(exit::OK, written)
}

fn to_json(custom: &CustomType) -> Value {
    json!({
        "trigger_id": custom.trigger_id,
        "fires": custom.description,
        "priority": custom.priority,
    })
}

fn table(out: &mut impl Write, custom: &[CustomType]) -> io::Result<()> {
    writeln!(
        out,
        "{:<18} {:>8}  {:<46} PURPOSE",
        "TRIGGER", "PRIORITY", "FIRES WHEN"
    )?;
    for known in CHECKPOINT_TYPES {
        let (trigger, priority) = (known.trigger, known.priority);
        writeln!(
            out,
            "{trigger:<18} {priority:>8}  {:<46} {}",
            known.fires, known.purpose
        )?;
    }
    if !custom.is_empty() {
        writeln!(
            out,
            "\n{:<18} {:>8}  FIRES WHEN  (write `type: custom` with this `trigger_id`)",
            "TRIGGER_ID", "PRIORITY"
        )?;
    }
    for own in custom {
        let (name, priority) = (&own.trigger_id, own.priority);
        let fires = one_line(&own.description);
        writeln!(out, "{name:<18} {priority:>8}  {fires}")?;
    }
    writeln!(out, "\n{:<18} {:<46} EXAMPLES", "RISK TIER", "MEANING")?;
    for known in TIERS {
        let (tier, examples) = (known.tier, known.examples.join(", "));
        writeln!(out, "{tier:<18} {:<46} {examples}", known.meaning)?;
    }
    Ok(())
}
