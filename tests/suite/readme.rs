//! The README says what is true now.

use std::fs;

use super::support::root;

#[test]
fn the_key_table_in_the_readme_is_the_one_the_console_uses() {
    let path = root().join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- keys -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- /keys -->").unwrap();
    let table = cra_core::console::key_table();
    let fresh = format!("{before}<!-- keys -->\n{table}<!-- /keys -->{after}");
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(&path, &fresh).unwrap();
    } else {
        assert_eq!(text, fresh, "run the tests with UPDATE_README=1");
    }
}

#[test]
fn the_readme_names_every_command() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    for command in [
        "demo",
        "atlas lint",
        "run",
        "trace list",
        "trace show",
        "trace verify",
        "trace export",
    ] {
        assert!(text.contains(&format!("`cra {command}")), "{command}");
    }
}
