//! A sheet that may be longer than its place: how far it is scrolled, and whether all of it was on screen.

use super::form::Towards;

/// How far a sheet is scrolled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scroll {
    /// The first row on screen.
    pub(crate) top: usize,
    /// Where it was last painted.
    place: Sheet,
    /// Rows that were on screen, from the first on.
    seen: usize,
    /// All of them were.
    whole: bool,
}

/// A sheet as it was painted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sheet {
    /// All of its rows.
    pub(crate) rows: usize,
    /// Rows that can be on screen.
    pub(crate) room: usize,
    /// Cells of a row.
    pub(crate) cells: usize,
}

impl Sheet {
    /// The last row that can be the first on screen.
    pub(crate) fn most(self) -> usize {
        self.rows.saturating_sub(self.room)
    }
}

impl Scroll {
    /// It was painted there: these rows were on screen.
    pub(crate) fn painted(&mut self, place: Sheet) {
        if self.place.cells != place.cells {
            // Broken elsewhere, they are other rows.
            self.seen = 0;
        }
        self.place = place;
        self.top = self.top.min(place.most());
        // What was jumped over was not seen.
        if self.top <= self.seen {
            self.seen = self.seen.max(self.top + place.room);
        }
        self.whole = self.whole || self.seen >= place.rows;
    }

    /// Whether all of it was on screen.
    pub(crate) fn is_whole(self) -> bool {
        self.whole
    }

    /// Whether nothing lies below what was painted.
    pub(crate) fn is_at_end(self) -> bool {
        self.place.rows > 0 && self.top >= self.place.most()
    }

    /// So many rows down, or up.
    pub(crate) fn by(&mut self, rows: isize) {
        let to = self.top.saturating_add_signed(rows);
        self.top = to.min(self.place.most());
    }

    /// One row less than a page, so that the eye keeps its place.
    pub(crate) fn turn(&mut self, towards: Towards) {
        let page = self.place.room.saturating_sub(1).max(1);
        let page = isize::try_from(page).unwrap_or(1);
        self.by(match towards {
            Towards::Next => page,
            Towards::Previous => -page,
        });
    }
}

/// What lies out of sight, in words.
pub(crate) fn beyond(top: usize, most: usize) -> &'static str {
    match (top > 0, top < most) {
        (true, true) => "PgUp, PgDn: more above and below",
        (true, false) => "PgUp: more above",
        (false, true) => "PgDn: more below",
        (false, false) => "",
    }
}
