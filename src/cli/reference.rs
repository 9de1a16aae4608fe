//! The reference of the command line: Markdown for the documentation, and manual pages.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};

use super::args::{self, CliArgs, Man};
use super::error::{Failure, verdict};
use super::exit;

/// The help of every command as Markdown, as `docs/src/reference/cli.md` has it.
#[must_use]
pub fn command_reference() -> String {
    let mut text = String::from(
        "# Command line\n\nEvery command prints this text with `--help`. [Exit codes](exit-codes.md) are the same for all commands.\n",
    );
    each_command(&mut |path, command| {
        let typed: Vec<_> = path.iter().map(Into::into).collect();
        let help = args::help(&typed).unwrap_or_else(|| command.render_long_help().to_string());
        let help: Vec<_> = help.lines().map(str::trim_end).collect();
        let title = path.join(" ");
        // Writing to a text does not fail.
        let _ = write!(
            text,
            "\n## {title}\n\n```text\n{}\n```\n",
            help.join("\n").trim_end()
        );
    });
    text
}

/// Prints the manual page of `cra`, or writes one page for each command to a folder.
pub(super) fn man(man: &Man) -> Result<u8, Failure> {
    let Some(folder) = &man.folder else {
        let page = page(CliArgs::command())?;
        return verdict(exit::OK, io::stdout().lock().write_all(&page));
    };
    let written = write_pages(folder);
    let count = written.map_err(|error| Failure::Write(folder.clone(), error))?;
    let printed = writeln!(
        io::stdout().lock(),
        "{count} manual pages in {}",
        folder.display()
    );
    verdict(exit::OK, printed)
}

fn write_pages(folder: &Path) -> io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut count = 0;
    let mut outcome = Ok(());
    each_command(&mut |path, command| {
        if outcome.is_err() {
            return;
        }
        let file = folder.join(format!("{}.1", path.join("-")));
        outcome = page(command.clone()).and_then(|page| std::fs::write(file, page));
        count += 1;
    });
    outcome.map(|()| count)
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

/// Visits `cra` and all commands below it, in the order of its help.
fn each_command(visit: &mut dyn FnMut(&[String], &mut Command)) {
    let mut command = CliArgs::command();
    // Global options reach the commands below when the command is built.
    command.build();
    visit_below(&mut vec!["cra".to_owned()], &mut command, visit);
}

fn visit_below(
    path: &mut Vec<String>,
    command: &mut Command,
    visit: &mut dyn FnMut(&[String], &mut Command),
) {
    visit(path, command);
    for below in command.get_subcommands_mut() {
        if below.is_hide_set() {
            continue;
        }
        path.push(below.get_name().to_owned());
        visit_below(path, below, visit);
        path.pop();
    }
}
