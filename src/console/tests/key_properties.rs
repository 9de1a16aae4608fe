//! Properties that hold for any key sequence.

use proptest::prelude::*;
use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, onboarding, snapshot};
use super::gate::fill;
use super::test_console::{TestConsole, decisions};
use crate::runtime::snapshot::ConsoleAccess;

fn key() -> impl Strategy<Value = KeyCode> {
    prop_oneof![
        proptest::char::range(' ', '~').prop_map(KeyCode::Char),
        Just(KeyCode::Enter),
        Just(KeyCode::Tab),
        Just(KeyCode::BackTab),
        Just(KeyCode::Esc),
        Just(KeyCode::Left),
        Just(KeyCode::Right),
        Just(KeyCode::Up),
        Just(KeyCode::Down),
        Just(KeyCode::PageDown),
        Just(KeyCode::PageUp),
        Just(KeyCode::Home),
        Just(KeyCode::End),
        Just(KeyCode::Backspace),
        Just(KeyCode::Delete),
        Just(KeyCode::F(3)),
        Just(KeyCode::F(4)),
        Just(KeyCode::F(6)),
    ]
}

fn printable() -> impl Strategy<Value = KeyCode> {
    proptest::char::range(' ', '~').prop_map(KeyCode::Char)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Time stands still, so that every dialog that opens keeps arming.
    #[test]
    fn nothing_is_decided_within_the_arming_time(keys in prop::collection::vec(key(), 0..80)) {
        let mut console = TestConsole::new(snapshot([onboarding()]), (80, 24));
        for code in keys {
            prop_assert_eq!(decisions(console.key(code)), []);
            if code == KeyCode::Enter {
                console.paint();
            }
        }
    }

    /// Even with everything answered and the focus on an enabled Pass.
    #[test]
    fn no_printable_key_ever_decides(keys in prop::collection::vec(printable(), 0..60)) {
        let mut console = TestConsole::new(busy(), (120, 36));
        console.open_gate("c-121");
        fill(&mut console);
        for code in keys {
            prop_assert_eq!(decisions(console.key(code)), []);
        }
    }

    #[test]
    fn a_read_only_console_never_decides_for_any_keys(keys in prop::collection::vec(key(), 0..80)) {
        let mut picture = snapshot([onboarding()]);
        picture.access = ConsoleAccess::ReadOnly;
        let mut console = TestConsole::new(picture, (80, 24));
        console.open();
        console.type_text("understood");
        for code in keys {
            prop_assert_eq!(decisions(console.key(code)), []);
            if code == KeyCode::Enter {
                console.paint();
            }
            console.now = console.now.plus(crate::base::limits::DIALOG_ARMING_TIME);
        }
    }

    /// For any keys and any size, painting works and only the focused element acts.
    #[test]
    fn painting_works_for_any_keys_at_any_size(
        keys in prop::collection::vec(key(), 0..40),
        width in 20_u16..140,
        height in 6_u16..50,
    ) {
        let mut console = TestConsole::new(busy(), (width, height));
        console.press(KeyCode::Enter);
        console.wait(crate::base::limits::DIALOG_ARMING_TIME);
        for code in keys {
            let decided = decisions(console.key(code));
            prop_assert!(decided.is_empty() || code == KeyCode::Enter);
        }
        console.paint();
        prop_assert!(!console.text().trim().is_empty());
    }
}
