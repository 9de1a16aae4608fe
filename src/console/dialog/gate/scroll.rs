//! Scroll position of a sheet that may be longer than its area, and whether all of it was on screen.

use super::form::MoveDirection;

/// Scroll position of a sheet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScrollState {
    /// First row on screen.
    pub(crate) top: usize,
    /// Size at the last paint.
    place: SheetSize,
    /// Number of rows that were on screen, counted from the first.
    seen: usize,
    /// True once all rows were on screen.
    whole: bool,
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
    pub(crate) fn most(self) -> usize {
        self.rows.saturating_sub(self.room)
    }
}

impl ScrollState {
    /// Notes that the sheet was painted at this size: its visible rows count as seen.
    pub(crate) fn painted(&mut self, place: SheetSize) {
        if self.place.cells != place.cells {
            // With another width the rows break differently, so none counts as seen.
            self.seen = 0;
        }
        self.place = place;
        self.top = self.top.min(place.most());
        // Rows that were jumped over were not seen.
        if self.top <= self.seen {
            self.seen = self.seen.max(self.top + place.room);
        }
        self.whole = self.whole || self.seen >= place.rows;
    }

    /// Returns true if all rows were on screen.
    pub(crate) fn is_whole(self) -> bool {
        self.whole
    }

    /// Returns true if no rows are below the painted ones.
    pub(crate) fn is_at_end(self) -> bool {
        self.place.rows > 0 && self.top >= self.place.most()
    }

    /// Scrolls by a number of rows; negative means up.
    pub(crate) fn by(&mut self, rows: isize) {
        let to = self.top.saturating_add_signed(rows);
        self.top = to.min(self.place.most());
    }

    /// Scrolls by a page less one row, so that the reader keeps their place.
    pub(crate) fn turn(&mut self, towards: MoveDirection) {
        let page = self.place.room.saturating_sub(1).max(1);
        let page = isize::try_from(page).unwrap_or(1);
        self.by(match towards {
            MoveDirection::Next => page,
            MoveDirection::Previous => -page,
        });
    }
}

/// Text that says whether there are rows above or below.
pub(crate) fn beyond(top: usize, most: usize) -> &'static str {
    match (top > 0, top < most) {
        (true, true) => "PgUp, PgDn: more above and below",
        (true, false) => "PgUp: more above",
        (false, true) => "PgDn: more below",
        (false, false) => "",
    }
}
