//! `config.yaml`: appearance and behaviour of the console for this user. Typed options override it.

use std::path::Path;

use crate::atlas::LoadError;
use crate::atlas::located_values::{FileProblems, LocatedValue, decode_file};
use crate::console::{Glyphs, Theme, ToastMethod};

const KEYS: [&str; 5] = ["theme", "ascii", "mouse", "notifications", "webhooks"];
const THEMES: [&str; 3] = ["auto", "dark", "light"];
const NOTIFICATIONS: [&str; 4] = ["auto", "osc9", "osc777", "off"];
const WEBHOOKS: [&str; 2] = ["on", "off"];

/// Content of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) theme: Theme,
    pub(super) glyphs: Glyphs,
    pub(super) mouse: bool,
    pub(super) toasts: ToastMethod,
    pub(super) webhooks: NoticeDelivery,
}

/// Delivery of notices to stewards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NoticeDelivery {
    /// Notices are sent.
    #[default]
    On,
    /// Notices are not sent.
    Off,
}

impl Config {
    /// Loads the file. Without a file all defaults apply.
    ///
    /// # Errors
    /// When a value is invalid, with its position.
    pub(super) fn load(file: &Path) -> Result<Self, LoadError> {
        if !file.exists() {
            return Ok(Self::default());
        }
        decode_file(file, read)
    }
}

fn read(root: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<Config> {
    root.reject_unknown_keys(&KEYS, faults);
    let mut config = Config::default();
    if let Some(theme) = root.get("theme") {
        config.theme = match theme.word("theme", &THEMES, faults)? {
            "dark" => Theme::Dark,
            "light" => Theme::Light,
            _ => Theme::Auto,
        };
    }
    if let Some(ascii) = root.get("ascii")
        && ascii.boolean(faults)?
    {
        config.glyphs = Glyphs::Ascii;
    }
    if let Some(mouse) = root.get("mouse") {
        config.mouse = mouse.boolean(faults)?;
    }
    if let Some(notifications) = root.get("notifications") {
        config.toasts = match notifications.word("notification method", &NOTIFICATIONS, faults)? {
            "osc9" => ToastMethod::Osc9,
            "osc777" => ToastMethod::Osc777,
            "off" => ToastMethod::Off,
            _ => ToastMethod::Auto,
        };
    }
    if let Some(webhooks) = root.get("webhooks") {
        config.webhooks = match webhooks.word("setting", &WEBHOOKS, faults)? {
            "off" => NoticeDelivery::Off,
            _ => NoticeDelivery::On,
        };
    }
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::diagnostic::ReportColour;
    use crate::atlas::located_values::decode_bytes;

    fn decode(text: &str) -> Result<Config, LoadError> {
        decode_bytes("config.yaml", text.as_bytes().to_vec(), read)
    }

    #[test]
    fn every_key_is_read() {
        let text = "theme: light\nascii: true\nmouse: true\nnotifications: osc777\nwebhooks: off\n";
        let wanted = Config {
            theme: Theme::Light,
            glyphs: Glyphs::Ascii,
            mouse: true,
            toasts: ToastMethod::Osc777,
            webhooks: NoticeDelivery::Off,
        };
        assert_eq!(decode(text).unwrap(), wanted);
        assert_eq!(
            decode("notifications: 'off'").unwrap().toasts,
            ToastMethod::Off
        );
    }

    #[test]
    fn invalid_values_are_reported_with_their_position() {
        for (text, place) in [
            ("theme: dim\n", "config.yaml:1:8"),
            ("ascii: true\nmuose: true\n", "config.yaml:2:1"),
            ("mouse: 3\n", "config.yaml:1:8"),
            ("theme: dark\ntheme: light\n", "config.yaml:2:1"),
            ("webhooks: sometimes\n", "config.yaml:1:11"),
        ] {
            let report = decode(text).unwrap_err().report(ReportColour::None);
            assert!(report.contains(place), "{report}");
        }
    }

    #[test]
    fn defaults_apply_without_a_file() {
        let nowhere = Path::new("/nonexistent/config.yaml");
        assert_eq!(Config::load(nowhere).unwrap(), Config::default());
    }
}
