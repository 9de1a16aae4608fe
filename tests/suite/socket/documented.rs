//! The page about the socket: every call has an example there, and every example is true.

use std::collections::BTreeSet;

use cra_core::gateway::call;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use super::House;

const PAGE: &str = include_str!("../../../assets/doors/socket.md");

/// Whether an answer is as the page says; `...` stands for anything.
fn fits(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::String(any), _) if any == "..." => !found.is_null(),
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.len() == found.len()
                && wanted
                    .iter()
                    .all(|(name, it)| found.get(name).is_some_and(|found| fits(it, found)))
        }
        (wanted, found) => wanted == found,
    }
}

#[tokio::test]
async fn every_call_has_an_example_and_every_example_is_true() {
    let house = House::new().await;
    let mut stream = house.raw().await;
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
            house.pass().await;
        }
    }
    let calls: BTreeSet<_> = call::names().map(str::to_owned).collect();
    assert_eq!(shown, calls);
    for call in calls {
        assert!(PAGE.contains(&format!("\n## {call}\n")), "{call}");
    }
}
