//! Colour by meaning. Views name a meaning; only this file names colours.
//!
//! The sixteen ANSI colours are used, so that the terminal's own palette decides how they look.
//! No meaning rests on colour alone: each also has a word, a mark, bold or reverse, so that what is
//! left without colour still says the same.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use ratatui::widgets::{Block, Padding};

use crate::atlas::document::RiskTier;
use crate::engine::command::Outcome;

/// How the console looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Look {
    /// Which characters borders and marks are made of.
    pub glyphs: Glyphs,
    /// Whether colours are used.
    pub colour: Colour,
    /// What they are painted on.
    pub ground: Ground,
}

/// What colours are painted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ground {
    /// Something dark.
    #[default]
    Dark,
    /// Something light, on which yellow and cyan cannot be read.
    Light,
}

/// Colours for which background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Theme {
    /// What the terminal says about itself.
    #[default]
    Auto,
    /// A dark one.
    Dark,
    /// A light one.
    Light,
}

impl Theme {
    /// The background: what was asked for, what the terminal answered, or what `COLORFGBG` says.
    pub(crate) fn ground(self, answered: Option<Ground>, colorfgbg: Option<&str>) -> Ground {
        match self {
            Self::Dark => Ground::Dark,
            Self::Light => Ground::Light,
            Self::Auto => answered
                .or_else(|| of_colorfgbg(colorfgbg?))
                .unwrap_or_default(),
        }
    }
}

/// The background that `COLORFGBG` tells: `15;0`, `0;default;15`.
fn of_colorfgbg(value: &str) -> Option<Ground> {
    let background: u8 = value.rsplit(';').next()?.parse().ok()?;
    match background {
        7 | 15 => Some(Ground::Light),
        0..=15 => Some(Ground::Dark),
        _ => None,
    }
}

/// Which characters borders and marks are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Glyphs {
    /// Rounded box-drawing characters.
    #[default]
    Rounded,
    /// Only ASCII.
    Ascii,
}

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Colour {
    /// The terminal's sixteen colours.
    #[default]
    Ansi,
    /// None: bold and reverse remain. What `NO_COLOR` asks for.
    Plain,
}

/// What a piece of the screen means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Ordinary text.
    Text,
    /// Text that matters most on its line.
    Strong,
    /// Text that may be overlooked.
    Dim,
    /// The name of a panel.
    Title,
    /// The name of a value.
    Label,
    /// An edge of a panel.
    Border,
    /// An edge of the panel that has the keys.
    BorderFocused,
    /// The chosen row of the panel that has the keys.
    Selected,
    /// The chosen row of another panel.
    SelectedIdle,
    /// A key that can be pressed.
    Key,
    /// What a key does.
    Hint,
    /// The screen that is shown.
    TabActive,
    /// Critical risk.
    Critical,
    /// High risk, or little time.
    High,
    /// Medium risk.
    Medium,
    /// Low risk.
    Low,
    /// Passed, verified, kept.
    Passed,
    /// Denied, broken.
    Denied,
    /// Expired, withdrawn, voided: nobody decided.
    Lapsed,
    /// Waits for a person.
    Waiting,
    /// Kept as it is until something thaws it.
    Frozen,
    /// Something to look at before going on.
    Warning,
    /// Something went wrong.
    Error,
    /// A line over the whole width that must not be overlooked.
    Banner,
    /// A button that can be reached.
    Button,
    /// The button that Enter presses.
    ButtonFocused,
    /// A button that cannot be pressed.
    ButtonDisabled,
    /// The focused button, which cannot be pressed.
    ButtonBarred,
}

impl Look {
    /// The style of a meaning.
    pub(crate) fn style(self, meaning: Meaning) -> Style {
        match self.colour {
            Colour::Ansi => match self.ground {
                Ground::Dark => coloured(meaning),
                Ground::Light => on_light(meaning),
            },
            Colour::Plain => plain(meaning),
        }
    }

    /// A panel.
    pub(crate) fn panel(self, focus: Focus) -> Block<'static> {
        let meaning = match focus {
            Focus::Here => Meaning::BorderFocused,
            Focus::Elsewhere => Meaning::Border,
        };
        Block::bordered()
            .border_set(self.border())
            .border_style(self.style(meaning))
            .padding(Padding::horizontal(1))
    }

    /// The characters a border is made of.
    pub(crate) fn border(self) -> border::Set<'static> {
        match self.glyphs {
            Glyphs::Rounded => border::ROUNDED,
            Glyphs::Ascii => border::Set {
                top_left: "+",
                top_right: "+",
                bottom_left: "+",
                bottom_right: "+",
                vertical_left: "|",
                vertical_right: "|",
                horizontal_top: "-",
                horizontal_bottom: "-",
            },
        }
    }

    /// One of two spellings of a mark.
    pub(crate) fn mark(self, mark: Mark) -> &'static str {
        match (self.glyphs, mark) {
            (Glyphs::Rounded, Mark::Ellipsis) => "…",
            (Glyphs::Ascii, Mark::Ellipsis) => "~",
            (Glyphs::Rounded, Mark::Arrow) => "→",
            (Glyphs::Ascii, Mark::Arrow) => "->",
            (Glyphs::Rounded, Mark::Separator) => "│",
            (Glyphs::Ascii, Mark::Separator) => "|",
            (Glyphs::Rounded, Mark::Continued) => "↳ ",
            (Glyphs::Ascii, Mark::Continued) => "> ",
            (Glyphs::Rounded, Mark::Kept) => "✓",
            (Glyphs::Ascii, Mark::Kept) => "ok",
            (Glyphs::Rounded, Mark::Broken) => "✗",
            (Glyphs::Ascii, Mark::Broken) => "no",
            (Glyphs::Rounded, Mark::Rule) => "─",
            (Glyphs::Ascii, Mark::Rule | Mark::Bullet) => "-",
            (Glyphs::Rounded, Mark::Chosen) => "(•)",
            (Glyphs::Ascii, Mark::Chosen) => "(*)",
            (Glyphs::Rounded | Glyphs::Ascii, Mark::Unchosen) => "( )",
            (Glyphs::Rounded, Mark::Bullet) => "·",
        }
    }
}

/// Whether a panel has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Focus {
    /// It has.
    Here,
    /// Another one has.
    Elsewhere,
}

impl From<bool> for Focus {
    fn from(here: bool) -> Self {
        if here { Self::Here } else { Self::Elsewhere }
    }
}

/// A mark that has a plain spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Ellipsis,
    Arrow,
    Separator,
    Continued,
    Kept,
    Broken,
    Rule,
    Chosen,
    Unchosen,
    Bullet,
}

/// The meaning of a risk tier.
pub(crate) fn of_tier(tier: RiskTier) -> Meaning {
    match tier {
        RiskTier::Low => Meaning::Low,
        RiskTier::Medium => Meaning::Medium,
        RiskTier::High => Meaning::High,
        RiskTier::Critical => Meaning::Critical,
    }
}

/// The meaning of how a held request ended.
pub(crate) fn of_outcome(outcome: Outcome) -> Meaning {
    match outcome {
        Outcome::Passed => Meaning::Passed,
        Outcome::Denied => Meaning::Denied,
        Outcome::Expired | Outcome::Withdrawn | Outcome::Voided => Meaning::Lapsed,
    }
}

fn coloured(meaning: Meaning) -> Style {
    let plain = plain(meaning);
    match meaning {
        Meaning::Text
        | Meaning::Strong
        | Meaning::Low
        | Meaning::Selected
        | Meaning::SelectedIdle
        | Meaning::ButtonFocused
        | Meaning::Button => plain,
        Meaning::Dim
        | Meaning::Border
        | Meaning::Hint
        | Meaning::ButtonDisabled
        | Meaning::ButtonBarred => plain.fg(Color::DarkGray),
        Meaning::Title | Meaning::TabActive | Meaning::Key | Meaning::Medium | Meaning::Frozen => {
            plain.fg(Color::Cyan)
        }
        // Not bold, because what stands in a border would become bold too.
        Meaning::BorderFocused => Style::new().fg(Color::Cyan),
        Meaning::Label => plain.fg(Color::LightBlue),
        Meaning::Critical | Meaning::Denied | Meaning::Error | Meaning::Banner => {
            plain.fg(Color::Red)
        }
        Meaning::High | Meaning::Warning | Meaning::Lapsed => plain.fg(Color::Yellow),
        Meaning::Passed => plain.fg(Color::Green),
        Meaning::Waiting => plain.fg(Color::Magenta),
    }
}

/// The same on something light. Yellow, cyan and light blue cannot be read there.
fn on_light(meaning: Meaning) -> Style {
    let style = coloured(meaning);
    match style.fg {
        Some(Color::Cyan | Color::LightBlue) => style.fg(Color::Blue),
        // What waits is told from what warns by its words; both want to be looked at.
        Some(Color::Yellow) => style.fg(Color::Magenta),
        Some(_) | None => style,
    }
}

fn plain(meaning: Meaning) -> Style {
    let style = Style::new();
    match meaning {
        Meaning::Text
        | Meaning::Dim
        | Meaning::Border
        | Meaning::Hint
        | Meaning::Low
        | Meaning::Medium
        | Meaning::Lapsed
        | Meaning::Button
        | Meaning::ButtonDisabled
        | Meaning::Label
        | Meaning::Passed => style,
        Meaning::Strong
        | Meaning::Title
        | Meaning::BorderFocused
        | Meaning::SelectedIdle
        | Meaning::Key
        | Meaning::Critical
        | Meaning::High
        | Meaning::Denied
        | Meaning::Waiting
        | Meaning::Warning
        | Meaning::Error => style.add_modifier(Modifier::BOLD),
        Meaning::Selected
        | Meaning::TabActive
        | Meaning::Frozen
        | Meaning::ButtonFocused
        | Meaning::Banner => style.add_modifier(Modifier::BOLD | Modifier::REVERSED),
        Meaning::ButtonBarred => style.add_modifier(Modifier::REVERSED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_is_what_was_asked_for_then_what_was_answered_then_what_is_set() {
        let light = Some(Ground::Light);
        assert_eq!(Theme::Dark.ground(light, Some("0;15")), Ground::Dark);
        assert_eq!(Theme::Light.ground(None, None), Ground::Light);
        assert_eq!(Theme::Auto.ground(light, Some("15;0")), Ground::Light);
        assert_eq!(
            Theme::Auto.ground(None, Some("0;default;15")),
            Ground::Light
        );
        assert_eq!(Theme::Auto.ground(None, Some("15;0")), Ground::Dark);
        assert_eq!(Theme::Auto.ground(None, Some("x")), Ground::Dark);
    }

    #[test]
    fn nothing_pale_is_painted_on_something_light() {
        let look = Look {
            ground: Ground::Light,
            ..Look::default()
        };
        let pale = [Color::Yellow, Color::Cyan, Color::LightBlue, Color::White];
        for meaning in [
            Meaning::Title,
            Meaning::Label,
            Meaning::Key,
            Meaning::High,
            Meaning::Warning,
            Meaning::Lapsed,
            Meaning::Medium,
            Meaning::Waiting,
            Meaning::Frozen,
            Meaning::BorderFocused,
        ] {
            let colour = look.style(meaning).fg;
            assert!(!colour.is_some_and(|it| pale.contains(&it)), "{meaning:?}");
        }
    }
}
