//! The command line: what was typed (`args`), what it means (`settings`), one file per command.
//!
//! This is the only room that prints. Results go to standard output, everything else to standard
//! error; exit codes are stable (see `exit`).

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

mod alarms;
mod answer;
mod answer_key;
mod args;
mod atlas;
mod atlases;
mod config;
mod connect;
mod console;
#[cfg(test)]
mod corpus;
mod doctor;
mod error;
mod exit;
mod hook;
mod http;
mod input;
mod mcp;
mod notices;
mod paths;
mod queue;
mod reconstruct;
mod run;
mod settings;
mod snapshot;
mod thread;
mod trace;
mod turn;

use args::{Args, Command, ThreadCommand, TraceCommand};
use error::Failure;
use settings::Settings;

/// Runs the program with these arguments.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // Also how help and version come out; a closed pipe is nobody's error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() {
                exit::USAGE
            } else {
                exit::OK
            });
        }
    };
    match run(args) {
        Ok(code) => ExitCode::from(code),
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr().lock(), "{}", failure.report());
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(args: Args) -> Result<u8, Failure> {
    let settings = Settings::from_args(&args.common);
    match args.command {
        None => console::open(&settings, &args.atlas),
        Some(Command::Demo(demo)) => console::demo(&settings, &demo),
        Some(Command::Run(scenario)) => run::run(&scenario),
        Some(Command::Queue(queue)) => queue::queue(&settings, &queue),
        Some(Command::Notices(args)) => notices::notices(&settings, &args),
        Some(Command::Reconstruct(file)) => reconstruct::reconstruct(&file),
        Some(Command::Snapshot(wanted)) => snapshot::snapshot(&settings, &wanted),
        Some(Command::Turn(turn)) => turn::turn(&settings, &turn),
        Some(Command::Thread { command }) => match command {
            ThreadCommand::List(list) => thread::list(&settings, &list),
            ThreadCommand::Show(show) => thread::show(&settings, &show),
        },
        Some(Command::Trace { command }) => match command {
            TraceCommand::List(list) => trace::list(&settings, &list),
            TraceCommand::Show(show) => trace::show(&settings, &show),
            TraceCommand::Verify(verify) => trace::verify(&settings, &verify),
            TraceCommand::Replay(replay) => trace::replay(&settings, &replay),
            TraceCommand::Diff(diff) => trace::diff(&settings, &diff),
            TraceCommand::Export(export) => trace::export(&settings, &export),
            TraceCommand::Import(import) => trace::import(&settings, &import),
            TraceCommand::Prune(prune) => trace::prune(&settings, &prune),
            TraceCommand::Head(head) => trace::head(&settings, &head),
            TraceCommand::Key(key) => trace::key(&settings, &key),
        },
        Some(Command::Atlas { command }) => match command {
            args::AtlasCommand::Lint(lint) => atlas::lint(&settings, &lint),
            args::AtlasCommand::Explain(explain) => atlas::explain(&settings, &explain),
            args::AtlasCommand::Types(types) => atlas::types(&types),
            args::AtlasCommand::Test(test) => run::test(&test),
            args::AtlasCommand::Init(init) => atlas::init(&init),
            args::AtlasCommand::Schema => atlas::schema(),
        },
        Some(Command::Hook(given)) => Ok(hook::hook(&settings, &given)),
        Some(Command::Answer(given)) => answer::answer(&settings, given),
        Some(Command::Connect(given)) => connect::connect(&settings, &given),
        Some(Command::Disconnect(given)) => connect::disconnect(&settings, &given),
        Some(Command::Doctor(given)) => doctor::doctor(&settings, &given),
        Some(Command::McpProxy(given)) => mcp::proxy(&settings, given),
        Some(Command::Mcp(given)) => mcp::tools(&settings, given),
        Some(Command::Paths(paths)) => paths::paths(&settings, &paths),
        Some(Command::Completions(completions)) => paths::completions(&completions),
    }
}
