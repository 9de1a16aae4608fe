//! The page about the socket: every call has an example there, and every example is true.
