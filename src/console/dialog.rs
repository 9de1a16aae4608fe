//! Dialogs: layers over the screens.

pub(crate) mod atlas;
pub(crate) mod confirm;
pub(crate) mod explain;
pub(crate) mod gate;
pub(crate) mod help;
pub(crate) mod palette;
pub(crate) mod quit;
mod sheet;
pub(crate) mod snapshot;
pub(crate) mod what_if;
