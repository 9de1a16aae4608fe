use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::atlas::load_str;

/// Creates an Atlas with these pattern lists in every part that has patterns.
fn atlas(id: &str, lists: &[Vec<String>]) -> Atlas {
    let mut text = format!("atlas_version: '1.0'\natlas_id: {id}\nversion: '1'\nname: Example\n");
    let mut section = |name: &str, item: &dyn Fn(usize, &str) -> String| {
        text.push_str(name);
        text.push_str(":\n");
        for (at, list) in lists.iter().enumerate() {
            let list: Vec<_> = list.iter().map(|pattern| format!("'{pattern}'")).collect();
            writeln!(
                text,
                "- {{{}}}",
                item(at, &format!("[{}]", list.join(", ")))
            )
            .unwrap();
        }
    };
    section("capabilities", &|at, list| {
        format!("capability_id: c{at}, name: C, actions: {list}")
    });
    section("policies", &|at, list| {
        format!("policy_id: p{at}, type: allow, actions: {list}")
    });
    section("context_blocks", &|at, list| {
        format!("context_id: x{at}, name: X, content: x, inject_mode: on_match, actions: {list}")
    });
    section("checkpoints", &|at, list| {
        let kind = if at % 2 == 0 {
            "action_pre"
        } else {
            "action_post"
        };
        format!(
            "checkpoint_id: k{at}, name: K, trigger: {{type: {kind}, patterns: {list}}}, \
             guidance: {{content: x}}"
        )
    });
    let loaded = load_str("test.yaml", &text);
    loaded
        .unwrap_or_else(|error| panic!("{error:?}\n{text}"))
        .atlas
}

fn first_matches<'a, T>(
    items: &'a [T],
    action: &str,
    patterns: impl Fn(&'a T) -> Option<&'a Patterns>,
) -> Vec<(usize, &'a str)> {
    let items = items.iter().enumerate();
    let matching = items.filter_map(|(at, item)| {
        let pattern = patterns(item)?.first_match(action)?;
        Some((at, pattern.as_str()))
    });
    matching.collect()
}

fn found<'a, T: 'a>(
    atlas: &Atlas,
    matched: impl Iterator<Item = MatchedPart<'a, T>>,
) -> Vec<(usize, &'a str)> {
    let own = matched.filter(|matched| std::ptr::eq(matched.atlas, atlas));
    own.map(|matched| (matched.place, matched.pattern.as_str()))
        .collect()
}

fn before(checkpoint: &Checkpoint) -> Option<&Patterns> {
    if let Trigger::ActionPre(patterns) = &checkpoint.trigger {
        Some(patterns)
    } else {
        None
    }
}

fn after(checkpoint: &Checkpoint) -> Option<&Patterns> {
    if let Trigger::ActionPost(patterns) = &checkpoint.trigger {
        Some(patterns)
    } else {
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn index_lookup_agrees_with_a_scan(
        one in prop::collection::vec(prop::collection::vec("[ab.*]{1,5}", 1..4), 1..12),
        other in prop::collection::vec(prop::collection::vec("[ab.*]{1,5}", 1..4), 1..12),
        actions in prop::collection::vec("[ab.]{0,8}", 1..20),
    ) {
        let atlases = [atlas("one", &one), atlas("other", &other)];
        for action in &actions {
            let matches = ActionMatches::of(&atlases, action);
            for atlas in &atlases {
                prop_assert_eq!(
                    found(atlas, matches.capabilities()),
                    first_matches(&atlas.capabilities, action, |capability| Some(&capability.actions))
                );
                prop_assert_eq!(
                    found(atlas, matches.policies()),
                    first_matches(&atlas.policies, action, |policy| Some(&policy.actions))
                );
                prop_assert_eq!(
                    found(atlas, matches.injections()),
                    first_matches(&atlas.injections, action, |injection| Some(&injection.actions))
                );
                prop_assert_eq!(
                    found(atlas, matches.checkpoints_before()),
                    first_matches(&atlas.checkpoints, action, before)
                );
                prop_assert_eq!(
                    found(atlas, matches.checkpoints_after()),
                    first_matches(&atlas.checkpoints, action, after)
                );
                prop_assert_eq!(matches.is_known_by(atlas), atlas.knows(action));
            }
            prop_assert_eq!(matches.is_known(), atlases.iter().any(|atlas| atlas.knows(action)));
        }
    }
}
