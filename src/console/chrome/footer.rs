//! Footer: the keys that work now.

use ratatui::text::{Line, Span};

use crate::console::app::App;
use crate::console::keymap::{KeyAction, KeyBinding, KeyScope, footer_bindings, scope_bindings};
use crate::console::text_cells::width;
use crate::console::theme::{Appearance, Meaning};

/// State of a key: enabled or disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyState {
    Enabled,
    Disabled,
}

/// A key in the footer.
struct FooterKey {
    name: String,
    label: &'static str,
    power: KeyState,
    /// Always shown: the key that leads back is never left out.
    always: bool,
}

impl FooterKey {
    fn of(app: &App, binding: &KeyBinding) -> Self {
        let relabelled = app
            .layers
            .last()
            .and_then(|layer| layer.label(binding.action));
        Self {
            name: binding.footer_key_name(),
            label: relabelled.unwrap_or(binding.label),
            power: key_state(app, binding.action),
            always: binding.action == KeyAction::Back,
        }
    }

    fn cells(&self) -> usize {
        width(&self.name) + width(self.label) + 4
    }

    fn spans(&self, appearance: Appearance) -> [Span<'static>; 2] {
        // Disabled keys stay visible if there is room, so that the others keep their position.
        let meaning = match self.power {
            KeyState::Enabled => Meaning::Key,
            KeyState::Disabled => Meaning::Dim,
        };
        [
            Span::styled(self.name.clone(), appearance.style(meaning)),
            Span::styled(
                format!(" {}   ", self.label),
                appearance.style(Meaning::Hint),
            ),
        ]
    }
}

fn key_state(app: &App, action: KeyAction) -> KeyState {
    let can = app.layers.last().map_or_else(
        || {
            let screen = app.screens.get(app.screen);
            screen.is_enabled(action, &app.snapshot)
        },
        |layer| layer.can(action),
    );
    if can {
        KeyState::Enabled
    } else {
        KeyState::Disabled
    }
}

/// Renders the footer: enabled keys first, then as many disabled ones as fit, in the order of the
/// table.
pub(super) fn line(app: &App, cells: usize) -> Line<'static> {
    let shown = app.screens.get(app.screen);
    let screen = shown.input_scope().unwrap_or(KeyScope::Screen(app.screen));
    let scope = app.layers.last().map_or(screen, |layer| layer.scope());
    let inner = app.layers.last().and_then(|layer| layer.inner_scope());
    let inner = inner.into_iter().flat_map(footer_bindings);
    let typing = matches!(scope, KeyScope::Prompt | KeyScope::Line);
    let on_screen = app.layers.is_empty() && !typing;
    let back = scope_bindings(KeyScope::Global)
        .filter(|binding| binding.action == KeyAction::Back)
        .filter(|_| on_screen && shown.leads_back());
    let own = inner.chain(footer_bindings(scope)).chain(back);
    let own: Vec<FooterKey> = own.map(|binding| FooterKey::of(app, binding)).collect();
    let global = footer_bindings(KeyScope::Global).filter(|_| on_screen);
    let global: Vec<FooterKey> = global.map(|binding| FooterKey::of(app, binding)).collect();
    // The help key always stays: it leads to the keys that do not fit.
    let taken: usize = global.iter().map(FooterKey::cells).sum();
    let fitting = fitting_keys(&own, cells.saturating_sub(1 + taken));
    let mut spans = vec![Span::raw(" ")];
    spans.extend(fitting.flat_map(|item| item.spans(app.appearance)));
    spans.extend(global.iter().flat_map(|item| item.spans(app.appearance)));
    Line::from(spans)
}

/// Selects the items to show, in their order. Priority: the key that leads back, enabled keys,
/// disabled keys.
fn fitting_keys(items: &[FooterKey], cells: usize) -> impl Iterator<Item = &FooterKey> {
    let rank = |item: &FooterKey| match (item.always, item.power) {
        (true, _) => 0,
        (false, KeyState::Enabled) => 1,
        (false, KeyState::Disabled) => 2,
    };
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|at| items.get(*at).map(rank));
    let mut room = cells;
    let mut kept = vec![false; items.len()];
    for at in order {
        let size = items.get(at).map_or(usize::MAX, FooterKey::cells);
        if let (true, Some(kept)) = (size <= room, kept.get_mut(at)) {
            *kept = true;
            room -= size;
        }
    }
    items
        .iter()
        .zip(kept)
        .filter(|(_, kept)| *kept)
        .map(|(item, _)| item)
}
