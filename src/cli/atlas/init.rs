//! `cra atlas init`: writes a first Atlas.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::atlas::load_str;
use crate::base::text::one_line;
use crate::cli::args::{AtlasInitArgs, ExampleAtlas};
use crate::cli::error::{Failure, verdict};
use crate::cli::exit;
use crate::cli::settings::Settings;

impl ExampleAtlas {
    fn text(self) -> &'static str {
        match self {
            Self::CodingAgents => include_str!("../../../assets/atlas/coding-agents.yaml"),
            Self::AcmeSupport => include_str!("../../../assets/atlas/acme-support.yaml"),
        }
    }

    fn file_name(self) -> &'static str {
        match self {
            Self::CodingAgents => "coding-agents.yaml",
            Self::AcmeSupport => "acme-support.yaml",
        }
    }
}

/// Writes an example; never overwrites a file.
pub(in crate::cli) fn init(init: &AtlasInitArgs) -> Result<u8, Failure> {
    let in_force = Settings::atlas_dir();
    let file = match &init.file {
        Some(file) => file.clone(),
        None => in_force?.join(init.example.file_name()),
    };
    let failed = |error| Failure::Write(file.clone(), error);
    if let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    // An existing file is never overwritten.
    let new = OpenOptions::new().write(true).create_new(true).open(&file);
    let mut new = new.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Exists(file.clone()),
        _ => failed(error),
    })?;
    new.write_all(init.example.text().as_bytes())
        .map_err(failed)?;
    let name = one_line(&file.to_string_lossy());
    let opens = match &init.file {
        Some(_) => format!("cra --atlas {name}"),
        None => "cra".to_owned(),
    };
    let notice = webhook_address(init.example.text());
    let notice = notice.map(|address| {
        format!("\n  it sends notices to {address}: change this address, or remove it")
    });
    let notice = notice.unwrap_or_default();
    let mut out = io::stdout().lock();
    let written = writeln!(
        out,
        "{name} was written.\n  check it:   cra atlas lint {name}\n  \
         its schema: cra atlas schema\n  load it:    {opens}{notice}"
    );
    verdict(exit::OK, written)
}

/// Notification address in an Atlas: that of an example belongs to another steward.
fn webhook_address(text: &str) -> Option<String> {
    let steward = load_str("example", text).ok()?.atlas.steward?;
    steward.notifications?.channels.webhook
}
