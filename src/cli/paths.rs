//! `cra paths` and `cra completions`: locations of files, and shell completion.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::CommandFactory as _;
use serde_json::json;

use super::args::{CliArgs, CompletionsArgs, PathsArgs};
use super::error::{Failure, verdict};
use super::exit;
use super::settings::{Settings, SocketOwner};
use crate::base::text::one_line;
use crate::gateway::connect::registry;
use crate::gateway::transport::http::{ADDRESS_FILE, TOKEN_FILE};
use crate::runtime::notices::SECRET_FILE;
use crate::store::key;

/// A folder or file: its name, its purpose and its path.
type PathEntry = (&'static str, &'static str, PathBuf);

fn list_paths(settings: &Settings) -> Result<Vec<PathEntry>, Failure> {
    let data = settings.data_dir()?;
    Ok(vec![
        (
            "store",
            "the record and the held requests",
            settings.store_url()?.path(),
        ),
        (
            "key",
            "signs the record; keep it secret",
            data.join(key::FILE_NAME),
        ),
        (
            "token",
            "token of agents for HTTP; keep it secret",
            data.join(TOKEN_FILE),
        ),
        (
            "webhook",
            "signs notices to stewards; keep it secret",
            data.join(SECRET_FILE),
        ),
        (
            "http",
            "address of the HTTP server, while it runs",
            data.join(ADDRESS_FILE),
        ),
        (
            "socket",
            "socket for agents, while a console runs",
            settings.socket(SocketOwner::Console)?,
        ),
        (
            "connections",
            "connected agents and their hook settings",
            data.join(registry::FILE_NAME),
        ),
        ("demo", "the store of cra demo", settings.demo_dir()?),
        (
            "atlas",
            "Atlases that cra loads without --atlas",
            Settings::atlas_dir()?,
        ),
        (
            "config",
            "settings of the console",
            Settings::config_file()?,
        ),
        (
            "extensions",
            "extensions that cra may call",
            settings.extensions_file()?,
        ),
    ])
}

/// Prints the folders and files in use, and which of them exist.
pub(super) fn paths(settings: &Settings, paths: &PathsArgs) -> Result<u8, Failure> {
    let known = list_paths(settings)?;
    let head = settings.head_file.clone();
    let head = head.map(|file| ("head_file", "copy of the record's signed head", file));
    let known = known.into_iter().chain(head);
    let mut out = io::stdout().lock();
    let written = if paths.json {
        let all: serde_json::Map<_, _> = known
            .map(|(name, _, path)| {
                let entry = json!({ "path": path.to_string_lossy(), "exists": path.exists() });
                (name.to_owned(), entry)
            })
            .collect();
        serde_json::to_writer_pretty(&mut out, &all)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        let mut written = Ok(());
        for (name, what, path) in known {
            let there = if path.exists() {
                ""
            } else {
                "  (does not exist yet)"
            };
            let path = one_line(&path.to_string_lossy());
            written =
                written.and_then(|()| writeln!(out, "{name:<11} {path}{there}\n{:11} {what}", ""));
        }
        written
    };
    verdict(exit::OK, written)
}

/// Prints a script that completes commands.
pub(super) fn completions(completions: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        completions.shell,
        &mut CliArgs::command(),
        "cra",
        &mut script,
    );
    verdict(exit::OK, io::stdout().lock().write_all(&script))
}
