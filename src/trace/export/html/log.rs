//! Governance log section: changes to the record and to the governance of agents, with their actors.

use std::fmt::{self, Write};

use super::text::{EscapedText, format_time};
use crate::trace::details::Details;
use crate::trace::event::Event;
use crate::trace::summary::sentence;

/// Writes the entries; nothing if there are none.
pub(super) fn write(out: &mut impl Write, entries: &[Event]) -> fmt::Result {
    if entries.is_empty() {
        return Ok(());
    }
    out.write_str(
        "<section id=\"log\"><h2>Governance log</h2>\n<p>Atlases, imports, prunes, legal holds, edits of \
         mementos, alarms, keys and operators. Names of operators are claimed, not proven.</p>\n<table><thead><tr><th>Entry</th>\
         <th>Time</th><th>By</th><th>What</th></tr></thead><tbody>\n",
    )?;
    for entry in entries {
        let by = Details::of(entry).text("by").unwrap_or("not recorded");
        writeln!(
            out,
            "<tr><td>{}</td><td class=\"when\">{}</td><td>{}</td><td><code>{}</code> {}</td></tr>",
            entry.sequence,
            format_time(entry.timestamp),
            EscapedText(by),
            EscapedText(&entry.event_type),
            EscapedText(&sentence(entry)),
        )?;
    }
    out.write_str("</tbody></table></section>\n")
}
