//! A closed terminal: the operator has left, and the console reports no error.

use std::io;

use crate::console::ConsoleError;

#[test]
fn only_errors_of_a_closed_terminal_end_the_console_without_an_error() {
    // EIO, ENXIO, ENOTTY, EPIPE.
    for errno in [5, 6, 25, 32] {
        let error = ConsoleError::from(io::Error::from_raw_os_error(errno));
        assert!(error.ok_if_terminal_closed().is_ok(), "{errno}");
    }
    // EACCES, ENOSPC, EMFILE.
    for errno in [13, 28, 24] {
        let error = ConsoleError::from(io::Error::from_raw_os_error(errno));
        assert!(error.ok_if_terminal_closed().is_err(), "{errno}");
    }
    assert!(
        ConsoleError::from(io::Error::other("x"))
            .ok_if_terminal_closed()
            .is_err()
    );
    assert!(ConsoleError::Stopped.ok_if_terminal_closed().is_err());
}
