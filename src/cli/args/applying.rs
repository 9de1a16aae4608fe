//! Common options that apply to a command: its help lists only those.
//!
//! Every command accepts the options of [`super::Common`], so that they can also come before the
//! command. An option without a meaning for the command is accepted but not listed.

use std::ffi::OsString;

use clap::{Command, CommandFactory};

use super::Args;

/// Options of [`super::Common`] that some commands of `cra trace` use.
const READING: [&str; 1] = ["data_dir"];
const VERIFYING: [&str; 2] = ["data_dir", "head_file"];
const WRITING: [&str; 4] = ["data_dir", "head_file", "operator", "read_only"];

/// Options of [`super::Common`], by their identifiers.
const COMMON: [&str; 11] = [
    "data_dir",
    "socket",
    "operator",
    "read_only",
    "extensions",
    "head_file",
    "quota",
    "http",
    "ascii",
    "linear",
    "theme",
];

/// Commands of `cra trace` with the common options that apply to them.
const TRACE: [(&str, &[&str]); 12] = [
    ("list", &READING),
    ("show", &READING),
    ("verify", &VERIFYING),
    ("replay", &READING),
    ("diff", &READING),
    ("export", &READING),
    ("import", &WRITING),
    ("prune", &WRITING),
    ("hold", &WRITING),
    ("release", &WRITING),
    ("head", &READING),
    ("key", &WRITING),
];

/// Help of a typed `cra trace` command, with the options that apply; `None` for other commands.
pub(in crate::cli) fn help(typed: &[OsString]) -> Option<String> {
    let words: Vec<&str> = typed.iter().filter_map(|word| word.to_str()).collect();
    let place = words.iter().position(|word| *word == "trace")?;
    let behind = words.get(place + 1..)?;
    let name = |word: &&&str| TRACE.iter().find(|(name, _)| name == *word);
    let (name, applying) = behind.iter().find_map(|word| name(&word))?;
    let mut command = Args::command();
    // Building the command passes global options on to its subcommands.
    command.build();
    let command = command.find_subcommand("trace")?.find_subcommand(name)?;
    let mut command = hide_all_but(command.clone(), applying);
    let help = if words.contains(&"-h") {
        command.render_help()
    } else {
        command.render_long_help()
    };
    Some(help.to_string())
}

fn hide_all_but(mut command: Command, applying: &[&str]) -> Command {
    let is_there = |command: &Command, id: &str| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_id().as_str() == id)
    };
    for id in COMMON.iter().filter(|id| !applying.contains(*id)) {
        if is_there(&command, id) {
            command = command.mut_arg(id, |argument| argument.hide(true));
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trace_command_has_its_options_listed() {
        let command = Args::command();
        let trace = command.find_subcommand("trace").unwrap();
        for one in trace.get_subcommands() {
            let name = one.get_name();
            assert!(TRACE.iter().any(|(known, _)| *known == name), "{name}");
        }
        let typed = ["cra", "trace", "list", "--help"].map(OsString::from);
        let help = help(&typed).unwrap();
        assert!(help.contains("Usage: cra trace list"), "{help}");
        assert!(help.contains("--data-dir"), "{help}");
        for strange in ["--socket", "--http", "--extensions", "--theme", "--quota"] {
            assert!(!help.contains(strange), "{strange}: {help}");
        }
    }
}
