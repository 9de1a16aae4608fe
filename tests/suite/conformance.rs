//! The conformance list against the tests that it names.
//!
//! A test says what it shows in a comment right above its attributes: `covers`, then the numbers. A feature counts as
//! shown by tests that use the program as its users do; tests of parts are listed in a separate column. A scenario in
//! `tests/data/features` says it in a line `# covers`, and the suite plays it with `cra run`.
//! `UPDATE_CONFORMANCE=1` writes the list's last two columns and its sum anew from those comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::support::{files, root};

/// Number of features of each section.
const SECTIONS: [(char, usize); 5] = [('A', 38), ('B', 30), ('T', 36), ('D', 20), ('R', 26)];

/// Tests that use an interface of the program: its sockets, its hooks, its commands, its screens.
const INTERFACES: [&str; 11] = [
    "tests/e2e/",
    "src/console/tests",
    "tests/suite/adapters",
    "tests/suite/answers",
    "tests/suite/connections",
    "tests/suite/http",
    "tests/suite/lint",
    "tests/suite/mcp",
    "tests/suite/example_plugin",
    "tests/suite/scenarios",
    "tests/suite/socket",
];

/// Folder of the scenarios that show features.
const SCENARIOS: &str = "tests/data/features";

/// Words in tests elsewhere that start the program, or a server for agents.
const STARTS: [&str; 5] = [
    "CARGO_BIN_EXE_cra",
    "TestHome::",
    "TestConsole::",
    "command(",
    ".cra(",
];

/// Tests that claim a feature.
#[derive(Default)]
struct Claim {
    /// Those that use an interface of the program.
    shown: BTreeSet<String>,
    /// Those of parts of it.
    inside: BTreeSet<String>,
}

/// Claims of all tests, by the number of the feature.
fn claims() -> BTreeMap<String, Claim> {
    let root = root();
    let mut claims: BTreeMap<String, Claim> = BTreeMap::new();
    let sources = [
        files(&root.join("src"), "rs"),
        files(&root.join("tests"), "rs"),
    ]
    .concat();
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(numbers) = line.strip_prefix("// covers ") else {
                continue;
            };
            let place = format!("{}:{}", path.display(), index + 1);
            let follows: Vec<_> = lines[index + 1..].iter().take(4).collect();
            assert!(
                follows
                    .iter()
                    .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test")),
                "{place}: `covers` does not stand above a test"
            );
            let name = follows
                .iter()
                .find_map(|line| line.split_once("fn ")?.1.split('(').next())
                .unwrap_or_else(|| panic!("{place}: no test follows"));
            let relative = path.strip_prefix(&root).unwrap().to_string_lossy();
            let uses_interface = INTERFACES.iter().any(|known| relative.starts_with(known))
                || starts_program(&text, name);
            for number in numbers.split(", ") {
                assert!(is_number(number), "{place}: `{number}` is not a feature");
                let claim = claims.entry(number.to_owned()).or_default();
                let tests = if uses_interface {
                    &mut claim.shown
                } else {
                    &mut claim.inside
                };
                tests.insert(name.to_owned());
            }
        }
    }
    for path in files(&root.join(SCENARIOS), "yaml") {
        let text = fs::read_to_string(&path).unwrap();
        let numbers = text
            .lines()
            .filter_map(|line| line.strip_prefix("# covers "));
        for number in numbers.flat_map(|numbers| numbers.split(", ")) {
            let place = path.display();
            assert!(is_number(number), "{place}: `{number}` is not a feature");
            let name = path.file_name().unwrap().to_string_lossy();
            let claim = claims.entry(number.to_owned()).or_default();
            claim.shown.insert(name.into_owned());
        }
    }
    claims
}

/// Tells whether a test starts the program, or a server for agents. Its end is found by rustfmt's indentation.
fn starts_program(text: &str, name: &str) -> bool {
    let body = text.split_once(&format!("fn {name}(")).unwrap().1;
    let body = body.split("\n}").next().unwrap();
    STARTS.iter().any(|word| body.contains(word))
}

fn is_number(text: &str) -> bool {
    SECTIONS.iter().any(|(letter, count)| {
        let digits = text.strip_prefix(*letter).unwrap_or_default();
        digits
            .parse::<usize>()
            .is_ok_and(|n| (1..=*count).contains(&n))
    })
}

/// A row's number and feature, if the line is one.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells: Vec<_> = line
        .strip_prefix('|')?
        .strip_suffix('|')?
        .split('|')
        .map(str::trim)
        .collect();
    match cells[..] {
        [number, feature, _, _] if is_number(number) => Some((number, feature)),
        _ => None,
    }
}

/// A line of the list, with its tests as they are now.
fn fresh(line: &str, claims: &BTreeMap<String, Claim>) -> String {
    if line.starts_with("Shown: ") {
        let shown = claims.values().filter(|claim| !claim.shown.is_empty());
        let all: usize = SECTIONS.iter().map(|(_, count)| count).sum();
        return format!("Shown: {} of {all}.\n", shown.count());
    }
    let Some((number, feature)) = row(line) else {
        return format!("{line}\n");
    };
    let cell = |tests: &BTreeSet<String>| {
        let names: Vec<_> = tests.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let none = Claim::default();
    let claim = claims.get(number).unwrap_or(&none);
    let (shown, inside) = (cell(&claim.shown), cell(&claim.inside));
    format!("| {number} | {feature} | {shown} | {inside} |\n")
}

#[test]
fn conformance_list_names_every_feature_once_and_exactly_the_tests_that_show_it() {
    let path = root().join("tests/conformance.md");
    let text = fs::read_to_string(&path).unwrap();
    let claims = claims();
    let fresh: String = text.lines().map(|line| fresh(line, &claims)).collect();
    if std::env::var_os("UPDATE_CONFORMANCE").is_some() {
        fs::write(&path, &fresh).unwrap();
    } else {
        assert_eq!(text, fresh, "run the tests with UPDATE_CONFORMANCE=1");
    }

    let listed: Vec<_> = fresh.lines().filter_map(row).collect();
    let expected: Vec<_> = SECTIONS
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |n| format!("{letter}{n}")))
        .collect();
    let numbers: Vec<_> = listed
        .iter()
        .map(|(number, _)| (*number).to_owned())
        .collect();
    assert_eq!(numbers, expected);
    assert!(listed.iter().all(|(_, feature)| !feature.is_empty()));
    assert!(fresh.contains("\nShown: "), "the sum is missing");
}
