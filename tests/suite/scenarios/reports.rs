//! Scenarios in which agents report, policies are asked and guidance is compared: each expectation can fail.

use super::{RunOutput, is_unreadable, play_text, root};

/// Runs these steps against an Atlas of the scenarios that show features.
fn play_under(atlas: &str, steps: &str) -> RunOutput {
    let atlas = root().join("tests/data/features/atlas").join(atlas);
    let start = "  - start: { session: s-1 }\n";
    let text = format!("atlas: {}\nsteps:\n{start}{steps}", atlas.display());
    play_text(&text, &[])
}

#[test]
fn expectations_of_guidance_caches_policies_rules_and_waits_can_fail() {
    let cases = [
        (
            "guidance.yaml",
            "request: { session: s-1, action: look }",
            "{ guidance: [{ content: Walk. }] }",
            "expected guidance [{\"content\":\"Walk.\"}], got guidance [{",
        ),
        (
            "guidance.yaml",
            "request: { session: s-1, action: look }",
            "{ guidance: [] }",
            "expected guidance [], got guidance [{",
        ),
        (
            "caches.yaml",
            "input: { session: s-1, text: hello }",
            "{ cached: true }",
            "expected cached, got not cached",
        ),
        (
            "caches.yaml",
            "policy: { session: s-1, action: dig }",
            "{ verdict: allow }",
            "expected allow, got deny",
        ),
        (
            "caches.yaml",
            "policy: { session: s-1, action: dig }",
            "{ policy_id: other }",
            "expected other, got no-digging",
        ),
        (
            "caches.yaml",
            "policy: { session: s-9, action: dig }",
            "{ verdict: deny }",
            "expected deny, got denied (session)",
        ),
        (
            "caches.yaml",
            "request: { session: s-1, action: dig }",
            "{ not_synced: [action_blocked] }",
            "expected action_blocked recorded without waiting for the disk, got on disk [",
        ),
        (
            "caches.yaml",
            "request: { session: s-1, action: walk }",
            "{ not_synced: [action_blocked] }",
            "expected action_blocked recorded without waiting for the disk, got recorded [",
        ),
        (
            "conversation.yaml",
            "turn: { session: s-1, message_id: m-1, message: go }",
            "{ rule: 1 }",
            "expected rule 1, got rule 6",
        ),
        (
            "caches.yaml",
            "recovered: { session: s-1, method: retry }",
            "{}",
            "expected an error of s-1, got no error was reported",
        ),
        (
            "caches.yaml",
            "edit: { thread: t-9, summary: { arc: wait } }",
            "{}",
            "expected the summary of t-9, got the thread has no summary",
        ),
    ];
    for (atlas, step, expect, reply) in cases {
        let ran = play_under(atlas, &format!("  - {step}\n    expect: {expect}\n"));
        assert_eq!(ran.code, 4, "{step} {expect}\n{}{}", ran.out, ran.err);
        assert!(ran.out.contains(reply), "`{reply}` is not in:\n{}", ran.out);
    }
}

#[test]
fn invalid_report_step_is_refused() {
    let steps = "
  - feedback: { session: s-1, context_id: map, usage_outcome: used }
  - output: { session: s-1, output_type: sound }
  - error: { session: s-1, type: io, stack: here }
  - recovered: { session: s-1, success: maybe }
  - policy: { session: s-1 }
    expect: { verdict: yes, cached: 1 }
  - edit: { thread: t-1, summary: { arc: 1 } }
  - request: { session: s-1, action: walk }
    expect: { guidance: [{ text: Walk. }], cached: true }
";
    is_unreadable(
        &play_under("caches.yaml", steps),
        &[
            "missing key `helpful`",
            "unknown usage_outcome `used`",
            "unknown output_type `sound`",
            "missing key `text`",
            "unknown key `stack`",
            "in `steps[4].recovered.success`",
            "missing key `method`",
            "missing key `action`",
            "in `steps[5].expect.cached`",
            "in `steps[6].edit.summary`",
            "in `steps[7].expect.guidance[0].text`",
            "in `steps[7].expect.cached`",
        ],
    );
}
