//! Options that apply to a command: its help lists those and no others.
//!
//! Every command accepts the options of [`super::CommonArgs`], so that they can be given before it as well. The help of a
//! command lists only those that it uses.

use std::ffi::OsString;

use clap::{Command, CommandFactory};

use super::CliArgs;

const STORE: &[&str] = &["data_dir"];
const STORE_AND_HEAD: &[&str] = &["data_dir", "head_file"];
const WRITING: &[&str] = &["data_dir", "head_file", "operator", "read_only"];
const CONSOLE: &[&str] = &["data_dir", "socket"];
const EXTENSIONS: &[&str] = &["extensions"];

/// Options of [`super::CommonArgs`], by their identifiers.
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

/// Commands with the common options that apply to them. All apply to `cra` and `cra demo`.
const APPLYING: [(&str, &[&str]); 43] = [
    ("answer", CONSOLE),
    ("atlas", &[]),
    ("atlas explain", EXTENSIONS),
    ("atlas init", &[]),
    ("atlas lint", EXTENSIONS),
    ("atlas schema", &[]),
    ("atlas test", &[]),
    ("atlas types", EXTENSIONS),
    ("completions", &[]),
    ("connect", CONSOLE),
    ("disconnect", CONSOLE),
    ("doctor", CONSOLE),
    ("hook", CONSOLE),
    ("man", &[]),
    ("mcp", CONSOLE),
    ("mcp-proxy", CONSOLE),
    ("acp-proxy", CONSOLE),
    ("notices", &["data_dir", "read_only"]),
    ("notices forget", &["data_dir", "read_only"]),
    ("notices retry", &["data_dir", "read_only"]),
    ("notices secret", STORE),
    ("paths", &["data_dir", "socket", "extensions", "head_file"]),
    ("queue", STORE),
    ("reconstruct", &[]),
    ("run", &[]),
    ("snapshot", STORE),
    ("thread", STORE),
    ("thread list", STORE),
    ("thread show", STORE),
    ("trace", STORE),
    ("trace diff", STORE),
    ("trace export", STORE),
    ("trace head", STORE),
    ("trace hold", WRITING),
    ("trace import", WRITING),
    ("trace key", WRITING),
    ("trace list", STORE),
    ("trace prune", WRITING),
    ("trace release", WRITING),
    ("trace replay", STORE),
    ("trace show", STORE),
    ("trace verify", STORE_AND_HEAD),
    (
        "turn",
        &[
            "data_dir",
            "extensions",
            "head_file",
            "operator",
            "read_only",
        ],
    ),
];

/// The help of the command that was typed, with the options that apply; `None` for `cra` and `cra demo`, to which all
/// apply.
pub(in crate::cli) fn help(typed: &[OsString]) -> Option<String> {
    let words: Vec<&str> = typed.iter().filter_map(|word| word.to_str()).collect();
    let mut command = CliArgs::command();
    // Global options reach the commands below when the command is built.
    command.build();
    let mut found = &command;
    let mut path = Vec::new();
    for word in words.iter().skip(1) {
        if let Some(below) = found.find_subcommand(word) {
            found = below;
            path.push(*word);
        }
    }
    let path = path.join(" ");
    let (_, applying) = APPLYING.iter().find(|(known, _)| *known == path)?;
    let mut command = hide_all_but(found.clone(), applying);
    let help = if words.contains(&"-h") {
        command.render_help()
    } else {
        command.render_long_help()
    };
    Some(help.to_string())
}

fn hide_all_but(mut command: Command, applying: &[&str]) -> Command {
    let has_argument = |command: &Command, id: &str| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_id().as_str() == id)
    };
    for id in COMMON.iter().filter(|id| !applying.contains(*id)) {
        if has_argument(&command, id) {
            command = command.mut_arg(id, |argument| argument.hide(true));
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_below(path: &str, command: &Command) {
        for below in command.get_subcommands() {
            let name = format!("{path} {}", below.get_name());
            let name = name.trim_start();
            let mut table = APPLYING.iter();
            let is_listed = name == "demo" || table.any(|(known, _)| *known == name);
            assert!(is_listed, "{name}");
            check_below(name, below);
        }
    }

    #[test]
    fn every_command_has_its_options_listed() {
        check_below("", &CliArgs::command());
        for words in [["trace", "list"], ["atlas", "lint"]] {
            let typed = ["cra", words[0], words[1], "--help"].map(OsString::from);
            let help = help(&typed).unwrap();
            let usage = format!("Usage: cra {}", words.join(" "));
            assert!(help.contains(&usage), "{help}");
            for strange in ["--socket", "--http", "--theme", "--quota"] {
                assert!(!help.contains(strange), "{strange}: {help}");
            }
        }
    }
}
