//! Going over lines of a file that may be long, without copying them.

use std::io::{self, BufRead};

use crate::base::limits::MAX_LINE_BYTES;

/// How much is read at a time: what processors keep close while they look at it.
pub const READ_BYTES: usize = 64 * 1024;

/// Goes over lines without their line feeds, one at a time. A line longer than any record is cut: it is no
/// record, and is told as that.
///
/// # Errors
/// When it cannot be read.
pub fn each_line(mut input: impl BufRead, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    // The beginning of a line whose end was not read yet.
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
    fn lines_are_the_same_wherever_blocks_end() {
        for text in [
            "",
            "\n",
            "a",
            "a\n",
            "a\nb",
            "\n\na\n\n",
            "long line\nx\n\nlast one",
        ] {
            let mut wanted: Vec<_> = text.split('\n').map(|it| it.as_bytes().to_vec()).collect();
            if wanted.last().is_some_and(Vec::is_empty) {
                wanted.pop();
            }
            for block in 1..12 {
                assert_eq!(lines(text.as_bytes(), block), wanted, "{text:?} by {block}");
            }
        }
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let most = usize::try_from(MAX_LINE_BYTES).unwrap();
        let text = vec![b'x'; most * 2 + 1];
        let lines = lines(&text, READ_BYTES);
        assert!(lines.len() >= 2);
        assert!(lines.iter().all(|line| line.len() <= most + READ_BYTES));
        assert_eq!(lines.concat(), text);
    }
}
