//! Files that the proxy reads and writes for the agent, if the editor does not.

use std::io;

use serde_json::{Map, Value, json};

use super::message::text;

/// Largest file that is read for an agent, in bytes: a message has to carry it.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Reads the lines of a file that a request names.
///
/// # Errors
/// Fails with a message for the agent.
pub(super) async fn read(params: &Map<String, Value>) -> Result<Value, String> {
    let path = path(params)?;
    let failed = |error: io::Error| format!("`{path}` cannot be read: {error}");
    let found = tokio::fs::metadata(&path).await.map_err(failed)?;
    if !found.is_file() || found.len() > MAX_FILE_BYTES {
        return Err(format!(
            "`{path}` is not a file of at most {MAX_FILE_BYTES} bytes"
        ));
    }
    let content = tokio::fs::read_to_string(&path).await.map_err(failed)?;
    let number = |name: &str| params.get(name).and_then(Value::as_u64);
    let skipped = number("line").unwrap_or(1).saturating_sub(1);
    let limit = number("limit").unwrap_or(u64::MAX);
    let lines = content.split_inclusive('\n');
    let lines = lines.skip(usize::try_from(skipped).unwrap_or(usize::MAX));
    let lines = lines.take(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(json!({"content": lines.collect::<String>()}))
}

/// Writes the file that a request names.
///
/// # Errors
/// Fails with a message for the agent.
pub(super) async fn write(params: &Map<String, Value>) -> Result<Value, String> {
    let path = path(params)?;
    let content = params.get("content").and_then(Value::as_str);
    let content = content.ok_or_else(|| "the request has no `content`".to_owned())?;
    let written = tokio::fs::write(&path, content).await;
    written.map_err(|error| format!("`{path}` cannot be written: {error}"))?;
    Ok(json!({}))
}

/// Returns the path of a request. The protocol wants absolute paths.
fn path(params: &Map<String, Value>) -> Result<String, String> {
    match text(params, "path") {
        Some(path) if path.starts_with('/') => Ok(path),
        Some(path) => Err(format!("`{path}` is not an absolute path")),
        None => Err("the request has no `path`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            other => panic!("{other} is not an object"),
        }
    }

    #[tokio::test]
    async fn a_file_is_written_and_read_by_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let request = params(json!({"path": path, "content": "1\n2\n3\n"}));
        assert_eq!(write(&request).await, Ok(json!({})));
        let request = params(json!({"path": path, "line": 2, "limit": 1}));
        assert_eq!(read(&request).await, Ok(json!({"content": "2\n"})));
        let request = params(json!({"path": path, "line": 0}));
        assert_eq!(read(&request).await, Ok(json!({"content": "1\n2\n3\n"})));
    }

    #[tokio::test]
    async fn folders_and_relative_paths_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let request = params(json!({"path": folder.path()}));
        assert!(read(&request).await.is_err());
        for request in [
            json!({"path": "a", "content": ""}),
            json!({"path": "/tmp"}),
            json!({}),
        ] {
            assert!(write(&params(request)).await.is_err());
        }
    }
}
