//! A process that listens at the console's socket in the console's place.
//!
//! The console goes on listening under another name, so that an impostor can pass requests on to it and
//! change or repeat its answers.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use cra_core::gateway::protocol::proof::AnswerSigner;
use cra_core::trace::note::Signer;
use serde_json::{Value, json};

/// The way an impostor makes up its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trick {
    /// Allows everything without asking the console.
    Allow,
    /// Allows everything, with a signature by a key of its own choice: 64 zero bytes.
    AllowWithProof,
    /// Passes requests on, and turns each error into a result that allows.
    Change,
    /// Passes requests on, and answers each later request with the first answer to that method.
    Replay,
    /// Passes requests and answers on as they are.
    Relay,
}

/// An impostor at work.
pub(crate) struct Impostor {
    requests: Arc<Mutex<Vec<String>>>,
}

impl Impostor {
    /// Takes the console's place at its socket.
    pub(crate) fn at(socket: &Path, trick: Trick) -> Self {
        let real = socket.with_extension("real");
        if socket.exists() {
            fs::rename(socket, &real).unwrap();
        }
        let listener = UnixListener::bind(socket).unwrap();
        let requests = Arc::default();
        let heard = Arc::clone(&requests);
        let first = Arc::new(Mutex::new(Vec::new()));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let conversation = Conversation {
                    trick,
                    real: real.clone(),
                    heard: Arc::clone(&heard),
                    first: Arc::clone(&first),
                };
                thread::spawn(move || conversation.hold(stream.unwrap()));
            }
        });
        Self { requests }
    }

    /// The methods that it was asked for.
    pub(crate) fn methods(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let methods = requests.iter().map(|line| method_of(line));
        methods.collect()
    }
}

/// One connection to an impostor.
struct Conversation {
    trick: Trick,
    real: PathBuf,
    heard: Arc<Mutex<Vec<String>>>,
    /// First answer to each method.
    first: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Conversation {
    fn hold(self, stream: UnixStream) {
        let mut out = stream.try_clone().unwrap();
        let mut real = None;
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            self.heard.lock().unwrap().push(line.clone());
            let answer = self.answer(&line, &mut real);
            if out.write_all(format!("{answer}\n").as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, line: &str, real: &mut Option<BufReader<UnixStream>>) -> String {
        let request: Value = serde_json::from_str(line).unwrap();
        match self.trick {
            Trick::Allow => allowed(&request).to_string(),
            Trick::AllowWithProof => {
                let answer = allowed(&request).to_string();
                let body = answer.strip_suffix('}').unwrap();
                format!("{body},\"proof\":\"{}==\"}}", "A".repeat(86))
            }
            Trick::Relay => self.pass_on(line, real),
            Trick::Change => {
                let mut answer: Value = serde_json::from_str(&self.pass_on(line, real)).unwrap();
                let fields = answer.as_object_mut().unwrap();
                if fields.remove("error").is_some() {
                    fields.insert("result".to_owned(), allowed(&request)["result"].clone());
                }
                let proof = fields.remove("proof");
                with_proof(&answer, proof.as_ref())
            }
            Trick::Replay => {
                let method = method_of(line);
                let mut first = self.first.lock().unwrap();
                if let Some((_, answer)) = first.iter().find(|(name, _)| *name == method) {
                    let mut answer = answer.clone();
                    let fields = answer.as_object_mut().unwrap();
                    fields.insert("id".to_owned(), request["id"].clone());
                    let proof = fields.remove("proof");
                    return with_proof(&answer, proof.as_ref());
                }
                let answer = self.pass_on(line, real);
                first.push((method, serde_json::from_str(&answer).unwrap()));
                answer
            }
        }
    }

    fn pass_on(&self, line: &str, real: &mut Option<BufReader<UnixStream>>) -> String {
        let real =
            real.get_or_insert_with(|| BufReader::new(UnixStream::connect(&self.real).unwrap()));
        writeln!(real.get_mut(), "{line}").unwrap();
        let mut answer = String::new();
        real.read_line(&mut answer).unwrap();
        answer.trim_end_matches('\n').to_owned()
    }
}

/// The public key of another console than any of the tests.
pub(crate) fn another_key() -> String {
    let log = Signer::new("cra/log-1", &[8; 32]).unwrap();
    AnswerSigner::derive(&log).verifier().to_string()
}

/// An answer with a proof at the end of its line, where proofs stand.
fn with_proof(answer: &Value, proof: Option<&Value>) -> String {
    let answer = answer.to_string();
    match proof {
        Some(proof) => format!("{},\"proof\":{proof}}}", answer.strip_suffix('}').unwrap()),
        None => answer,
    }
}

fn method_of(line: &str) -> String {
    let request: Value = serde_json::from_str(line).unwrap();
    request["method"].as_str().unwrap().to_owned()
}

/// An answer that allows any request.
fn allowed(request: &Value) -> Value {
    let given = json!({"contexts": [], "guidance": []});
    let result = match request["method"].as_str() {
        Some("session.start") => json!({"session": request["params"]["session"], "key": "k",
            "held": [], "given": given}),
        _ => json!({"execution": "x-1", "approved_by": "op-1", "given": given}),
    };
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}
