//! External editor: a text is written to a private file, edited, and read back.
//!
//! Contract: the file is in a folder that only this user can enter; both are removed when the editor
//! ends. Errors name the command that was tried, and the text stays unchanged.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::base::limits::MAX_EDITED_BYTES;
use crate::console::request::{ConsoleMessage, EditKind, TextEdit, ThreadEdit};

/// Editor used if none is configured.
const FALLBACK_EDITOR: &str = "vi";

/// Content to edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditorJob {
    /// A text of the operator.
    Text(TextEdit),
    /// The summary of a thread.
    Thread(Box<ThreadEdit>),
    /// A file of the steward, opened at a line.
    File(PathBuf, usize),
}

impl EditorJob {
    /// Runs the editor, and returns the result.
    pub(super) async fn run(self) -> ConsoleMessage {
        match self {
            Self::Text(edit) => {
                let name = match edit.kind {
                    EditKind::Text => "answer.txt",
                    EditKind::Json => "answer.json",
                };
                let edited = run(&edit.text, name).await;
                ConsoleMessage::Edited(edit.gate, edited)
            }
            Self::Thread(edit) => {
                let edited = run(&edit.text, "memento.json").await;
                ConsoleMessage::ThreadEdited(edit, edited)
            }
            Self::File(file, line) => ConsoleMessage::FileEdited(open_file(&file, line).await),
        }
    }
}

/// Lets the operator edit a text.
///
/// # Errors
/// Returns the reason as text, if no editor is found, it fails, or its result cannot be read.
async fn run(text: &str, name: &str) -> Result<String, String> {
    let command = choose_editor(|name| std::env::var_os(name));
    let file = PrivateFile::new(text, name).map_err(|error| {
        let folder = std::env::temp_dir();
        format!("cannot create a file in `{}`: {error}", folder.display())
    })?;
    run_editor(&command, &file.path).await?;
    read_edited_text(&file.path)
        .map_err(|reason| format!("cannot use the text from {command}: {reason}"))
}

/// Lets the steward edit a file, opened at a line.
///
/// # Errors
/// Returns the reason as text, if no editor is found, or it fails. Its changes show when the file is
/// checked.
async fn open_file(file: &Path, line: usize) -> Result<(), String> {
    let command = choose_editor(|name| std::env::var_os(name));
    let arguments = at_line(&command.line.to_string_lossy(), file, line);
    start(&command, &arguments).await
}

/// Builds the arguments that open a file at a line: most editors take `+12 file`, some `file:12`.
fn at_line(command: &str, file: &Path, line: usize) -> Vec<OsString> {
    let program = command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let mut placed = file.as_os_str().to_owned();
    placed.push(format!(":{line}"));
    match program {
        "hx" | "helix" | "zed" | "subl" => vec![placed],
        "code" | "codium" => vec!["--goto".into(), placed],
        _ => vec![format!("+{line}").into(), file.as_os_str().to_owned()],
    }
}

/// An editor command, and the setting it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EditorCommand {
    line: OsString,
    source: &'static str,
}

impl std::fmt::Display for EditorCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` ({})", self.line.to_string_lossy(), self.source)
    }
}

/// Selects `$VISUAL`, then `$EDITOR`, then `vi`.
fn choose_editor(variable: impl Fn(&str) -> Option<OsString>) -> EditorCommand {
    for (name, source) in [("VISUAL", "$VISUAL"), ("EDITOR", "$EDITOR")] {
        let value = variable(name);
        let blank = |line: &OsString| line.to_string_lossy().trim().is_empty();
        if let Some(line) = value.filter(|line| !blank(line)) {
            return EditorCommand { line, source };
        }
    }
    EditorCommand {
        line: FALLBACK_EDITOR.into(),
        source: "neither $VISUAL nor $EDITOR is set",
    }
}

/// Runs the editor on a text until it ends.
async fn run_editor(command: &EditorCommand, file: &Path) -> Result<(), String> {
    let ended = start(command, &[file.as_os_str().to_owned()]).await;
    ended.map_err(|reason| format!("{reason}; the text is unchanged"))
}

/// Runs the editor until it ends. The command may have its own arguments, so the shell parses it, as
/// other programs that start editors do. The file name is not part of that command.
async fn start(command: &EditorCommand, arguments: &[OsString]) -> Result<(), String> {
    let mut line = command.line.clone();
    line.push(" \"$@\"");
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(line)
        .arg("sh")
        .args(arguments)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let ended = shell.status().await;
    let ended = ended.map_err(|error| format!("the editor {command} did not start: {error}"))?;
    match ended.code() {
        Some(0) => Ok(()),
        Some(127) => Err(format!("the editor {command} was not found")),
        Some(code) => Err(format!("the editor {command} exited with code {code}")),
        None => Err(format!("the editor {command} was killed by a signal")),
    }
}

/// Reads the text as the editor left it.
fn read_edited_text(file: &Path) -> Result<String, String> {
    let to_text = |error: io::Error| error.to_string();
    // A link could lead to another file than the one that was edited.
    let kind = fs::symlink_metadata(file).map_err(to_text)?.file_type();
    if !kind.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(to_text)?;
    opened
        .take(MAX_EDITED_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(to_text)?;
    if bytes.len() as u64 > MAX_EDITED_BYTES {
        return Err(format!("longer than {MAX_EDITED_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("not UTF-8 at byte {at}")
    })?;
    let text = text.replace("\r\n", "\n");
    // Editors end the last line with a newline; the text had none.
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// A file that only this user can read, in a folder that only this user can enter. Files that an
/// editor writes next to it are equally private.
struct PrivateFile {
    folder: PathBuf,
    path: PathBuf,
}

impl PrivateFile {
    fn new(text: &str, name: &str) -> io::Result<Self> {
        let folder = format!("cra-{}", uuid::Uuid::now_v7().simple());
        let folder = std::env::temp_dir().join(folder);
        // Fails if this name already exists.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let path = folder.join(name);
        let private = Self { folder, path };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&private.path)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        Ok(private)
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            let folder = self.folder.display();
            tracing::warn!("cannot remove the editor folder `{folder}`: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const TEXT: &str = "one\ntwo";

    fn script(line: &str) -> EditorCommand {
        EditorCommand {
            line: line.into(),
            source: "$VISUAL",
        }
    }

    /// Returns the result of a command that edits a text.
    async fn edited(line: &str) -> Result<String, String> {
        let file = PrivateFile::new(TEXT, "answer.txt").unwrap();
        run_editor(&script(line), &file.path).await?;
        read_edited_text(&file.path)
    }

    #[test]
    fn an_editor_file_is_private_and_removed_with_its_folder() {
        let file = PrivateFile::new(TEXT, "answer.json").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file.folder), mode(&file.path)), (0o700, 0o600));
        assert_eq!(file.path.extension().unwrap(), "json");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "one\ntwo\n");
        fs::write(file.folder.join(".answer.json.swp"), "x").unwrap();
        let folder = file.folder.clone();
        drop(file);
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn an_edited_text_is_read_back_as_the_editor_left_it() {
        assert_eq!(edited("true").await, Ok("one\ntwo".to_owned()));
        assert_eq!(
            edited("printf 'a\\r\\nb\\r\\n' >").await,
            Ok("a\nb".to_owned())
        );
        // Some editors write another file and rename it.
        let renames = "f() { echo new > \"$1.x\"; mv \"$1.x\" \"$1\"; }; f";
        assert_eq!(edited(renames).await, Ok("new".to_owned()));
    }

    #[tokio::test]
    async fn an_editor_error_names_the_command() {
        let error_of = |result: Result<String, String>| result.unwrap_err();
        let missing = error_of(edited("/nowhere/editor 2>/dev/null").await);
        assert!(
            missing.contains("`/nowhere/editor 2>/dev/null` ($VISUAL) was not found"),
            "{missing}"
        );
        let failed = error_of(edited("exit 3 #").await);
        assert!(failed.contains("exited with code 3"), "{failed}");
        let bytes = error_of(edited("printf '\\377' >").await);
        assert_eq!(bytes, "not UTF-8 at byte 0");
        let long = format!("head -c {} /dev/zero >", MAX_EDITED_BYTES + 1);
        assert!(error_of(edited(&long).await).starts_with("longer than"));
        let gone = error_of(edited("rm").await);
        assert!(gone.contains("No such file"), "{gone}");
        let link = error_of(edited("f() { rm \"$1\"; ln -s /etc/passwd \"$1\"; }; f").await);
        assert_eq!(link, "not a regular file");
    }

    #[test]
    fn each_editor_gets_the_line_in_its_own_syntax() {
        let arguments_of = |command: &str| {
            let arguments = at_line(command, Path::new("/a/b.yaml"), 12);
            let arguments: Vec<_> = arguments
                .iter()
                .map(|argument| argument.to_string_lossy())
                .collect();
            arguments.join(" ")
        };
        assert_eq!(arguments_of("nvim -u NONE"), "+12 /a/b.yaml");
        assert_eq!(arguments_of("/usr/bin/hx"), "/a/b.yaml:12");
        assert_eq!(arguments_of("code --wait"), "--goto /a/b.yaml:12");
    }

    #[test]
    fn visual_takes_precedence_over_editor_and_vi_is_the_fallback() {
        let none = choose_editor(|_| None);
        assert_eq!(none.line, "vi");
        assert_eq!(
            none.to_string(),
            "`vi` (neither $VISUAL nor $EDITOR is set)"
        );
        let blank = choose_editor(|name| (name == "VISUAL").then(|| " ".into()));
        assert_eq!(blank, none);
        let editor = choose_editor(|name| (name == "EDITOR").then(|| "nano".into()));
        assert_eq!(editor.to_string(), "`nano` ($EDITOR)");
        let both = choose_editor(|name| Some(name.to_lowercase().into()));
        assert_eq!(both.to_string(), "`visual` ($VISUAL)");
    }
}
