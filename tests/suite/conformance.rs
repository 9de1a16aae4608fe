//! The conformance list against the tests that it names.
//!
//! A test says what it shows in a comment right above its attributes: `covers`, then the numbers.
//! `UPDATE_CONFORMANCE=1` writes the list's last column anew from those comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::support::{files, root};

/// How many features each section has.
const SECTIONS: [(char, usize); 5] = [('A', 38), ('B', 30), ('T', 36), ('D', 20), ('R', 26)];

/// Which tests say that they show which number.
fn claims() -> BTreeMap<String, BTreeSet<String>> {
    let root = root();
    let mut claims: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
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
            for number in numbers.split(", ") {
                assert!(is_number(number), "{place}: `{number}` is not a feature");
                claims
                    .entry(number.to_owned())
                    .or_default()
                    .insert(name.to_owned());
            }
        }
    }
    claims
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
fn row(line: &str) -> Option<(&str, &str, &str)> {
    let cells: Vec<_> = line
        .strip_prefix('|')?
        .strip_suffix('|')?
        .split('|')
        .map(str::trim)
        .collect();
    match cells[..] {
        [number, feature, tests] if is_number(number) => Some((number, feature, tests)),
        _ => None,
    }
}

#[test]
fn the_list_names_every_feature_once_and_exactly_the_tests_that_show_it() {
    let path = root().join("tests/conformance.md");
    let text = fs::read_to_string(&path).unwrap();
    let claims = claims();
    let cell = |number: &str| {
        let names = claims.get(number).into_iter().flatten();
        names
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let fresh: String = text
        .lines()
        .map(|line| match row(line) {
            Some((number, feature, _)) => format!("| {number} | {feature} | {} |\n", cell(number)),
            None => format!("{line}\n"),
        })
        .collect();
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
        .map(|(number, ..)| (*number).to_owned())
        .collect();
    assert_eq!(numbers, expected);
    assert!(listed.iter().all(|(_, feature, _)| !feature.is_empty()));
}
