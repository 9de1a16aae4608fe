//! Time bars, and durations in at most seven cells.

use crate::console::theme::{Appearance, Glyphs};
use crate::trace::outline::EventMarks;

/// Formats a duration.
pub(super) fn duration_text(us: i64) -> String {
    let (ms, seconds) = (us / 1000, us / 1_000_000);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if us < 1000 {
        "<1ms".to_owned()
    } else if ms < 1000 {
        format!("{ms}ms")
    } else if seconds < 100 {
        format!("{seconds}.{}s", ms % 1000 / 100)
    } else if minutes < 100 {
        format!("{minutes}m{:02}s", seconds % 60)
    } else if hours < 48 {
        format!("{hours}h{:02}m", minutes % 60)
    } else {
        format!("{days}d{:02}h", hours % 24)
    }
}

/// Time axis of the visible rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeAxis {
    pub(super) start_us: i64,
    pub(super) end_us: i64,
    pub(super) cells: usize,
}

impl TimeAxis {
    fn cell(self, at_us: i64) -> usize {
        let full_event = u64::try_from(self.end_us.saturating_sub(self.start_us)).unwrap_or(0);
        let part = at_us.clamp(self.start_us, self.end_us) - self.start_us;
        let part = u64::try_from(part).unwrap_or(0);
        let last = self.cells.saturating_sub(1);
        let cell = u128::from(part) * (last as u128) / u128::from(full_event.max(1));
        usize::try_from(cell).unwrap_or(last).min(last)
    }

    /// Returns the bar of an event that starts at `start_us` and takes `lasts_us`, in exactly the width of
    /// the axis.
    pub(super) fn bar(
        self,
        start_us: i64,
        lasts_us: i64,
        marks: EventMarks,
        appearance: Appearance,
    ) -> String {
        let end_us = start_us.saturating_add(lasts_us);
        let (first, last) = (self.cell(start_us), self.cell(end_us));
        let goes_on = end_us > self.end_us;
        let mut bar = " ".repeat(first);
        let length = last - first + 1;
        match (appearance.glyphs, length) {
            // An event that continues beyond the last cell is not a moment, although only one cell is left
            // for it.
            (Glyphs::Rounded, 1) if goes_on => bar.push('▸'),
            (Glyphs::Ascii, 1) if goes_on => bar.push('>'),
            (_, 1) => bar.push_str(moment_mark(marks, appearance)),
            (Glyphs::Rounded, _) => {
                bar.push('╺');
                bar.push_str(&"━".repeat(length - 2));
                bar.push(if goes_on { '▸' } else { '╸' });
            }
            (Glyphs::Ascii, _) => {
                bar.push('[');
                bar.push_str(&"=".repeat(length - 2));
                bar.push(if goes_on { '>' } else { ']' });
            }
        }
        bar.push_str(&" ".repeat(self.cells.saturating_sub(last + 1)));
        bar
    }
}

/// Returns the mark of a moment on the axis.
fn moment_mark(marks: EventMarks, appearance: Appearance) -> &'static str {
    let denied = marks
        .has_any(EventMarks::DENY | EventMarks::LAPSED | EventMarks::ERROR | EventMarks::MISSING);
    match (denied, marks.has_any(EventMarks::SIGNED), appearance.glyphs) {
        (true, _, _) => "!",
        (false, true, _) => "*",
        (false, false, Glyphs::Rounded) => "╻",
        (false, false, Glyphs::Ascii) => "|",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_in_at_most_seven_cells() {
        let durations = [
            400,
            4_000,
            12_100_000,
            130_000_000,
            7_500_000_000,
            187_200_000_000,
        ];
        let durations = durations.map(duration_text);
        assert_eq!(
            durations,
            ["<1ms", "4ms", "12.1s", "2m10s", "2h05m", "2d04h"]
        );
        assert!(durations.iter().all(|text| text.len() <= 7));
    }

    #[test]
    fn a_time_bar_has_its_share_of_the_axis_and_never_exceeds_it() {
        let axis = TimeAxis {
            start_us: 0,
            end_us: 9,
            cells: 10,
        };
        let appearance = Appearance {
            glyphs: Glyphs::Ascii,
            ..Appearance::default()
        };
        let bar = |start, lasts| axis.bar(start, lasts, EventMarks::NONE, appearance);
        assert_eq!(bar(0, 9), "[========]");
        assert_eq!(bar(2, 3), "  [==]    ");
        assert_eq!(bar(4, 0), "    |     ");
        assert_eq!(bar(7, 90), "       [=>");
        assert_eq!(bar(-5, 1), "|         ");
        assert_eq!(bar(9, 90), "         >", "it goes on, and is no moment");
        assert_eq!(axis.bar(9, 0, EventMarks::DENY, appearance), "         !");
        let none = TimeAxis { end_us: 0, ..axis };
        assert_eq!(none.bar(0, 0, EventMarks::NONE, appearance), "|         ");
    }
}
