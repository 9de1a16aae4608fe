//! Forms of common secrets, redacted from every record even without rules of an Atlas.
//!
//! Contract: a form covers the secret and no character with which a shell could run something, so that no command
//! can hide behind a `password=`. The text around the secret (the variable name, the user, the host) stays
//! readable.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// A form of secrets: its name in records and its pattern. If the pattern has a group `secret`, only the group is
/// redacted.
pub(super) struct SecretForm {
    pub(super) name: &'static str,
    pattern: &'static str,
    check: SecretCheck,
}

/// A condition on the secret that a pattern cannot express.
#[derive(Clone, Copy)]
enum SecretCheck {
    None,
    /// The secret contains a digit or is too long for a word.
    NotAWord,
    /// The secret is not a directory path.
    NotAPath,
}

/// Values that stand where a secret could, and are none.
pub(super) const PLAIN_VALUES: [&str; 8] = [
    "true",
    "false",
    "null",
    "none",
    "undefined",
    "required",
    "optional",
    "redacted",
];

/// Maximum length of an ordinary word.
const LONGEST_WORD: usize = 24;

/// Characters of an unquoted secret, without those with which a shell could run something.
macro_rules! value {
    ($count:literal) => {
        concat!(r#"(?P<secret>[^\s"'`;|&<>()$\\,\[\]{}]{"#, $count, r"})")
    };
}

pub(super) const FORMS: &[SecretForm] = &[
    form("aws_access_key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    form(
        "assignment",
        concat!(
            r#"(?i)(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret)["']?=["']?"#,
            value!("4,")
        ),
    ),
    SecretForm {
        check: SecretCheck::NotAPath,
        ..form("pwd", concat!(r#"(?i)\bpwd=["']?"#, value!("4,")))
    },
    form(
        "password_field",
        concat!(r"(?i)\b(?:password|passwd):", value!("4,")),
    ),
    SecretForm {
        check: SecretCheck::NotAWord,
        ..form(
            "secret_field",
            concat!(
                r"(?i)(?:secret|token|api[_-]?key|access[_-]?key):",
                value!("8,")
            ),
        )
    },
    form(
        "json_field",
        r#"(?i)"[a-z0-9_.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|access[_-]?token|refresh[_-]?token|auth[_-]?token|token|authorization)"\s*:\s*"(?P<secret>[^"\\]+(?:\\.[^"\\]*)*)""#,
    ),
    form(
        "quoted_json_field",
        r#"(?i)\\"[a-z0-9_.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|access[_-]?token|refresh[_-]?token|auth[_-]?token|token|authorization)\\"\s*:\s*\\"(?P<secret>[^"\\]+)"#,
    ),
    form(
        "api_key_header",
        concat!(
            r"(?i)\bx-(?:api-key|auth-token|goog-api-key):\s*",
            value!("6,")
        ),
    ),
    form(
        "authorization_header",
        concat!(
            r"(?i)\bauthorization:\s*(?:basic|token|apikey|digest)\s+",
            value!("4,")
        ),
    ),
    SecretForm {
        check: SecretCheck::NotAWord,
        ..form("bearer", concat!(r"(?i)\bbearer\s+", value!("8,")))
    },
    form(
        "curl_user",
        concat!(
            r#"\b(?:curl|wget|httpie|http|https)\b[^\n;|&]*?\s(?:-u|--user)(?:\s*|=)["']?[^\s:"'/]+:"#,
            value!("1,")
        ),
    ),
    form(
        "mysql_password",
        concat!(
            r#"\b(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump|mariadb-admin)\b[^\n;|&]*?\s-p["']?"#,
            value!("1,")
        ),
    ),
    form(
        "sshpass_password",
        concat!(r#"\bsshpass\s+-p\s*["']?"#, value!("1,")),
    ),
    form(
        "redis_password",
        concat!(r#"\bredis-cli\b[^\n;|&]*?\s-a\s+["']?"#, value!("1,")),
    ),
    form(
        "password_flag",
        concat!(
            r#"(?i)(?:^|\s)--(?:password|passwd|pass|passphrase|token|api-?key|access-token|auth-token|client-secret|secret-key)\s+["']?"#,
            value!("4,")
        ),
    ),
    form(
        "registry_password",
        concat!(
            r#"\b(?:docker|podman|nerdctl|buildah|skopeo|helm)\b[^\n;|&]*?\blogin\b[^\n;|&]*?\s-p\s*["']?"#,
            value!("1,")
        ),
    ),
    form(
        "pass_variable",
        concat!(r#"\b[A-Za-z0-9_]*_(?i:pass)=["']?"#, value!("4,")),
    ),
    form(
        "key_field",
        concat!(
            r#"\b[A-Z0-9_]*(?:SECRET_KEY|SECRET_ACCESS_KEY|API_KEY|ACCESS_TOKEN|AUTH_TOKEN|CLIENT_SECRET|PASSWORD):\s+["']?"#,
            value!("4,")
        ),
    ),
    form(
        "single_quoted",
        r"(?i)(?:password|passwd|passphrase|secret|token)[=:]\s*'(?P<secret>[^'\n]*\s[^'\n]*)'",
    ),
    form(
        "double_quoted",
        r#"(?i)(?:password|passwd|passphrase|secret|token)[=:]\s*"(?P<secret>[^"$`\\\n]*\s[^"$`\\\n]*)""#,
    ),
    form(
        "account_key",
        r"\b(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/=]{16,})",
    ),
    form(
        "netrc_password",
        concat!(r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+", value!("1,")),
    ),
    form(
        "cookie",
        concat!(r#"(?i)\bcookie:\s*[^\s=;"']+="#, value!("8,")),
    ),
    form(
        "sendgrid_key",
        r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    ),
    form("telegram_token", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"),
    form("age_key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    form("stripe_key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{8,}"),
    form("google_key", r"\bAIza[0-9A-Za-z_-]{20,}"),
    form("google_token", r"\bya29\.[0-9A-Za-z_-]{16,}"),
    form(
        "github_token",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{10,}|github_pat_[A-Za-z0-9_]{10,})",
    ),
    form("gitlab_token", r"\bglpat-[A-Za-z0-9_-]{10,}"),
    form("slack_token", r"\b(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{8,}"),
    form(
        "model_key",
        r"\bsk-(?:(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{8,}|[A-Za-z0-9]{20,})",
    ),
    form("npm_token", r"\bnpm_[A-Za-z0-9]{20,}"),
    form("hugging_face_token", r"\bhf_[A-Za-z0-9]{20,}"),
    form(
        "json_web_token",
        r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}",
    ),
    form(
        "private_key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})*(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]*(?:\s|\\[nr])*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    form(
        "connection_string",
        r#"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@"'`;|&<>()$\\]*:(?P<secret>[^\s/@"'`;|&<>()$\\]+)@"#,
    ),
];

/// Names of parameters that hold a secret, in lower case and without `_` and `-`.
const SECRET_NAMES: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "xapikey",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "clientsecret",
    "privatekey",
    "secretkey",
    "secretaccesskey",
    "awssecretaccesskey",
    "authorization",
    "token",
];

/// Minimum length of a parameter value that counts as a secret.
const SHORTEST_SECRET: usize = 4;

const fn form(name: &'static str, pattern: &'static str) -> SecretForm {
    SecretForm {
        name,
        pattern,
        check: SecretCheck::None,
    }
}

/// The compiled patterns. A test checks that all of them compile.
static COMPILED: LazyLock<(RegexSet, Vec<Option<Regex>>)> = LazyLock::new(|| {
    let any = RegexSet::new(FORMS.iter().map(|form| form.pattern));
    let each = FORMS.iter().map(|form| Regex::new(form.pattern).ok());
    (any.unwrap_or_else(|_| RegexSet::empty()), each.collect())
});

/// A secret found in a text.
pub(super) struct SecretMatch {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) form: &'static str,
}

/// Finds secrets in a text, at most `most` of each form.
pub(super) fn find_secrets(text: &str, most: usize) -> Vec<SecretMatch> {
    let (any, each) = &*COMPILED;
    let mut found = Vec::new();
    for index in any.matches(text) {
        let (Some(form), Some(Some(pattern))) = (FORMS.get(index), each.get(index)) else {
            continue;
        };
        let matches = pattern.captures_iter(text).filter_map(|captures| {
            let secret = captures.name("secret").or_else(|| captures.get(0))?;
            form.check.holds(secret.as_str()).then(|| SecretMatch {
                from: secret.start(),
                to: secret.end(),
                form: form.name,
            })
        });
        found.extend(matches.take(most));
    }
    found
}

/// Returns true if a parameter with this name and text is a secret.
pub(super) fn is_secret_field(name: &str, text: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect();
    let ends = |end: &str| plain.len() > end.len() && plain.ends_with(end);
    let is_named = SECRET_NAMES.contains(&plain.as_str()) || ends("password") || ends("secret");
    // `token` is also a name for harmless values.
    let is_likely = plain != "token" || SecretCheck::NotAWord.holds(text);
    is_named && is_likely && text.chars().count() >= SHORTEST_SECRET
}

impl SecretCheck {
    fn holds(self, secret: &str) -> bool {
        if PLAIN_VALUES
            .iter()
            .any(|plain| plain.eq_ignore_ascii_case(secret))
        {
            return false;
        }
        match self {
            Self::None => true,
            Self::NotAWord => {
                secret.len() > LONGEST_WORD || secret.bytes().any(|byte| byte.is_ascii_digit())
            }
            Self::NotAPath => !secret.starts_with(['/', '~', '.']),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_form_compiles_alone_and_in_the_set() {
        assert_eq!(COMPILED.0.len(), FORMS.len());
        for (form, compiled) in FORMS.iter().zip(&COMPILED.1) {
            assert!(compiled.is_some(), "{}", form.name);
        }
    }
}
