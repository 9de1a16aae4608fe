//! The dialogs: layers over the screens.

pub(crate) mod gate;
pub(crate) mod help;
pub(crate) mod quit;
