//! The architecture and the style of the code, checked by reading the sources.

use std::collections::BTreeMap;
use std::fs;

use super::support::{files, root};

/// The modules that each top-level module may name. Never sideways, never up: gateway and console do not know each
/// other, the engine and the Atlas know nothing that touches a disk or a screen.
const MAY_NAME: [(&str, &str); 11] = [
    ("base", ""),
    ("atlas", "base"),
    ("trace", "base"),
    ("engine", "atlas trace base"),
    ("memento", "base"),
    ("reconstruct", "base"),
    ("store", "trace base"),
    (
        "runtime",
        "store memento reconstruct engine atlas trace base",
    ),
    (
        "gateway",
        "runtime memento reconstruct engine atlas trace base",
    ),
    (
        "console",
        "runtime memento reconstruct engine atlas trace base",
    ),
    (
        "cli",
        "console gateway runtime store memento reconstruct engine atlas trace base",
    ),
];

/// Longest file, in lines without its tests. 500 lines are a hint to split by idea, 800 are too many.
const MAX_FILE: usize = 800;

/// Longest function, in lines as rustfmt breaks them.
const MAX_FUNCTION: usize = 90;

struct Source {
    name: String,
    text: String,
}

fn sources() -> Vec<Source> {
    let root = root();
    let read = |path: std::path::PathBuf| Source {
        name: path
            .strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned(),
        text: fs::read_to_string(&path).unwrap(),
    };
    files(&root.join("src"), "rs")
        .into_iter()
        .map(read)
        .collect()
}

fn module(name: &str) -> &str {
    let inside = name.strip_prefix("src/").unwrap();
    inside.split(['/', '.']).next().unwrap()
}

#[test]
fn modules_name_only_modules_below_them() {
    let rules: BTreeMap<_, _> = MAY_NAME.into_iter().collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let own = module(&source.name);
        if matches!(own, "lib" | "main") {
            continue;
        }
        let allowed = rules
            .get(own)
            .unwrap_or_else(|| panic!("no rule for the module `{own}`"));
        for (index, line) in source.text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            for named in code.split("crate::").skip(1) {
                let named: String = named
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                let known = rules.contains_key(named.as_str());
                if known && named != own && !allowed.split(' ').any(|name| name == named) {
                    wrong.push(format!(
                        "{}:{}: {own} names {named}",
                        source.name,
                        index + 1
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "a module names one that it must not know:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_engine_names_only_the_data_of_the_record() {
    for source in sources()
        .iter()
        .filter(|source| module(&source.name) == "engine")
    {
        for (index, line) in source.text.lines().enumerate() {
            let named = line.split("crate::trace::").nth(1);
            let fine = named.is_none_or(|named| named.starts_with("event"));
            assert!(
                fine,
                "{}:{}: the engine names more of trace than events",
                source.name,
                index + 1
            );
        }
    }
}

#[test]
fn the_engine_reads_no_clock_and_does_no_io() {
    let banned = [
        "std::fs",
        "std::io",
        "std::net",
        "tokio",
        "SystemTime",
        "Instant::now",
        "Utc::now",
    ];
    for source in sources() {
        if !matches!(module(&source.name), "engine" | "trace") {
            continue;
        }
        for name in banned {
            assert!(!source.text.contains(name), "{} uses {name}", source.name);
        }
    }
}

#[test]
fn files_and_functions_stay_short() {
    let mut long = Vec::new();
    for source in sources() {
        let lines = lines_without_tests(&source);
        if lines > MAX_FILE {
            long.push(format!(
                "{} has {lines} lines, more than {MAX_FILE}",
                source.name
            ));
        }
        for (name, lines) in functions(&source.text) {
            if lines > MAX_FUNCTION {
                long.push(format!("{}: fn {name} has {lines} lines", source.name));
            }
        }
    }
    assert!(long.is_empty(), "split by concern:\n{}", long.join("\n"));
}

/// Lines of a file before its test module; none for a file that has only tests.
fn lines_without_tests(source: &Source) -> usize {
    if source.name.contains("/tests") {
        return 0;
    }
    let lines = source.text.lines();
    lines
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .count()
}

/// Functions with their length, found by the indentation that rustfmt gives their closing brace.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<_> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some((before, after)) = line.split_once("fn ") else {
            continue;
        };
        let is_item = before
            .trim_start()
            .split(' ')
            .all(|word| matches!(word, "" | "pub" | "async" | "const") || word.starts_with("pub("));
        if !is_item {
            continue;
        }
        // A declaration without a body ends before any brace opens.
        let opens = lines[start..]
            .iter()
            .find(|line| line.ends_with([';', '{']));
        if opens.is_none_or(|line| line.ends_with(';')) {
            continue;
        }
        let end = format!("{}}}", " ".repeat(indent));
        let length = lines[start..].iter().position(|line| *line == end);
        let name = after.split(['(', '<']).next().unwrap().to_owned();
        found.extend(length.map(|length| (name, length + 1)));
    }
    found
}

/// First words of a doc comment that do not name its subject.
const BANNED_FIRST_WORDS: [&str; 9] = [
    "What ", "Whether ", "Who ", "How ", "Where ", "Why ", "It ", "They ", "The same",
];

/// Words that hide the actor of a sentence.
const BANNED_WORDS: [&str; 7] = [
    "somebody",
    "nobody",
    "whoever",
    "whatever",
    "everybody",
    "those who",
    "the one who",
];

/// Longest paragraph of the README, in words.
const MAX_PARAGRAPH: usize = 80;

fn documents() -> Vec<Source> {
    let root = root();
    let mut paths = files(&root.join("docs/src"), "md");
    let names = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ];
    paths.extend(names.map(|name| root.join(name)));
    let read = |path: std::path::PathBuf| Source {
        name: path
            .strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned(),
        text: fs::read_to_string(&path).unwrap(),
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn texts_for_people_name_their_actor() {
    let mut wrong = Vec::new();
    for source in sources().into_iter().chain(documents()) {
        if source.name.contains("/tests") {
            continue;
        }
        let code = source.text.lines().take(lines_of_text(&source));
        for (index, line) in code.enumerate() {
            let lower = line.to_lowercase();
            let is_word = |word: &&&str| {
                let mut parts = lower.split(|c: char| !c.is_alphanumeric());
                lower.contains(**word) && (word.contains(' ') || parts.any(|part| part == **word))
            };
            let words = BANNED_WORDS.iter().filter(is_word);
            wrong.extend(
                words.map(|word| format!("{}:{}: `{word}`: {line}", source.name, index + 1)),
            );
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Lines of a document, or of a source file before its test module.
fn lines_of_text(source: &Source) -> usize {
    if source.name.starts_with("src/") {
        lines_without_tests(source)
    } else {
        source.text.lines().count()
    }
}

#[test]
fn paragraphs_of_the_readme_are_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for paragraph in readme.split("\n\n") {
        let is_text = !paragraph.starts_with(['|', '`', '-', '#', '<', '!']);
        let words = paragraph.split_whitespace().count();
        assert!(
            !is_text || words <= MAX_PARAGRAPH,
            "{words} words: {paragraph}"
        );
    }
}

/// Files whose doc comments are texts for users: help of commands, and descriptions of tools.
fn has_help_texts(source: &Source) -> bool {
    source.name.starts_with("src/cli/args")
        || source.name == "src/gateway/transport/mcp/tool_server.rs"
}

fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.starts_with("//")
        .then(|| line.trim_start_matches(['/', '!']).trim())
}

#[test]
fn comments_name_their_subject_and_their_actor() {
    let mut wrong = Vec::new();
    for source in sources() {
        if has_help_texts(&source) {
            continue;
        }
        let mut is_inside = false;
        for (index, line) in source.text.lines().enumerate() {
            let text = comment(line);
            let is_doc = line.trim_start().starts_with("///") || line.starts_with("//!");
            let place = format!("{}:{}", source.name, index + 1);
            if let Some(text) = text {
                let starts = BANNED_FIRST_WORDS.iter().any(|word| text.starts_with(word));
                if is_doc && !is_inside && starts {
                    wrong.push(format!("{place}: name the subject first: {text}"));
                }
                let lower = text.to_lowercase();
                let words = BANNED_WORDS.iter().filter(|word| lower.contains(*word));
                wrong.extend(words.map(|word| format!("{place}: `{word}`: {text}")));
            }
            is_inside = is_doc && text.is_some();
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn closure_parameters_have_names() {
    for source in sources() {
        for (index, line) in source.text.lines().enumerate() {
            let place = format!("{}:{}", source.name, index + 1);
            assert!(!line.contains("|it|"), "{place}: {line}");
        }
    }
}

#[test]
fn a_type_name_is_defined_at_most_twice() {
    // Associated types, and the conventional names inside a module of their own.
    const CONVENTIONAL: [&str; 8] = [
        "Error", "Err", "Config", "State", "Output", "Item", "Ok", "Value",
    ];
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources() {
        for line in source.text.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let keyword = words
                .iter()
                .position(|word| matches!(*word, "struct" | "enum" | "trait" | "type"));
            let Some(keyword) = keyword.filter(|at| *at <= 1) else {
                continue;
            };
            if words.first().is_some_and(|word| word.starts_with("//")) {
                continue;
            }
            let name = words.get(keyword + 1).copied().unwrap_or_default();
            let name: String = name
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if name.starts_with(char::is_uppercase) && !CONVENTIONAL.contains(&name.as_str()) {
                defined.entry(name).or_default().push(source.name.clone());
            }
        }
    }
    defined.retain(|_, places| places.len() > 2);
    assert!(defined.is_empty(), "{defined:#?}");
}

#[test]
fn sources_contain_no_development_markers() {
    let root = root();
    let mut texts = sources();
    for name in [
        "README.md",
        "CHANGELOG.md",
        "tests/conformance.md",
        "Cargo.toml",
    ] {
        let text = fs::read_to_string(root.join(name)).unwrap();
        texts.push(Source {
            name: name.to_owned(),
            text,
        });
    }
    for source in texts {
        for banned in ["todo!", "FIXME", "XXX", "in a real implementation"] {
            assert!(
                !source.text.contains(banned),
                "{} contains `{banned}`",
                source.name
            );
        }
    }
}
