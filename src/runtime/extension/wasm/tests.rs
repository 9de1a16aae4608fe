//! Tests with well-behaved and misbehaving modules.

use super::*;

const LIMITS: WasmLimits = WasmLimits {
    fuel: 1_000_000,
    memory_bytes: 256 * 1024,
};

/// Builds a module that stores questions at 4096 and answers with the value that `body` leaves on the
/// stack.
fn module(body: &str) -> Result<WasmExtension, String> {
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (data (i32.const 0) "true")
            (data (i32.const 16) "{{\"continue\": false, \"block_reason\": \"no\"}}")
            (data (i32.const 128) "not json")
            (func (export "alloc") (param i32) (result i32) (i32.const 4096))
            (func (export "answer") (param i32 i32) (result i64) {body}))"#
    );
    WasmExtension::new(&wat::parse_str(text).unwrap(), LIMITS)
}

/// Returns code for an answer at `start` with `length` bytes.
fn at(start: u64, length: u64) -> String {
    format!("(i64.const {})", (start << 32) | length)
}

fn ask(body: &str) -> Result<Value, String> {
    module(body).unwrap().ask("{}")
}

#[test]
fn a_module_answers_with_json() {
    assert_eq!(ask(&at(0, 4)), Ok(Value::Bool(true)));
    let object = ask(&at(16, 41)).unwrap();
    assert_eq!(object["block_reason"], "no");
}

#[test]
fn a_module_sees_the_question() {
    // Returns the question as the answer.
    let echo = "(i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32)) \
                (i64.extend_i32_u (local.get 1)))";
    let module = module(echo).unwrap();
    assert_eq!(module.ask(r#"{"a":1}"#), Ok(serde_json::json!({"a": 1})));
}

// covers B28
#[test]
fn a_module_that_loops_or_grows_without_end_is_stopped() {
    let endless = ask("(loop (br 0)) (i64.const 0)").unwrap_err();
    assert!(endless.contains("used up its fuel"), "{endless}");
    let greedy = "(drop (memory.grow (i32.const 1000))) (i64.const 0)";
    let greedy = ask(greedy).unwrap_err();
    assert!(greedy.contains("memory limit"), "{greedy}");
    let deep = module_of(
        r#"(memory (export "memory") 1)
           (func (export "alloc") (param i32) (result i32) (i32.const 0))
           (func $deep (export "answer") (param i32 i32) (result i64)
             (call $deep (local.get 0) (local.get 1)))"#,
    );
    assert!(deep.unwrap().ask("{}").is_err());
}

fn module_of(parts: &str) -> Result<WasmExtension, String> {
    let bytes = wat::parse_str(format!("(module {parts})")).unwrap();
    WasmExtension::new(&bytes, LIMITS)
}

#[test]
fn an_invalid_answer_of_a_module_is_an_error() {
    for body in [
        at(70_000, 4),
        at(u64::from(u32::MAX), 4),
        at(0, u64::from(u32::MAX)),
        at(128, 8),
        at(0, 0),
        "unreachable".to_owned(),
    ] {
        assert!(ask(&body).is_err(), "{body}");
    }
}

#[test]
fn a_question_has_to_fit_into_the_memory_that_the_module_allocates() {
    let module = module_of(
        r#"(memory (export "memory") 1)
           (func (export "alloc") (param i32) (result i32) (i32.const 65530))
           (func (export "answer") (param i32 i32) (result i64) (i64.const 0))"#,
    );
    assert!(module.unwrap().ask("0123456789").is_err());
}

#[test]
fn an_invalid_module_is_refused_when_it_is_loaded() {
    assert!(WasmExtension::new(b"not wasm", LIMITS).is_err());
    let imports = module_of(r#"(import "env" "exit" (func))"#);
    assert!(imports.err().unwrap().contains("env.exit"));
    let nothing = module_of(r#"(memory (export "memory") 1)"#);
    assert!(nothing.err().unwrap().contains("alloc"));
    // Wrong types of functions are found when the module is called; it gives no answer then.
    let wrong = module_of(
        r#"(memory (export "memory") 1) (func (export "alloc")) (func (export "answer"))"#,
    );
    assert!(wrong.unwrap().ask("{}").is_err());
    let unsound = [
        0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 4, 1, 2, 0, 0x6a,
    ];
    assert!(WasmExtension::new(&unsound, LIMITS).is_err());
}

#[test]
fn each_question_gets_a_new_instance() {
    let counting = module_of(
        r#"(memory (export "memory") 1)
           (data (i32.const 0) "0")
           (func (export "alloc") (param i32) (result i32) (i32.const 4096))
           (func (export "answer") (param i32 i32) (result i64)
             (i32.store8 (i32.const 0) (i32.add (i32.load8_u (i32.const 0)) (i32.const 1)))
             (i64.const 1))"#,
    )
    .unwrap();
    assert_eq!(counting.ask("{}"), counting.ask("{}"));
}
