use serde_json::json;

use super::*;

fn of(tool: &str, input: Value) -> Result<Vec<ToolAction>, String> {
    let Value::Object(input) = input else {
        panic!("{input} is no object");
    };
    actions(tool, &input, Some("/src"), None)
}

/// Returns the value by which each action is judged.
fn judged_by(tool: &str, input: Value, key: &str) -> Vec<String> {
    let found = of(tool, input).unwrap().into_iter();
    let found = found.map(|action| action.params[key].as_str().unwrap().to_owned());
    found.collect()
}

#[test]
fn a_call_with_two_different_targets_cannot_be_judged() {
    for (tool, input) in [
        (
            "view",
            json!({"file_path": "/src/README.md", "path": "/home/u/.ssh/id_rsa"}),
        ),
        (
            "create",
            json!({"path": "/src/.github/hooks/cra.json", "file_path": "/src/a"}),
        ),
        ("Bash", json!({"command": "ls", "cmd": "rm -rf /"})),
        (
            "apply_patch",
            json!({"command": "*** Add File: a", "patch": "*** Add File: b"}),
        ),
    ] {
        let why = of(tool, input).unwrap_err();
        assert!(why.contains("2 different values"), "{tool}: {why}");
    }
    let same = json!({"file_path": "/src/a", "path": "/src/a"});
    assert_eq!(judged_by("Read", same, "path"), ["/src/a"]);
}

#[test]
fn each_target_of_a_call_is_a_separate_action() {
    let many = json!({"include": ["/home/u/.ssh/id_rsa", ".env"], "paths": ["a"]});
    assert_eq!(
        judged_by("read_many_files", many, "path"),
        ["/src/a", "/home/u/.ssh/id_rsa", "/src/.env"]
    );
    let urls = json!({"urls": ["https://ok", "https://evil"], "query": "x"});
    assert_eq!(
        judged_by("fetch_webpage", urls, "url"),
        ["https://ok", "https://evil"]
    );
    let decoy = json!({"url": "https://ok", "prompt": "read https://evil"});
    assert_eq!(
        judged_by("web_fetch", decoy.clone(), "url"),
        ["https://ok", "read https://evil"]
    );
    // The prompt of `WebFetch` is a question about the page, not an address.
    assert_eq!(judged_by("WebFetch", decoy, "url"), ["https://ok"]);
}

#[test]
fn a_search_is_judged_by_its_files_and_not_by_its_search_text() {
    let grep = json!({"pattern": "=", "glob": "**/.env", "output_mode": "content"});
    assert_eq!(judged_by("Grep", grep, "path"), ["/src/**/.env"]);
    let grep = json!({"pattern": "password", "path": "/etc"});
    assert_eq!(judged_by("rg", grep, "path"), ["/etc"]);
    let find = json!({"pattern": "../**/id_rsa"});
    assert_eq!(judged_by("Glob", find, "path"), ["/**/id_rsa"]);
    assert_eq!(judged_by("LS", json!({}), "path"), ["/src"]);
}

#[test]
fn all_spellings_of_a_path_are_judged_as_one_path() {
    for (written, place) in [
        ("/src/.claude/./settings.json", "/src/.claude/settings.json"),
        ("settings.json", "/src/settings.json"),
        ("../x//y/", "/x/y"),
        ("/../../etc/passwd", "/etc/passwd"),
        ("~/.ssh/id_rsa", "~/.ssh/id_rsa"),
    ] {
        let found = of("Write", json!({"file_path": written})).unwrap();
        assert_eq!(found[0].params["path"], place);
        assert_eq!(found[0].params["file_path"], written, "as it was written");
    }
    let patch = "*** Begin Patch\n*** Update File: .claude/../a\n*** Move to: b\n*** End Patch";
    let found = judged_by("apply_patch", json!({"input": patch}), "path");
    assert_eq!(found, ["/src/a", "/src/b"]);
    assert_eq!(
        judged_by("Edit", json!({"input": patch}), "path"),
        ["/src/a", "/src/b"]
    );
}

#[test]
fn values_from_the_agent_take_precedence_over_values_from_the_model() {
    let input = json!({"command": "ls", "cwd": "/tmp", "tool": "Read", "subagent": "x"});
    let found = of("Bash", input).unwrap();
    let params = &found[0].params;
    assert_eq!(
        (&params["cwd"], &params["tool"]),
        (&json!("/src"), &json!("Bash"))
    );
    assert_eq!(
        (&params["asked_cwd"], &params["asked_tool"]),
        (&json!("/tmp"), &json!("Read"))
    );
    assert_eq!(
        (params.get("subagent"), &params["asked_subagent"]),
        (None, &json!("x"))
    );
}

#[test]
fn a_tool_of_one_server_cannot_take_the_name_of_another_servers_tool() {
    for (tool, name) in [
        ("mcp__github__get_issue", "mcp.github.get_issue"),
        ("mcp__a__b__c", "mcp.a.b__c"),
        ("MCP:github.get_issue", "mcp.unknown.github_get_issue"),
        ("mcp_x", "mcp.unknown.x"),
        ("mcp__evil.github__x", "mcp.evil_github.x"),
        ("a.b", "tool.a_b"),
    ] {
        assert_eq!(of(tool, json!({})).unwrap()[0].name, name);
    }
}

#[test]
fn a_call_without_an_expected_parameter_cannot_be_judged() {
    for (tool, input) in [
        ("Bash", json!({})),
        ("Bash", json!({"command": {"x": 1}})),
        ("Bash", json!({"command": ["ls", 1]})),
        ("Read", json!({"path": ["a"]})),
        ("Read", json!({"paths": [{"x": 1}]})),
        ("read_many_files", json!({})),
        ("Grep", json!({"glob": {"x": 1}})),
        ("WebFetch", json!({"prompt": "what is it?"})),
        ("apply_patch", json!({"input": "no file"})),
        ("Task", json!({})),
    ] {
        let why = of(tool, input.clone()).unwrap_err();
        assert!(
            why.starts_with(&format!("`{tool}` ")),
            "{tool} {input}: {why}"
        );
    }
    let agent = judged_by("spawn_agent", json!({"items": [1]}), "prompt");
    assert_eq!(agent, [r#"{"items":[1]}"#]);
}
