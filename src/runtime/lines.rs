//! Iteration over lines of a file that may be long, without copies.

use std::io::{self, BufRead};

use crate::base::limits::MAX_LINE_BYTES;

/// Block size of reads: small enough for the processor's cache.
pub const READ_BYTES: usize = 64 * 1024;

/// Calls a function for each line, without its line feed. A line longer than any record is cut: it is
/// invalid, and is reported as such.
///
/// # Errors
/// Fails when the input cannot be read.
pub fn each_line(mut input: impl BufRead, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    // Beginning of a line whose end was not read yet.
    let mut begun = Vec::new();
    loop {
        let block = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            block => block?,
        };
        if block.is_empty() {
            if !begun.is_empty() {
                take(&begun);
            }
            return Ok(());
        }
        let mut rest = block;
        while let Some((line, behind)) = first_line(rest) {
            if begun.is_empty() {
                take(line);
            } else {
                begun.extend_from_slice(line);
                take(&begun);
                begun.clear();
            }
            rest = behind;
        }
        begun.extend_from_slice(rest);
        if begun.len() as u64 >= MAX_LINE_BYTES {
            take(&begun);
            begun.clear();
        }
        let read = block.len();
        input.consume(read);
    }
}

fn first_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (line, behind) = text.split_at_checked(memchr::memchr(b'\n', text)?)?;
    Some((line, behind.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], block: usize) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let input = io::BufReader::with_capacity(block, text);
        each_line(input, |line| lines.push(line.to_vec())).unwrap();
        lines
    }

    #[test]
    fn lines_do_not_depend_on_block_boundaries() {
        for text in [
            "",
            "\n",
            "a",
            "a\n",
            "a\nb",
            "\n\na\n\n",
            "long line\nx\n\nlast one",
        ] {
            let mut wanted: Vec<_> = text
                .split('\n')
                .map(|line| line.as_bytes().to_vec())
                .collect();
            if wanted.last().is_some_and(Vec::is_empty) {
                wanted.pop();
            }
            for block in 1..12 {
                assert_eq!(lines(text.as_bytes(), block), wanted, "{text:?} by {block}");
            }
        }
    }

    #[test]
    fn an_overlong_line_is_cut() {
        let most = usize::try_from(MAX_LINE_BYTES).unwrap();
        let text = vec![b'x'; most * 2 + 1];
        let lines = lines(&text, READ_BYTES);
        assert!(lines.len() >= 2);
        assert!(lines.iter().all(|line| line.len() <= most + READ_BYTES));
        assert_eq!(lines.concat(), text);
    }
}
