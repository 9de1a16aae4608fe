use serde_json::json;

use super::*;
use crate::atlas::diagnostic::Problems;

fn tree(source: &str) -> YamlNode {
    let mut problems = Problems::new("test.yaml", source);
    let node = parse(source, &mut problems);
    let found = problems.into_diagnostics();
    assert!(found.is_empty(), "{found:?}");
    node.unwrap()
}

fn text_at<'s>(source: &'s str, path: &str) -> &'s str {
    let span = tree(source).span_of(path);
    source.get(span.start..span.end).unwrap()
}

// covers B17
#[test]
fn plain_scalars_have_types_and_quoted_scalars_are_text() {
    let source = "a: 1\nb: '1'\nc: true\nd: \"true\"\ne: yes\nf:\ng: ~\nh: 1.5\ni: |\n  x\n  y\nj: >\n  x\n  y\n";
    assert_eq!(
        tree(source).to_json(),
        json!({
            "a": 1, "b": "1", "c": true, "d": "true", "e": "yes", "f": null, "g": null, "h": 1.5,
            "i": "x\ny\n", "j": "x y\n",
        })
    );
}

#[test]
fn json_is_parsed_as_yaml() {
    let json = json!({"a\"/": ["é", "😀", "\u{1}", -1, 2.5e10, {}, []], "b": null});
    let escaped = "{\"a\\\"\\/\": [\"\\u00e9\", \"\\ud83d\\ude00\", \"\\u0001\", -1, 2.5e10, {}, []],\n\t\"b\":null}";
    assert_eq!(tree(&json.to_string()).to_json(), json);
    assert_eq!(tree(escaped).to_json(), json);
}

#[test]
fn path_finds_the_span_of_its_text() {
    let source = "a:\n  - b: one\n    c: [x, \"y z\"]\n  - d: |\n      block\n      text\n\n    e:\nf: {g: h}\n";
    let cases = [
        ("a[0].b", "one"),
        ("a[0].c[1]", "\"y z\""),
        ("a[0].c", "[x, \"y z\"]"),
        ("a[0]", "b"),
        ("a[1].d", "block\n      text"),
        ("a[1].e", "e"),
        ("f", "{g: h}"),
        ("f.g", "h"),
        // A path that does not exist points to its nearest existing parent.
        ("f.missing", "{g: h}"),
        (
            "a[7].b",
            "- b: one\n    c: [x, \"y z\"]\n  - d: |\n      block\n      text\n\n    e",
        ),
        ("missing", "a"),
    ];
    for (path, expected) in cases {
        assert_eq!(text_at(source, path), expected, "{path}");
    }
}
