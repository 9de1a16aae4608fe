//! Dialogs: layers over the screens.

pub(crate) mod atlas;
pub(crate) mod confirmation;
pub(crate) mod explanation;
pub(crate) mod gate;
pub(crate) mod help;
pub(crate) mod palette;
pub(crate) mod quit_confirmation;
mod sheet;
pub(crate) mod snapshot;
pub(crate) mod what_if;
