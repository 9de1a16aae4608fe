//! Scroll position of a sheet that may be longer than its area, and whether all of it was on screen.

use super::form::MoveDirection;

/// Scroll position of a sheet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScrollState {
    /// First row on screen.
    pub(crate) top: usize,
    /// Size at the last paint.
    size: SheetSize,
    /// Number of rows that were on screen, counted from the first.
    seen: usize,
    /// True once all rows were on screen.
    fully_seen: bool,
}

/// Size of a painted sheet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SheetSize {
    /// Number of all rows.
    pub(crate) rows: usize,
    /// Number of rows that fit on screen.
    pub(crate) room: usize,
    /// Cells per row.
    pub(crate) cells: usize,
}

impl SheetSize {
    /// Returns the last possible value of the first row on screen.
    pub(crate) fn max_scroll(self) -> usize {
        self.rows.saturating_sub(self.room)
    }
}

impl ScrollState {
    /// Notes that the sheet was painted at this size: its visible rows count as seen.
    pub(crate) fn mark_painted(&mut self, place: SheetSize) {
        if self.size.cells != place.cells {
            // With another width the rows break differently, so none counts as seen.
            self.seen = 0;
        }
        self.size = place;
        self.top = self.top.min(place.max_scroll());
        // Rows that were jumped over were not seen.
        if self.top <= self.seen {
            self.seen = self.seen.max(self.top + place.room);
        }
        self.fully_seen = self.fully_seen || self.seen >= place.rows;
    }

    /// Returns true if all rows were on screen.
    pub(crate) fn is_fully_seen(self) -> bool {
        self.fully_seen
    }

    /// Returns true if no rows are below the painted ones.
    pub(crate) fn is_at_end(self) -> bool {
        self.size.rows > 0 && self.top >= self.size.max_scroll()
    }

    /// Scrolls by a number of rows; negative means up.
    pub(crate) fn scroll_by(&mut self, rows: isize) {
        let to = self.top.saturating_add_signed(rows);
        self.top = to.min(self.size.max_scroll());
    }

    /// Scrolls by a page less one row, so that the reader keeps their place.
    pub(crate) fn scroll_page(&mut self, towards: MoveDirection) {
        let page = self.size.room.saturating_sub(1).max(1);
        let page = isize::try_from(page).unwrap_or(1);
        self.scroll_by(match towards {
            MoveDirection::Next => page,
            MoveDirection::Previous => -page,
        });
    }
}

/// Text that says whether there are rows above or below.
pub(crate) fn hidden_rows_hint(top: usize, most: usize) -> &'static str {
    match (top > 0, top < most) {
        (true, true) => "PgUp, PgDn: more above and below",
        (true, false) => "PgUp: more above",
        (false, true) => "PgDn: more below",
        (false, false) => "",
    }
}
