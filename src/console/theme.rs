//! Colour by meaning. Views name a meaning; only this file names colours.
//!
//! Only the sixteen ANSI colours are used, so that the terminal's own palette decides how they look.
//! Colour is never the only sign: each meaning also has a word, a mark, bold or reverse, so that a
//! terminal without colour shows the same information.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use ratatui::widgets::{Block, Padding};

use crate::atlas::document::RiskTier;
use crate::engine::command::HeldOutcome;

/// Appearance of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Appearance {
    /// Characters for borders and marks.
    pub glyphs: Glyphs,
    /// Use of colours.
    pub colour: ColourMode,
    /// Background of the terminal.
    pub background: Background,
}

/// Background of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Background {
    /// Dark background.
    #[default]
    Dark,
    /// Light background, on which yellow and cyan cannot be read.
    Light,
}

/// Background that the colours are chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Theme {
    /// Detected from the terminal.
    #[default]
    Auto,
    /// Dark background.
    Dark,
    /// Light background.
    Light,
}

impl Theme {
    /// Returns the background: the setting, the terminal's response, or the value of `COLORFGBG`.
    pub(crate) fn background(
        self,
        answered: Option<Background>,
        colorfgbg: Option<&str>,
    ) -> Background {
        match self {
            Self::Dark => Background::Dark,
            Self::Light => Background::Light,
            Self::Auto => answered
                .or_else(|| parse_colorfgbg(colorfgbg?))
                .unwrap_or_default(),
        }
    }
}

/// Parses the background from `COLORFGBG`, such as `15;0` or `0;default;15`.
fn parse_colorfgbg(value: &str) -> Option<Background> {
    let background: u8 = value.rsplit(';').next()?.parse().ok()?;
    match background {
        7 | 15 => Some(Background::Light),
        0..=15 => Some(Background::Dark),
        _ => None,
    }
}

/// Characters for borders and marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Glyphs {
    /// Rounded box-drawing characters.
    #[default]
    Rounded,
    /// ASCII characters only.
    Ascii,
}

/// Use of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ColourMode {
    /// The terminal's sixteen colours.
    #[default]
    Ansi,
    /// No colours, as `NO_COLOR` asks for: bold and reverse remain.
    Plain,
}

/// Meaning of a part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Ordinary text.
    Text,
    /// Most important text of its line.
    Strong,
    /// Less important text.
    Dim,
    /// Title of a panel.
    Title,
    /// Name of a value.
    Label,
    /// Border of a panel.
    Border,
    /// Border of the focused panel.
    BorderFocused,
    /// Selected row of the focused panel.
    Selected,
    /// Selected row of another panel.
    SelectedIdle,
    /// A key that can be pressed.
    Key,
    /// Description of a key.
    Hint,
    /// Tab of the current screen.
    TabActive,
    /// Critical risk.
    Critical,
    /// High risk, or little time.
    High,
    /// Medium risk.
    Medium,
    /// Low risk.
    Low,
    /// Passed, verified, valid.
    Passed,
    /// Denied, broken.
    Denied,
    /// Expired, withdrawn or voided, without a decision.
    Lapsed,
    /// Waits for an operator.
    Waiting,
    /// Frozen summary.
    Frozen,
    /// Needs attention before going on.
    Warning,
    /// An error.
    Error,
    /// Line across the full width that must not be overlooked.
    Banner,
    /// A button that can be focused.
    Button,
    /// The focused button, which Enter presses.
    ButtonFocused,
    /// A disabled button.
    ButtonDisabled,
    /// The focused button while it is disabled.
    ButtonFocusedDisabled,
}

impl Appearance {
    /// Returns the style of a meaning.
    pub(crate) fn style(self, meaning: Meaning) -> Style {
        match self.colour {
            ColourMode::Ansi => match self.background {
                Background::Dark => coloured(meaning),
                Background::Light => on_light(meaning),
            },
            ColourMode::Plain => colourless_style(meaning),
        }
    }

    /// Returns a panel's border block.
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

    /// Returns the characters of a border.
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

    /// Returns the spelling of a mark for these glyphs.
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

/// Focus of a panel or element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Focus {
    /// This element has the focus.
    Here,
    /// Another element has the focus.
    Elsewhere,
}

impl From<bool> for Focus {
    fn from(here: bool) -> Self {
        if here { Self::Here } else { Self::Elsewhere }
    }
}

/// A mark with a Unicode and an ASCII spelling.
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

/// Returns the meaning of a risk tier.
pub(crate) fn of_tier(tier: RiskTier) -> Meaning {
    match tier {
        RiskTier::Low => Meaning::Low,
        RiskTier::Medium => Meaning::Medium,
        RiskTier::High => Meaning::High,
        RiskTier::Critical => Meaning::Critical,
    }
}

/// Returns the meaning of a held request's outcome.
pub(crate) fn outcome_meaning(outcome: HeldOutcome) -> Meaning {
    match outcome {
        HeldOutcome::Passed => Meaning::Passed,
        HeldOutcome::Denied => Meaning::Denied,
        HeldOutcome::Expired | HeldOutcome::Withdrawn | HeldOutcome::Voided => Meaning::Lapsed,
    }
}

fn coloured(meaning: Meaning) -> Style {
    let plain = colourless_style(meaning);
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
        | Meaning::ButtonFocusedDisabled => plain.fg(Color::DarkGray),
        Meaning::Title | Meaning::TabActive | Meaning::Key | Meaning::Medium | Meaning::Frozen => {
            plain.fg(Color::Cyan)
        }
        // Not bold, because the titles in a border would become bold too.
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

/// Adapts a style to a light background, on which yellow, cyan and light blue cannot be read.
fn on_light(meaning: Meaning) -> Style {
    let style = coloured(meaning);
    match style.fg {
        Some(Color::Cyan | Color::LightBlue) => style.fg(Color::Blue),
        // Waiting and warning share a colour here; their words tell them apart.
        Some(Color::Yellow) => style.fg(Color::Magenta),
        Some(_) | None => style,
    }
}

fn colourless_style(meaning: Meaning) -> Style {
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
        Meaning::ButtonFocusedDisabled => style.add_modifier(Modifier::REVERSED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_follows_the_setting_then_the_terminal_then_colorfgbg() {
        let light = Some(Background::Light);
        assert_eq!(
            Theme::Dark.background(light, Some("0;15")),
            Background::Dark
        );
        assert_eq!(Theme::Light.background(None, None), Background::Light);
        assert_eq!(
            Theme::Auto.background(light, Some("15;0")),
            Background::Light
        );
        assert_eq!(
            Theme::Auto.background(None, Some("0;default;15")),
            Background::Light
        );
        assert_eq!(Theme::Auto.background(None, Some("15;0")), Background::Dark);
        assert_eq!(Theme::Auto.background(None, Some("x")), Background::Dark);
    }

    #[test]
    fn no_pale_colour_is_used_on_a_light_background() {
        let appearance = Appearance {
            background: Background::Light,
            ..Appearance::default()
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
            let colour = appearance.style(meaning).fg;
            assert!(
                !colour.is_some_and(|colour| pale.contains(&colour)),
                "{meaning:?}"
            );
        }
    }
}
