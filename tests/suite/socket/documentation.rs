//! The page about the socket: every call has an example there, and every example is true.

use std::collections::BTreeSet;

use cra_core::gateway::protocol::call;
use cra_core::gateway::protocol::proof::{
    AnswerSigner, AnswerVerifier, Challenge, ChallengedRequest,
};
use cra_core::trace::note::Signer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use super::TestConsole;

const PAGE: &str = include_str!("../../../assets/protocols/socket.md");

/// Tells whether an answer matches the page; `...` stands for anything.
fn fits(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::String(any), _) if any == "..." => !found.is_null(),
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.len() == found.len()
                && wanted
                    .iter()
                    .all(|(name, value)| found.get(name).is_some_and(|found| fits(value, found)))
        }
        (wanted, found) => wanted == found,
    }
}

#[tokio::test]
async fn every_documented_call_has_an_example_that_works() {
    let console = TestConsole::new().await;
    let mut stream = console.connect_raw().await;
    let mut shown = BTreeSet::new();
    for line in PAGE.lines().map(str::trim_start) {
        if let Some(sent) = line.strip_prefix("> ") {
            let call: Value = serde_json::from_str(sent).unwrap();
            shown.insert(call["method"].as_str().unwrap().to_owned());
            stream
                .write_all(format!("{sent}\n").as_bytes())
                .await
                .unwrap();
        } else if let Some(wanted) = line.strip_prefix("< ") {
            let mut found = String::new();
            stream.read_line(&mut found).await.unwrap();
            let (wanted, found): (Value, Value) = (
                serde_json::from_str(wanted).unwrap(),
                serde_json::from_str(&found).unwrap(),
            );
            assert!(fits(&wanted, &found), "wanted {wanted:#}\nactual {found:#}");
        } else if line == "An operator passes `c-1`." {
            console.pass().await;
        }
    }
    let calls: BTreeSet<_> = call::names().map(str::to_owned).collect();
    assert_eq!(shown, calls);
    for call in calls {
        assert!(PAGE.contains(&format!("\n## {call}\n")), "{call}");
    }
}

/// A line of the page's example for implementers, by the word that it begins with.
fn example(word: &str) -> &'static str {
    let mut lines = PAGE.lines().map(str::trim_start);
    let line = lines.find_map(|line| line.strip_prefix(word)).unwrap();
    line.trim_start()
}

/// The lines of the page were made by another implementation of Ed25519, SHA-256 and HMAC.
#[test]
fn documented_proof_verifies_and_matches_the_console() {
    let (request, answer) = (example("request "), example("answer  "));
    let sent: Value = serde_json::from_str(request).unwrap();
    let challenge: Challenge = sent["challenge"].as_str().unwrap().parse().unwrap();
    let challenged = ChallengedRequest::new(challenge, request.as_bytes());
    let key: AnswerVerifier = example("key  ").parse().unwrap();
    let proven = key.verify(&challenged, answer.as_bytes()).unwrap();
    let proven = String::from_utf8(proven).unwrap();
    assert_eq!(proven, r#"{"id":7,"jsonrpc":"2.0","result":{}}"#);
    let signer = AnswerSigner::derive(&Signer::new("cra/log-1", &[7; 32]).unwrap());
    assert_eq!(signer.verifier(), key);
    assert_eq!(signer.add_proof(&challenged, &proven), answer);
}

#[tokio::test]
async fn answer_is_signed_only_for_callers_that_request_proof() {
    let console = TestConsole::new().await;
    let key = console.gateway.verifier();
    let mut stream = console.connect_raw().await;
    let challenge = Challenge::random().unwrap();
    for method in ["resolve", "no.such.call"] {
        for asks in [true, false] {
            let mut request = json!({"jsonrpc": "2.0", "id": "a", "method": method,
                "params": {"session": "s-1"}});
            if asks {
                request["challenge"] = challenge.to_string().into();
            }
            let request = format!("{request:#}").replace('\n', " ");
            let sent = format!("{request}\n");
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let line = line.strip_suffix('\n').unwrap();
            let challenged = ChallengedRequest::new(challenge, request.as_bytes());
            let proven = key.verify(&challenged, line.as_bytes());
            assert_eq!(proven.is_ok(), asks, "{line}");
            let answer: Value = serde_json::from_str(line).unwrap();
            assert_eq!(answer.get("proof").is_some(), asks, "{line}");
            assert!(answer.get("error").is_some(), "{line}");
        }
    }
    let short = json!({"jsonrpc": "2.0", "id": 1, "method": "resolve", "challenge": "AAAA"});
    let sent = format!("{short}\n");
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("32 random bytes in base64"), "{line}");
}
