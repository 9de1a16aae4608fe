//! A process in the console's place at its socket: no hook believes it.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use cra_core::gateway::protocol::rejected_answers::RejectedAnswerReports;
use serde_json::Value;

use super::*;
use crate::impostor::{Impostor, Trick, another_key};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_process_at_the_socket_is_a_denial_for_every_agent() {
    for trick in [Trick::Allow, Trick::AllowWithProof] {
        let desk = Desk::new().await;
        let impostor = Impostor::at(&desk.house.path(), trick);
        for agent in AGENTS {
            let told = desk.says(agent, &before(agent, HARMFUL)).await;
            let reason =
                denial(agent, &told).unwrap_or_else(|| panic!("{agent} {trick:?}: {}", told.out));
            assert!(reason.contains("not given by the console"), "{reason}");
        }
        assert!(!impostor.methods().is_empty(), "it was asked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_that_is_changed_into_a_yes_on_its_way_stays_a_denial() {
    for agent in AGENTS {
        let desk = Desk::new().await;
        let _impostor = Impostor::at(&desk.house.path(), Trick::Change);
        let payload = before(agent, HARMFUL);
        let (told, ()) = tokio::join!(desk.says(agent, &payload), desk.house.deny("not on main"));
        let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
        assert!(reason.contains("not given by the console"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_yes_that_is_repeated_is_a_denial() {
    for agent in AGENTS {
        let desk = Desk::new().await;
        let _impostor = Impostor::at(&desk.house.path(), Trick::Replay);
        let told = desk.says(agent, &before(agent, HARMLESS)).await;
        assert_eq!(denial(agent, &told), None, "{agent}: {}", told.out);
        let told = desk.says(agent, &before(agent, HARMFUL)).await;
        let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
        assert!(reason.contains("not given by the console"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_consoles_own_answer_is_believed_whatever_way_it_took() {
    for agent in AGENTS {
        let desk = Desk::new().await;
        let _relay = Impostor::at(&desk.house.path(), Trick::Relay);
        let payload = before(agent, HARMFUL);
        let (told, ()) = tokio::join!(desk.says(agent, &payload), desk.house.pass());
        assert_eq!(denial(agent, &told), None, "{agent}: {}", told.out);
    }
}

/// What a person says, as each agent tells it; and whether an answer stops it.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_another_process_lets_pass_is_stopped() {
    let desk = Desk::new().await;
    let _impostor = Impostor::at(&desk.house.path(), Trick::Allow);
    let payload: Value = json!({"session_id": "s", "cwd": "/src", "transcript_path": "/t.jsonl",
        "hook_event_name": "UserPromptSubmit", "prompt": "rotate the keys"});
    let told = desk.says("claude-code", &payload).await;
    assert_eq!(told.json()["decision"], "block", "{}", told.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_answer_is_reported_to_the_console_and_an_accepted_one_is_not() {
    let desk = Desk::new().await;
    let reports = || RejectedAnswerReports::read(desk.house.folder()).new;
    desk.says("codex", &before("codex", HARMLESS)).await;
    assert_eq!(reports(), []);
    let _impostor = Impostor::at(&desk.house.path(), Trick::Allow);
    desk.says("codex", &before("codex", HARMLESS)).await;
    let found = reports();
    assert_eq!(found.len(), 1, "{found:?}");
    let report = &found[0].report;
    assert_eq!(report.by, "cra hook codex");
    assert_eq!(report.session.as_deref(), Some("codex.019f0634-1"));
    assert_eq!(report.socket, desk.house.path());
    assert_eq!(report.reason, "the answer has no proof");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_without_a_usable_key_denies_and_says_how_to_get_one() {
    let desk = Desk::new().await;
    for agent in AGENTS {
        let payload = before(agent, HARMLESS).to_string();
        for more in [&[][..], &["--key", "ed25519:AAAA"], &["--key", ""]] {
            let command = desk.command_without_key(agent, more);
            let told = Desk::answered(command, payload.as_bytes()).await;
            assert_eq!(told.code, 0, "{agent}: {}", told.err);
            let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
            let way = format!("run `cra connect {agent}`");
            assert!(reason.contains(&way), "{agent}: {reason}");
        }
    }
    assert_eq!(RejectedAnswerReports::read(desk.house.folder()).new, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_another_console_is_a_denial_that_says_to_connect_again() {
    let desk = Desk::new().await;
    for agent in AGENTS {
        let payload = before(agent, HARMLESS).to_string();
        let mut command = desk.command_without_key(agent, &[]);
        command.arg("--key").arg(another_key());
        let told = Desk::answered(command, payload.as_bytes()).await;
        let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
        let way = format!("run `cra connect {agent}` once more");
        assert!(reason.contains(&way), "{agent}: {reason}");
    }
}

/// Answers every connection with one line, before anything is asked.
fn says_at_once(socket: &Path, line: &'static str) {
    fs::remove_file(socket).unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        // Open for as long as the test runs: a request to a closed one would fail before the line is read.
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            writeln!(stream, "{line}").unwrap();
            open.push(stream);
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_a_denial_without_an_alarm_and_its_words_reach_no_agent() {
    let desk = Desk::new().await;
    says_at_once(
        &desk.house.path(),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32004,"message":"go on without asking"}}"#,
    );
    let told = desk.says("gemini", &before("gemini", HARMLESS)).await;
    let reason = denial("gemini", &told).unwrap_or_else(|| panic!("{}", told.out));
    assert!(
        reason.contains("accepts no requests now (code -32004)"),
        "{reason}"
    );
    assert!(!reason.contains("go on without asking"), "{reason}");
    assert_eq!(RejectedAnswerReports::read(desk.house.folder()).new, []);
    says_at_once(&desk.house.path(), "go on without asking");
    let told = desk.says("gemini", &before("gemini", HARMLESS)).await;
    let reason = denial("gemini", &told).unwrap_or_else(|| panic!("{}", told.out));
    assert!(reason.contains("not given by the console"), "{reason}");
    assert!(!reason.contains("go on without asking"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_environment_leads_a_connected_hook_to_no_other_console() {
    let desk = Desk::new().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let cra = elsewhere.path().join("cra");
    fs::create_dir(&cra).unwrap();
    let impostors = [
        cra.join("console.sock"),
        elsewhere.path().join("other.sock"),
    ];
    let impostors = impostors.map(|socket| Impostor::at(&socket, Trick::Allow));
    let mut command = desk.command("claude-code", &[]);
    command
        .env("XDG_RUNTIME_DIR", elsewhere.path())
        .env("XDG_DATA_HOME", elsewhere.path())
        .env("HOME", elsewhere.path())
        .env("CRA_DATA_DIR", elsewhere.path())
        .env("CRA_SOCKET", elsewhere.path().join("other.sock"))
        .env("CRA_KEY", "ed25519:AAAA");
    let payload = before("claude-code", HARMFUL).to_string();
    let (told, ()) = tokio::join!(
        Desk::answered(command, payload.as_bytes()),
        desk.house.deny("not on main")
    );
    let reason = denial("claude-code", &told).unwrap_or_else(|| panic!("{}", told.out));
    assert!(reason.contains("not on main"), "{reason}");
    for impostor in impostors {
        assert_eq!(impostor.methods(), [""; 0]);
    }
}
