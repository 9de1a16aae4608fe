//! A server on this machine that takes notices, or does not.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

/// A request that the server received.
#[derive(Debug)]
pub(super) struct ReceivedNotice {
    pub(super) text: String,
    pub(super) head: String,
    pub(super) body: String,
}

impl ReceivedNotice {
    #[track_caller]
    pub(super) fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found
            .unwrap_or_else(|| panic!("no {name} in {}", self.head))
            .1
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Response of the server.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    Status(u16),
    /// Redirects to another address.
    Redirect(u16),
    /// Never, for as long as the test lives.
    Silence,
}

/// A server on this machine. It gives its answers in their order, and the last for ever.
pub(super) struct Receiver {
    pub(super) address: String,
    pub(super) port: u16,
    got: mpsc::UnboundedReceiver<ReceivedNotice>,
}

impl Receiver {
    pub(super) fn new(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (reply, got) = mpsc::unbounded_channel();
        let mut answers: VecDeque<_> = answers.iter().copied().collect();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let got = read(&mut stream);
                let answer = if answers.len() > 1 {
                    answers.pop_front().unwrap()
                } else {
                    answers[0]
                };
                let (status, more) = match answer {
                    Answer::Status(status) => (status, String::new()),
                    Answer::Redirect(to) => (302, format!("Location: http://127.0.0.1:{to}/\r\n")),
                    Answer::Silence => {
                        silent.push(stream);
                        let _ = reply.send(got);
                        continue;
                    }
                };
                let head = format!("HTTP/1.1 {status} Told\r\n{more}Content-Length: 0\r\n");
                let answer = format!("{head}Connection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes());
                if reply.send(got).is_err() {
                    return;
                }
            }
        });
        let address = format!("http://127.0.0.1:{port}/cra-events");
        Self { address, port, got }
    }

    pub(super) async fn next(&mut self) -> ReceivedNotice {
        let got = tokio::time::timeout(Duration::from_secs(20), self.got.recv());
        got.await.expect("no notice arrived").unwrap()
    }

    /// Connects often enough that any other pending request would have arrived in between.
    pub(super) async fn assert_no_other_connection(&mut self) {
        for _ in 0..100 {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
            let call = b"POST /us HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(call).unwrap();
            let got = self.next().await;
            assert!(got.head.starts_with("POST /us "), "{}", got.head);
        }
    }

    pub(super) fn assert_no_request(&mut self) {
        assert!(self.got.try_recv().is_err(), "a notice arrived");
    }
}

fn read(stream: &mut TcpStream) -> ReceivedNotice {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, length) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then_some(length)
            });
            if body.len() >= length.map_or(0, |item| item.parse().unwrap()) {
                let (head, body) = (head.to_owned(), body.to_owned());
                return ReceivedNotice { text, head, body };
            }
        }
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "it was cut short: {text}");
        bytes.extend_from_slice(&buffer[..read]);
    }
}
