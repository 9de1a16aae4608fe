//! Trust of Codex in hooks: Codex runs a hook only while the hash that its user trusted is the hook's own.

use std::path::Path;

/// Trust in the hook before tools, as Codex' own file states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodexTrust {
    /// The user trusted a hash. Only Codex knows whether it is still the right one.
    Trusted,
    /// No hash was trusted.
    Missing,
    /// The hook, or every hook, is disabled.
    Off,
}

/// Looks for a trusted hash of the hooks in `file`. This is a text search, not a parser: the file belongs
/// to Codex.
#[must_use]
pub fn codex_trust(config: &str, file: &Path) -> CodexTrust {
    let table = |rest: &str| {
        // Up to the beginning of the next table.
        let own = rest.split("\n[").next().unwrap_or_default();
        let lines = own.lines().map(|line| line.replace([' ', '\t'], ""));
        lines.collect::<Vec<_>>()
    };
    let off = |lines: &[String], names: &[&str]| {
        let is_off = |name: &&str| {
            lines
                .iter()
                .any(|line| line.starts_with(&format!("{name}=false")))
        };
        names.iter().any(is_off)
    };
    let features = config.split("[features]").nth(1).map(table);
    if features.is_some_and(|lines| off(&lines, &["hooks", "codex_hooks"])) {
        return CodexTrust::Off;
    }
    let key = format!("{}:pre_tool_use:", file.display());
    let own = config.split(key.as_str()).skip(1).map(table);
    let mut trust = CodexTrust::Missing;
    for lines in own {
        if off(&lines, &["enabled"]) {
            return CodexTrust::Off;
        }
        if lines.iter().any(|line| line.starts_with("trusted_hash=")) {
            trust = CodexTrust::Trusted;
        }
    }
    trust
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trusted_hash_of_the_same_hook_counts() {
        let file = Path::new("/p/.codex/hooks.json");
        let given = "[hooks.state.\"/p/.codex/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n";
        assert_eq!(codex_trust(given, file), CodexTrust::Trusted);
        let other = given.replace("pre_tool_use", "stop");
        assert_eq!(codex_trust(&other, file), CodexTrust::Missing);
        let elsewhere = given.replace("/p/", "/q/");
        assert_eq!(codex_trust(&elsewhere, file), CodexTrust::Missing);
        let next = given.replace("trusted_hash", "x = 1\n[x]\ntrusted_hash");
        assert_eq!(codex_trust(&next, file), CodexTrust::Missing);
        let off = format!("{given}enabled = false\n");
        assert_eq!(codex_trust(&off, file), CodexTrust::Off);
        let off = format!("[features]\nhooks = false\n{given}");
        assert_eq!(codex_trust(&off, file), CodexTrust::Off);
        assert_eq!(codex_trust("", file), CodexTrust::Missing);
    }
}
