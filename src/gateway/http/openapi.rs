//! What the door takes, for programs that read it: an `OpenAPI` 3.1 document.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::serve;
use crate::gateway::call;

/// `GET /v1/openapi.json`
pub(super) async fn serve() -> Response {
    serve::json(StatusCode::OK, &document())
}

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut paths: Map<String, Value> = call::names()
        .map(|name| (format!("/v1/{}", name.replace('.', "/")), path(name)))
        .collect();
    paths.insert("/v1/hook/claude-code".to_owned(), hook());
    paths.insert("/v1/events".to_owned(), events());
    paths.insert("/v1/openapi.json".to_owned(), json!({"get": {
        "operationId": "openapi", "summary": "This document.",
        "responses": {"200": {"description": "This document.", "content": {"application/json": {}}}},
    }}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "cra",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Calls of agents at a governance console. Nothing but a 200 is a yes.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Fault": fault()},
        },
    })
}

fn fault() -> Value {
    json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": {"type": "integer", "description": "For programs, as in JSON-RPC."},
            "message": {"type": "string", "description": "For people."},
            "data": {"description": "The rest: the denial's code, the way out, the gate."},
        },
    })
}

fn path(name: &str) -> Value {
    let told = |why: &str| {
        json!({"description": why, "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Fault"}}}})
    };
    json!({"post": {
        "operationId": name,
        "summary": summary(name),
        "requestBody": {"required": true, "content": {"application/json": {"schema": params(name)}}},
        "responses": {
            "200": {"description": "The result.", "content": {"application/json": {"schema": {"type": "object"}}}},
            "400": told("It cannot be read."),
            "401": told("No token, or a wrong one."),
            "403": told("Denied."),
            "409": told("The agent has to answer first."),
            "410": told("The session has ended."),
            "422": told("The answers break rules."),
            "429": told("A limit is used up."),
            "503": told("Too busy, or nothing can be recorded."),
        },
    }})
}

fn hook() -> Value {
    json!({"post": {
        "operationId": "hook.claude-code",
        "summary": "A hook of Claude Code, as it sends it. Always 200: everything else lets it go on.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {"200": {"description": "The answer, in its format.", "content": {"application/json": {
            "schema": {"type": "object"}}}}},
    }})
}

fn events() -> Value {
    json!({"get": {
        "operationId": "events",
        "summary": "What is recorded of a session, as it is recorded.",
        "parameters": [
            {"name": "session", "in": "query", "required": true, "schema": {"type": "string"}},
            {"name": "from", "in": "query", "schema": {"type": "integer", "minimum": 0}},
            {"name": "Cra-Session-Key", "in": "header", "required": true, "schema": {"type": "string"}},
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer", "minimum": 0}},
        ],
        "responses": {"200": {"description": "Server-sent events.", "content": {"text/event-stream": {}}}},
    }})
}

fn summary(name: &str) -> &'static str {
    match name {
        "session.start" => "Begins a session, or takes it up again.",
        "session.end" => "Ends a session.",
        "input" => "Says what input the agent was given.",
        "action.request" => "Asks to run an action; answered when that is decided.",
        "action.completed" => "Says what came of an action.",
        "context.request" => "Asks for context, or for a checkpoint by its name.",
        "context.feedback" => "Says whether a context helped.",
        "turn" => "Takes a turn of a conversation.",
        "checkpoint.answer" => "Answers what is the agent's to answer.",
        "error" => "Reports an error.",
        "error.recovered" => "Says that an error was dealt with.",
        "output" => "Says what the agent produced.",
        "resolve" => "Asks what the agent may do now; runs nothing.",
        _ => "",
    }
}

/// The parameters of a call.
fn params(name: &str) -> Value {
    let text = || json!({"type": "string"});
    let (required, fields): (&[&str], Value) = match name {
        "session.start" => (
            &["agent"],
            json!({"agent": text(), "version": text(), "intent": text(), "api_key": text()}),
        ),
        "session.end" => (
            &[],
            json!({"status": {"enum": ["completed", "failed", "cancelled"]}, "summary": text()}),
        ),
        "input" => (
            &["text"],
            json!({"text": text(), "source": {"enum": ["user", "system", "other_agent"]}}),
        ),
        "action.request" => (
            &["action"],
            json!({
                "action": text(), "params": {"type": "object"}, "deadline": {"type": "string", "format": "date-time"},
                "resolution": text(), "reference": text(),
            }),
        ),
        "action.completed" => (
            &[],
            json!({
                "execution": text(), "reference": text(), "result": text(),
                "error": {"type": "object", "required": ["code", "message"],
                    "properties": {"code": text(), "message": text()}},
            }),
        ),
        "context.request" => (
            &[],
            json!({
                "query": text(), "hints": {"type": "array", "items": text()}, "checkpoint": text(),
            }),
        ),
        "context.feedback" => (
            &["context_id", "helpful"],
            json!({
                "context_id": text(), "helpful": {"type": "boolean"}, "reason": text(), "usage_outcome": text(),
            }),
        ),
        "turn" => (
            &["turn"],
            json!({"thread": text(), "turn": {"type": "object",
            "required": ["message_id", "message"]}}),
        ),
        "checkpoint.answer" => (
            &["gate", "answers"],
            json!({"gate": text(), "answers": {"type": "object",
            "additionalProperties": {"type": "object"}}}),
        ),
        "error" => (
            &["error_type", "message"],
            json!({
                "error_type": text(), "error_code": text(), "message": text(), "recoverable": {"type": "boolean"},
                "stack_trace": text(),
            }),
        ),
        "error.recovered" => (
            &["error", "method", "success"],
            json!({
                "error": text(), "method": text(), "success": {"type": "boolean"},
            }),
        ),
        "output" => (
            &["text"],
            json!({
                "text": text(), "output_type": text(), "contains_action": {"type": "boolean"},
            }),
        ),
        "resolve" => (
            &[],
            json!({"input": text(), "actions": {"type": "array", "items": {"type": "object",
            "required": ["action"], "additionalProperties": false,
            "properties": {"action": text(), "params": {"type": "object"}}}}}),
        ),
        _ => (&[], json!({})),
    };
    let mut required = required.to_vec();
    if name != "session.start" {
        required.insert(0, "session");
    }
    let mut properties = fields;
    if let Some(fields) = properties.as_object_mut() {
        fields.insert("session".to_owned(), text());
        fields.insert(
            "key".to_owned(),
            json!({"type": "string", "minLength": 16, "maxLength": 256}),
        );
    }
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}
