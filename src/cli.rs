//! The command line: typed arguments (`args`), their meaning (`settings`), and one file per command.
//!
//! Only this module prints. Results go to standard output, everything else to standard error; exit
//! codes are stable (see `exit`).

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

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
mod input;
mod mcp;
mod notices;
mod paths;
mod queue;
mod reconstruct;
mod reference;
mod run;
mod settings;
mod snapshot;
mod thread;
mod trace;
mod turn;

use args::{CliArgs, CliCommand, ThreadCommand, TraceCommand};
use error::Failure;
pub use reference::command_reference;
use settings::Settings;

use crate::runtime::extension::Registry;

/// Runs `cra` with these arguments.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    main_with(Registry::default(), args)
}

/// Runs `cra` with these arguments and with extensions written in Rust.
///
/// Every command knows their checkpoint types, handlers, validators, event types, hooks and plugins.
/// The extensions of the operator's list are added to them.
///
/// `examples/sentiment` is a complete program.
///
/// ```no_run
/// use cra_core::runtime::extension::Registry;
///
/// fn main() -> std::process::ExitCode {
///     let registry = Registry::default();
///     cra_core::cli::main_with(registry, std::env::args_os())
/// }
/// ```
pub fn main_with(registry: Registry, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let typed: Vec<OsString> = args.into_iter().collect();
    let args = match CliArgs::try_parse_from(&typed) {
        Ok(args) => args,
        Err(error) => {
            let help = args::help(&typed).filter(|_| error.kind() == ErrorKind::DisplayHelp);
            // Help and version are printed here too; a closed pipe is not an error.
            let _ = match help {
                Some(help) => write!(io::stdout().lock(), "{help}"),
                None => error.print(),
            };
            return ExitCode::from(if error.use_stderr() {
                exit::USAGE
            } else {
                exit::OK
            });
        }
    };
    match run(args, registry) {
        Ok(code) => ExitCode::from(code),
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr().lock(), "{}", failure.report());
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(args: CliArgs, registry: Registry) -> Result<u8, Failure> {
    let settings = Settings::from_args(&args.common, registry);
    match args.command {
        None => console::open(&settings, &args.atlas),
        Some(CliCommand::Demo(demo)) => console::demo(&settings, &demo),
        Some(CliCommand::Run(scenario)) => run::run(&settings, &scenario),
        Some(CliCommand::Queue(queue)) => queue::queue(&settings, &queue),
        Some(CliCommand::Notices(args)) => notices::notices(&settings, &args),
        Some(CliCommand::Reconstruct(file)) => reconstruct::reconstruct(&file),
        Some(CliCommand::Snapshot(wanted)) => snapshot::snapshot(&settings, &wanted),
        Some(CliCommand::Turn(turn)) => turn::turn(&settings, &turn),
        Some(CliCommand::Thread { command }) => match command {
            ThreadCommand::List(list) => thread::list(&settings, &list),
            ThreadCommand::Show(show) => thread::show(&settings, &show),
        },
        Some(CliCommand::Trace { command }) => match command {
            TraceCommand::List(list) => trace::list(&settings, &list),
            TraceCommand::Show(show) => trace::show(&settings, &show),
            TraceCommand::Verify(verify) => trace::verify(&settings, &verify),
            TraceCommand::Replay(replay) => trace::replay(&settings, &replay),
            TraceCommand::Diff(diff) => trace::diff(&settings, &diff),
            TraceCommand::Export(export) => trace::export(&settings, &export),
            TraceCommand::Import(import) => trace::import(&settings, &import),
            TraceCommand::Prune(prune) => trace::prune(&settings, &prune),
            TraceCommand::Hold(hold) => trace::hold(&settings, &hold),
            TraceCommand::Release(release) => trace::release(&settings, &release),
            TraceCommand::Head(head) => trace::head(&settings, &head),
            TraceCommand::Key(key) => trace::key(&settings, &key),
        },
        Some(CliCommand::Atlas { command }) => match command {
            args::AtlasCommand::Lint(lint) => atlas::lint(&settings, &lint),
            args::AtlasCommand::Explain(explain) => atlas::explain(&settings, &explain),
            args::AtlasCommand::Types(types) => atlas::types(&settings, &types),
            args::AtlasCommand::Test(test) => run::test(&settings, &test),
            args::AtlasCommand::Init(init) => atlas::init(&init),
            args::AtlasCommand::Schema => atlas::schema(),
        },
        Some(CliCommand::Hook(given)) => Ok(hook::hook(&settings, &given)),
        Some(CliCommand::Answer(given)) => answer::answer(&settings, given),
        Some(CliCommand::Connect(given)) => connect::connect(&settings, &given),
        Some(CliCommand::Disconnect(given)) => connect::disconnect(&settings, &given),
        Some(CliCommand::Doctor(given)) => doctor::doctor(&settings, &given),
        Some(CliCommand::McpProxy(given)) => mcp::run_proxy(&settings, given),
        Some(CliCommand::AcpProxy(given)) => mcp::run_acp_proxy(&settings, given),
        Some(CliCommand::Mcp(given)) => mcp::serve_tools(&settings, given),
        Some(CliCommand::Paths(paths)) => paths::paths(&settings, &paths),
        Some(CliCommand::Completions(completions)) => paths::completions(&completions),
        Some(CliCommand::Man(pages)) => reference::man(&pages),
    }
}
