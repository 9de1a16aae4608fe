//! Extensions that are called over HTTP, only at the exact address that the operator named.

use std::time::Duration;

use serde_json::Value;
use ureq::Agent;

use super::{Client, Extension};
use crate::base::address;
use crate::base::clock::Boxed;
use crate::base::json;
use crate::base::limits::MAX_EXTENSION_BYTES;
use crate::engine::extension::ExtensionCall;
use crate::runtime::http_client;

/// An address that is called with POST: question and answer are JSON.
#[derive(Clone, Debug)]
pub struct HttpExtension {
    agent: Agent,
    address: String,
}

impl HttpExtension {
    /// Creates an extension for an address: over TLS, or on this machine.
    ///
    /// # Errors
    /// Fails with a message when the address is of another kind.
    pub fn new(address: &str, timeout: Duration) -> Result<Self, String> {
        address::check(address).map_err(|error| error.to_string())?;
        Ok(Self {
            agent: http_client::http_agent(timeout),
            address: address.to_owned(),
        })
    }

    fn ask(&self, question: &str) -> Result<Value, String> {
        let request = self.agent.post(&self.address);
        let request = request.header("Content-Type", "application/json");
        let mut response = request.send(question).map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(format!("it returned status {}", response.status()));
        }
        let body = response.body_mut().with_config();
        let text = body.limit(MAX_EXTENSION_BYTES as u64).read_to_string();
        let text = text.map_err(|error| error.to_string())?;
        json::read(text.as_bytes()).map_err(|error| format!("its answer is {error}"))
    }
}

impl Extension for HttpExtension {
    fn call<'a>(&'a self, call: &'a ExtensionCall, _: Client) -> Boxed<'a, Result<Value, String>> {
        let (to, question) = (self.clone(), call.to_json().to_string());
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || to.ask(&question)).await;
            asked.unwrap_or_else(|_| Err("it crashed".to_owned()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Starts a server that gives one fixed answer, and returns the request that it got.
    fn server(answer: &'static str) -> (String, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/check", listener.local_addr().unwrap());
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = Vec::new();
            let mut buffer = [0; 4096];
            while !String::from_utf8_lossy(&got).ends_with('}') {
                let read = stream.read(&mut buffer).unwrap();
                if read == 0 {
                    break;
                }
                got.extend_from_slice(&buffer[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&got).into_owned()
        });
        (address, served)
    }

    fn ask(address: &str) -> Result<Value, String> {
        let extension = HttpExtension::new(address, Duration::from_secs(5)).unwrap();
        extension.ask(r#"{"kind":"handler"}"#)
    }

    #[test]
    fn the_extension_posts_the_question_and_reads_the_answer() {
        let (address, served) = server(
            "HTTP/1.1 200 OK\r\nContent-Length: 34\r\nConnection: close\r\n\r\n{\"approved\":false,\"reason\":\"late\"}",
        );
        let answer = ask(&address).unwrap();
        assert_eq!(answer["reason"], "late");
        let sent = served.join().unwrap();
        assert!(sent.starts_with("POST /check HTTP/1.1"), "{sent}");
        assert!(sent.ends_with(r#"{"kind":"handler"}"#), "{sent}");
    }

    #[test]
    fn an_invalid_answer_is_an_error() {
        for answer in [
            "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntrue",
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes",
            "nonsense",
        ] {
            let (address, served) = server(answer);
            assert!(ask(&address).is_err(), "{answer}");
            served.join().unwrap();
        }
        assert!(ask("http://127.0.0.1:1/").is_err(), "nobody is there");
    }

    #[test]
    fn only_encrypted_or_local_addresses_are_accepted() {
        let new = |address| HttpExtension::new(address, Duration::from_secs(1));
        for good in [
            "https://validation.example.com/check",
            "http://localhost:8080/",
            "http://[::1]:80/",
        ] {
            assert!(new(good).is_ok(), "{good}");
        }
        for bad in [
            "http://validation.example.com/",
            "ftp://x/",
            "/check",
            "",
            "http://localhost.evil.example/",
        ] {
            assert!(new(bad).is_err(), "{bad}");
        }
    }
}
