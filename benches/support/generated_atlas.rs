//! Atlases of any size, as text, and a request that the same few rules of each of them concern.

use std::fmt::Write as _;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::Timestamp;
use cra_core::base::digest::Digest;
use cra_core::engine::session::Session;
use serde_json::{Value, json};

/// The service whose rules are asked for; every size has it.
pub(crate) const SERVICE: usize = 7;

/// An action that is allowed: its policy allows it, its capability was unlocked, its limit is not
/// used up, and its checkpoint does not apply.
pub(crate) const ALLOWED: &str = "service7.read";

/// An action that a policy denies.
pub(crate) const DENIED: &str = "service7.purge";

/// An action that a checkpoint holds.
pub(crate) const HELD: &str = "service7.deploy_all";

/// A manifest with `rules` checkpoints and `rules` policies, and a capability and an action for
/// every fourth of them.
///
/// Patterns are of every shape: names, beginnings, ends, both, and parts in the middle.
pub(crate) fn manifest(rules: usize) -> String {
    let mut text = String::from(
        "atlas_version: '1.0'\natlas_id: com.example.speed\nversion: '1'\nname: Speed\n\
         unknown_actions: deny\ndefault_decision: allow\n",
    );
    text.push_str("capabilities:\n");
    for at in (0..rules).filter(|at| at % 4 == 3) {
        writeln!(
            text,
            "- {{capability_id: c{at}, name: C, actions: ['service{at}.*']}}"
        )
        .expect("a string takes everything");
    }
    text.push_str("checkpoints:\n- {checkpoint_id: start, name: S, trigger: {type: session_start}, unlock_capabilities: [c7]}\n");
    for at in 1..rules {
        let trigger = match at % 5 {
            0 => format!("type: action_pre, patterns: ['service{at}.drop', '*.drop_{at}']"),
            1 => format!("type: action_pre, patterns: ['admin.*.delete_{at}']"),
            2 => format!("type: action_pre, patterns: ['service{at}.deploy*']"),
            3 => format!("type: action_post, patterns: ['service{at}.*']"),
            _ => format!("type: keyword, patterns: ['keyword number {at}', 'phrase{at}']"),
        };
        writeln!(
            text,
            "- {{checkpoint_id: k{at}, name: K, mode: blocking, trigger: {{{trigger}}}}}"
        )
        .expect("a string takes everything");
    }
    text.push_str("policies:\n");
    for at in 0..rules {
        let service = at / 4 * 4 + 3;
        let rule = match at % 4 {
            0 => format!("type: deny, actions: ['service{service}.purge', '*.purge_{at}']"),
            1 => format!("type: requires_approval, actions: ['service{service}.transfer*']"),
            2 => format!(
                "type: rate_limit, actions: ['service{service}.re*'], max_calls: 100, \
                 window_seconds: 60"
            ),
            _ => format!("type: allow, actions: ['service{service}.*']"),
        };
        writeln!(text, "- {{policy_id: p{at}, {rule}}}").expect("a string takes everything");
    }
    text.push_str("actions:\n");
    for at in (0..rules).filter(|at| at % 4 == 3) {
        writeln!(
            text,
            "- {{action_id: service{at}.read, name: R, parameters_schema: {{type: object, \
             properties: {{id: {{type: integer}}}}, required: [id]}}}}"
        )
        .expect("a string takes everything");
    }
    text
}

/// A manifest with these keywords, ten to a checkpoint.
pub(crate) fn keyword_manifest(keywords: &[String]) -> String {
    let mut text = String::from(
        "atlas_version: '1.0'\natlas_id: com.example.words\nversion: '1'\nname: Words\ncheckpoints:\n",
    );
    for (at, words) in keywords.chunks(10).enumerate() {
        let words = words.join("', '");
        writeln!(
            text,
            "- {{checkpoint_id: k{at}, name: K, mode: blocking, \
             trigger: {{type: keyword, patterns: ['{words}']}}}}"
        )
        .expect("a string takes everything");
    }
    text
}

/// Generates `count` keywords of six to ten letters.
pub(crate) fn keywords(count: usize) -> Vec<String> {
    let mut dice = Dice(17);
    (0..count).map(|_| dice.word(6, 10)).collect()
}

/// Text of words of that length, in which hardly any keyword stands.
pub(crate) fn prose(bytes: usize) -> String {
    let mut dice = Dice(4711);
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&dice.word(2, 9));
        text.push(' ');
    }
    text.truncate(bytes);
    text
}

/// The Atlas of a manifest.
pub(crate) fn atlas(text: &str) -> Atlas {
    match load_str("generated.yaml", text) {
        Ok(loaded) => loaded.atlas,
        Err(error) => panic!("{error}"),
    }
}

/// A session that has what [`ALLOWED`] needs.
pub(crate) fn session() -> Session {
    let id = "s-1".parse().expect("an identifier");
    let spans = ("t-1".parse().expect("one"), "p-1".parse().expect("one"));
    let hash = Digest::of("speed");
    let mut session = Session::new(id, "bot".to_owned(), None, spans, hash, now());
    session
        .unlocked
        .insert(("com.example.speed".to_owned(), format!("c{SERVICE}")));
    session
}

/// The parameters of a request.
pub(crate) fn params() -> Value {
    json!({"id": 4711, "note": "as the customer asked", "tags": ["a", "b"]})
}

/// A moment.
pub(crate) fn now() -> Timestamp {
    "2026-01-01T00:00:00.000000Z".parse().expect("a moment")
}

/// Deterministic random numbers.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap_or_default() % below
    }

    fn word(&mut self, least: usize, most: usize) -> String {
        let length = least + self.next(most - least + 1);
        let letters = (0..length).map(|_| {
            let letter = u8::try_from(self.next(26)).unwrap_or_default();
            char::from(b'a' + letter)
        });
        letters.collect()
    }
}
