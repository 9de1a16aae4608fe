//! A program that adds its own Rust code to `cra`: the example `sentiment`, run as a process of its own.
//!
//! The process is this test binary: `example_program` becomes the example's `main` when it is asked to. That way
//! the example is always the one that was compiled together with the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::support::root;

#[path = "../../examples/sentiment/plugin.rs"]
mod plugin;

/// Holds the arguments of the example's process, as a JSON list.
const ARGUMENTS: &str = "CRA_TEST_EXAMPLE_ARGUMENTS";

/// Line after which the example's own output begins: the test harness writes some before.
const BEGIN: &str = "-- output of the example --\n";

#[test]
fn example_program() {
    use std::io::Write as _;
    let Ok(arguments) = std::env::var(ARGUMENTS) else {
        // The example is only run on demand: that it can be put together is checked here.
        assert_eq!(plugin::registry(None).unwrap().custom_types().len(), 1);
        return;
    };
    let arguments: Vec<String> = serde_json::from_str(&arguments).unwrap();
    let blocked = std::env::var_os("SUPPORT_BLOCKED").map(PathBuf::from);
    let registry = plugin::registry(blocked).unwrap();
    std::io::stdout().write_all(BEGIN.as_bytes()).unwrap();
    let arguments = std::iter::once("sentiment".to_owned()).chain(arguments);
    let code = cra_core::cli::main_with(registry, arguments.map(Into::into));
    let failed = code != std::process::ExitCode::SUCCESS;
    std::io::stdout().flush().unwrap();
    std::process::exit(i32::from(failed));
}

/// Result of a process.
struct CommandOutput {
    ok: bool,
    out: String,
    err: String,
}

impl CommandOutput {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}\n{}", self.out, self.err))
    }
}

/// A folder for the store and the file of a process.
struct ExampleHome(TempDir);

impl ExampleHome {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn blocked(&self) -> PathBuf {
        self.0.path().join("blocked.jsonl")
    }

    fn start(&self, mut command: Command) -> CommandOutput {
        let output = command
            .env("HOME", self.0.path())
            .env("SUPPORT_BLOCKED", self.blocked())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        CommandOutput {
            ok: output.status.success(),
            out: out
                .split_once(BEGIN)
                .map_or(out.clone(), |(_, own)| own.to_owned()),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the example.
    fn example(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .env_clear()
            .env(ARGUMENTS, serde_json::to_string(arguments).unwrap())
            .args(["example_plugin::example_program", "--exact", "--nocapture"]);
        self.start(command)
    }

    /// Runs the program as it ships.
    fn shipped(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
        command.env_clear().args(arguments);
        self.start(command)
    }
}

fn file(name: &str) -> String {
    let path: &Path = &root().join("examples/sentiment").join(name);
    path.to_str().unwrap().to_owned()
}

// covers A2, A32, A25, A28, B4
#[test]
fn checkpoint_type_of_a_plugin_is_listed_with_its_priority() {
    let home = ExampleHome::new();
    let output = home.example(&["atlas", "types"]);
    assert!(output.ok, "{}", output.err);
    let own = output
        .out
        .lines()
        .find(|line| line.starts_with("sentiment_negative"));
    let own: Vec<_> = own
        .expect("the type is listed")
        .split_whitespace()
        .collect();
    assert_eq!(own[1..], ["650", "input", "sounds", "negative"]);
    let types = home.example(&["atlas", "types", "--json"]).json();
    assert_eq!(types["custom_types"][0]["priority"], 650);
    let priority = |name: &str| {
        let known = types["checkpoint_types"].as_array().unwrap().iter();
        let mut own = known.filter(|item| item["checkpoint_type"] == name);
        own.next().unwrap()["priority"].clone()
    };
    let table = [
        ("session_start", 1000),
        ("interactive", 950),
        ("capability_gate", 920),
        ("risk_threshold", 900),
        ("action_pre", 800),
        ("keyword_match", 600),
        ("time_interval", 500),
        ("count_interval", 400),
        ("explicit_request", 300),
        ("custom", 200),
        ("action_post", 100),
        ("error_occurred", 50),
        ("session_end", 0),
    ];
    for (name, wanted) in table {
        assert_eq!(priority(name), wanted, "{name}");
    }
    let tiers = types["risk_tiers"].as_array().unwrap();
    let names: Vec<_> = tiers
        .iter()
        .map(|tier| tier["tier"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["low", "medium", "high", "critical"]);
    let described = |tier: &Value| {
        !tier["meaning"].as_str().unwrap().is_empty() && !tier["examples"][0].is_null()
    };
    assert!(tiers.iter().all(described), "{tiers:?}");
    let shipped = home.shipped(&["atlas", "types", "--json"]).json();
    assert_eq!(shipped["custom_types"], serde_json::json!([]));
}

// covers A2, A13, A14, A15, A32, A33, A34, T33, T34, T35
#[test]
fn scenario_runs_with_types_handlers_validators_and_hooks_of_a_plugin() {
    let home = ExampleHome::new();
    let scenario = file("scenario.yaml");
    let output = home.example(&["run", &scenario]);
    assert!(output.ok, "{}{}", output.out, output.err);
    assert!(
        output.out.contains("all expectations met"),
        "{}",
        output.out
    );
    let steps = home.example(&["run", "--json", &scenario]).json();
    let events: Vec<_> = steps
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step["events"].as_array().unwrap())
        .collect();
    let of = |kind: &str| -> Vec<&Value> {
        let own = events.iter().filter(|event| event["event_type"] == kind);
        own.map(|event| &event["payload"]).collect()
    };
    // An event of the plugin's own type, checked by its schema and its code.
    assert_eq!(of("refund_score").len(), 2, "{events:?}");
    assert_eq!(of("refund_score")[1]["score"], 0.2);
    assert_eq!(of("plugin_loaded")[0]["plugin_name"], "support");
    // The hook on blocked actions heard both denials of each of the two runs.
    let heard = std::fs::read_to_string(home.blocked()).unwrap();
    let heard: Vec<Value> = heard
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(heard.len(), 4, "{heard:?}");
    assert!(
        heard.iter().all(|line| line["session"] == "s-1"),
        "{heard:?}"
    );

    let shipped = home.shipped(&["run", &scenario]);
    assert!(!shipped.ok, "{}", shipped.out);
}

// covers T33
#[test]
fn event_rejected_by_its_plugin_type_is_recorded_as_refused() {
    let home = ExampleHome::new();
    let text = std::fs::read_to_string(file("scenario.yaml")).unwrap();
    let text = text.replace(
        "atlas: atlas.yaml",
        &format!("atlas: {}", file("atlas.yaml")),
    );
    let text = text.replace("amount: 500", "amount: -500");
    let path = home.0.path().join("negative.yaml");
    std::fs::write(&path, text).unwrap();
    let steps = home
        .example(&["run", "--json", path.to_str().unwrap()])
        .json();
    let events = steps[3]["events"].as_array().unwrap();
    let mut refused = events.iter().filter(|event| {
        event["event_type"] == "plugin_event" && event["payload"]["custom_type"] == "refund_score"
    });
    let refused = &refused.next().expect("the event is kept")["payload"];
    assert_eq!(
        refused["data"]["refused"],
        "its validation rejected the event"
    );
}

// covers A2, A34, B27
#[test]
fn lint_and_explain_include_a_plugin_and_its_configuration_change() {
    let home = ExampleHome::new();
    let atlas = file("atlas.yaml");
    let output = home.example(&["atlas", "lint", &atlas]);
    assert_eq!(
        output.out,
        format!("{atlas}: no problems\n"),
        "{}",
        output.err
    );
    let shipped = home.shipped(&["atlas", "lint", &atlas]);
    assert_eq!(shipped.out.matches("W013").count(), 2, "{}", shipped.out);

    let explained = ["atlas", "explain", &atlas, "--input", "awful", "--json"];
    let output = home.example(&explained).json();
    let output = &output["input"]["checkpoints"];
    let tone = output
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["checkpoint_id"] == "tone");
    assert_eq!(tone.unwrap()["priority"], 650, "{output}");
    let shipped = home.shipped(&explained).json();
    let shipped = &shipped["input"]["checkpoints"];
    let tone = shipped
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["checkpoint_id"] == "tone");
    assert_eq!(tone.unwrap()["priority"], 200, "{shipped}");

    // A context that the plugin wants given has to be in the Atlas.
    let without = std::fs::read_to_string(&atlas).unwrap();
    let without = without.lines().filter(|line| !line.contains("house-rules"));
    let without = without.collect::<Vec<_>>().join("\n");
    let path = home.0.path().join("without.yaml");
    std::fs::write(&path, without).unwrap();
    let output = home.example(&["atlas", "lint", path.to_str().unwrap()]);
    assert!(
        output.out.contains("unknown context `house-rules`"),
        "{}",
        output.out
    );
}

// covers A34
#[test]
fn plugin_is_named_in_the_stored_record() {
    let home = ExampleHome::new();
    let turns = home.0.path().join("turns.json");
    let turn = serde_json::json!({"session": "s-9", "message_id": "m-1", "message": "hello"});
    std::fs::write(&turns, turn.to_string()).unwrap();
    let (atlas, turns) = (file("atlas.yaml"), turns.to_str().unwrap().to_owned());
    let data = home.0.path().join("data").to_str().unwrap().to_owned();
    let output = home.example(&["--data-dir", &data, "turn", &turns, "--atlas", &atlas]);
    assert!(output.ok, "{}{}", output.out, output.err);
    let shown = home.shipped(&["--data-dir", &data, "trace", "show", "s-9", "--json"]);
    let events: Vec<Value> = shown
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| events.iter().find(|event| event["event_type"] == kind);
    let loaded = of("plugin_loaded").expect("the plugin is on record");
    assert_eq!(loaded["payload"]["plugin_name"], "support");
    let given = of("context_injected").expect("the plugin's configuration counts");
    assert_eq!(given["payload"]["context_ids"][0], "house-rules", "{given}");
    let verified = home.shipped(&["--data-dir", &data, "trace", "verify"]);
    assert!(verified.ok, "{}{}", verified.out, verified.err);
}

// covers A2
#[test]
fn extension_list_cannot_reuse_the_name_of_a_plugin_validator() {
    let home = ExampleHome::new();
    let list = home.0.path().join("extensions.yaml");
    let text = "extensions: [{name: is-ticket, answers: [validator], command: [/bin/true]}]\n";
    std::fs::write(&list, text).unwrap();
    let list = list.to_str().unwrap();
    let atlas = file("atlas.yaml");
    let output = home.example(&["--extensions", list, "atlas", "lint", &atlas]);
    assert!(!output.ok);
    assert!(
        output
            .err
            .contains("a validator with the name `is-ticket` already exists"),
        "{}",
        output.err
    );
}
