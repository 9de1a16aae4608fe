//! Footer: the keys that work now.

use ratatui::text::{Line, Span};

use crate::console::app::{App, Tab};
use crate::console::cells::width;
use crate::console::keymap::{Action, BINDINGS, Binding, Scope, footer};
use crate::console::layer::Layer;
use crate::console::theme::{Look, Meaning};

/// State of a key: enabled or disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    Live,
    Dead,
}

/// A key in the footer.
struct Item {
    name: String,
    label: &'static str,
    power: Power,
    /// Always shown: the key that leads back is never left out.
    always: bool,
}

impl Item {
    fn of(app: &App, binding: &Binding) -> Self {
        let relabelled = app
            .layers
            .last()
            .and_then(|layer| layer.label(binding.action));
        Self {
            name: binding.first_name(),
            label: relabelled.unwrap_or(binding.label),
            power: power(app, binding.action),
            always: binding.action == Action::Back,
        }
    }

    fn cells(&self) -> usize {
        width(&self.name) + width(self.label) + 4
    }

    fn spans(&self, look: Look) -> [Span<'static>; 2] {
        // Disabled keys stay visible if there is room, so that the others keep their position.
        let meaning = match self.power {
            Power::Live => Meaning::Key,
            Power::Dead => Meaning::Dim,
        };
        [
            Span::styled(self.name.clone(), look.style(meaning)),
            Span::styled(format!(" {}   ", self.label), look.style(Meaning::Hint)),
        ]
    }
}

fn power(app: &App, action: Action) -> Power {
    let can = match (app.layers.last(), app.tab) {
        (Some(layer), _) => layer.can(action),
        (None, Tab::Queue) => app.queue.can(action, app.snapshot.access),
        (None, Tab::Trace) => app.trace.can(action),
        (None, Tab::Threads) => app.threads.can(action, &app.snapshot),
        (None, Tab::Atlas) => app.atlases.can(action, &app.snapshot),
    };
    if can { Power::Live } else { Power::Dead }
}

/// Returns true if Esc leads back on the current screen.
fn leads_back(app: &App) -> bool {
    match app.tab {
        Tab::Queue => false,
        Tab::Trace => app.trace.is_inside(),
        Tab::Threads => app.threads.is_inside(),
        Tab::Atlas => app.atlases.is_inside(),
    }
}

/// Renders the footer: enabled keys first, then as many disabled ones as fit, in the order of the
/// table.
pub(super) fn line(app: &App, cells: usize) -> Line<'static> {
    let screen = match app.tab {
        Tab::Queue if app.queue.is_typing() => Scope::Prompt,
        Tab::Threads if app.threads.is_typing() => Scope::Prompt,
        Tab::Queue | Tab::Trace | Tab::Threads | Tab::Atlas => app.scope(),
    };
    let scope = app.layers.last().map_or(screen, Layer::scope);
    let inner = app.layers.last().and_then(Layer::inner_scope);
    let inner = inner.into_iter().flat_map(footer);
    let typing = matches!(scope, Scope::Prompt | Scope::Line);
    let on_screen = app.layers.is_empty() && !typing;
    let back = BINDINGS
        .iter()
        .filter(|binding| binding.scope == Scope::Global && binding.action == Action::Back)
        .filter(|_| on_screen && leads_back(app));
    let own = inner.chain(footer(scope)).chain(back);
    let own: Vec<Item> = own.map(|binding| Item::of(app, binding)).collect();
    let global = footer(Scope::Global).filter(|_| on_screen);
    let global: Vec<Item> = global.map(|binding| Item::of(app, binding)).collect();
    // The help key always stays: it leads to the keys that do not fit.
    let taken: usize = global.iter().map(Item::cells).sum();
    let shown = fitting(&own, cells.saturating_sub(1 + taken));
    let mut spans = vec![Span::raw(" ")];
    spans.extend(shown.flat_map(|item| item.spans(app.look)));
    spans.extend(global.iter().flat_map(|item| item.spans(app.look)));
    Line::from(spans)
}

/// Selects the items to show, in their order. Priority: the key that leads back, enabled keys,
/// disabled keys.
fn fitting(items: &[Item], cells: usize) -> impl Iterator<Item = &Item> {
    let rank = |item: &Item| match (item.always, item.power) {
        (true, _) => 0,
        (false, Power::Live) => 1,
        (false, Power::Dead) => 2,
    };
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|at| items.get(*at).map(rank));
    let mut room = cells;
    let mut kept = vec![false; items.len()];
    for at in order {
        let size = items.get(at).map_or(usize::MAX, Item::cells);
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
