//! What can be known of Codex' trust: it runs a hook only while the hash that its user trusted is the hook's own.

use std::path::Path;

/// What Codex' own file says about the hook before tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// A hash was trusted. Whether it is still the right one, only Codex can tell.
    Given,
    /// None was.
    Missing,
}

/// Looks for a trusted hash of the hooks in `file`. It is a search, not a reading: the file belongs to Codex.
#[must_use]
pub fn codex_trust(config: &str, file: &Path) -> Trust {
    let key = format!("{}:pre_tool_use:", file.display());
    let mut after = config.split(key.as_str()).skip(1);
    let given = after.any(|rest| {
        // Up to where the next table begins.
        let own = rest.split("\n[").next().unwrap_or_default();
        own.contains("trusted_hash")
    });
    if given { Trust::Given } else { Trust::Missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hash_of_that_hook_counts() {
        let file = Path::new("/p/.codex/hooks.json");
        let given = "[hooks.state.\"/p/.codex/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n";
        assert_eq!(codex_trust(given, file), Trust::Given);
        let other = given.replace("pre_tool_use", "stop");
        assert_eq!(codex_trust(&other, file), Trust::Missing);
        let elsewhere = given.replace("/p/", "/q/");
        assert_eq!(codex_trust(&elsewhere, file), Trust::Missing);
        let next = "[hooks.state.\"/p/.codex/hooks.json:pre_tool_use:0:0\"]\nenabled = false\n[x]\ntrusted_hash = 1";
        assert_eq!(codex_trust(next, file), Trust::Missing);
        assert_eq!(codex_trust("", file), Trust::Missing);
    }
}
