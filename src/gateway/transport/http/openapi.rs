//! Description of the HTTP interface for programs: an `OpenAPI` 3.1 document.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::call_handler;
use crate::gateway::protocol::call;

/// All calls: summary, parameters, and the name of the result in [`RESULTS`].
const CALLS: &str = include_str!("calls.json");

/// Schemas of results.
const RESULTS: &str = include_str!("results.json");

/// `GET /v1/openapi.json`
pub(super) async fn serve() -> Response {
    call_handler::json_response(StatusCode::OK, &document())
}

/// Returns the document.
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
            "description": "Calls of agents to a governance console. Only a 200 is a permission.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(),
        },
    })
}

fn schemas() -> Value {
    // INVARIANT: this is JSON. A test checks results against it.
    let mut schemas: Value = serde_json::from_str(RESULTS).unwrap_or_default();
    if let Some(schemas) = schemas.as_object_mut() {
        schemas.insert("Fault".to_owned(), fault());
    }
    schemas
}

fn fault() -> Value {
    json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": {"type": "integer", "description": "Error code for programs, as in JSON-RPC."},
            "message": {"type": "string", "description": "Error message for people."},
            "data": {
                "description": "Details: the code of the denial, the help and the gate; for a 409, the questions and the \
                                call that answers them.",
                "properties": {
                    "asked": {"$ref": "#/components/schemas/Asked"},
                    "answer_with": {"$ref": "#/components/schemas/AnswerWith"},
                },
            },
        },
    })
}

fn path(name: &str) -> Value {
    let describe = |why: &str| {
        json!({"description": why, "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Fault"}}}})
    };
    json!({"post": {
        "operationId": name,
        "summary": call_description(name).get("summary"),
        "requestBody": {"required": true, "content": {"application/json": {"schema": params(name)}}},
        "responses": {
            "200": {"description": "The result.", "content": {"application/json": {"schema": {"$ref": result(name)}}}},
            "400": describe("The request cannot be read."),
            "401": describe("The token is missing or wrong."),
            "403": describe("Denied."),
            "409": describe("The agent must answer first: `data.asked` has the questions, `data.answer_with` the path."),
            "410": describe("The session has ended."),
            "422": describe("The answers are not valid."),
            "429": describe("A limit is used up."),
            "503": describe("The console is too busy or cannot record."),
        },
    }})
}

fn hook() -> Value {
    json!({"post": {
        "operationId": "hook.claude-code",
        "summary": "Handles a hook of Claude Code. The status is always 200: with any other, Claude Code continues.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {"200": {"description": "The answer, in the format of Claude Code.", "content": {"application/json": {
            "schema": {"type": "object"}}}}},
    }})
}

fn events() -> Value {
    json!({"get": {
        "operationId": "events",
        "summary": "Streams the records of a session that its agent may see.",
        "parameters": [
            {"name": "session", "in": "query", "required": true, "schema": {"type": "string"}},
            {"name": "from", "in": "query", "schema": {"type": "integer", "minimum": 0}},
            {"name": "Cra-Session-Key", "in": "header", "required": true, "schema": {"type": "string"}},
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer", "minimum": 0}},
        ],
        "responses": {"200": {"description": "Server-sent events.", "content": {"text/event-stream": {}}}},
    }})
}

/// Returns the description of a call.
fn call_description(name: &str) -> Value {
    // INVARIANT: this is JSON. A test reads the document.
    let calls: Value = serde_json::from_str(CALLS).unwrap_or_default();
    calls.get(name).cloned().unwrap_or_default()
}

/// Returns the reference to the schema of a call's result.
fn result(name: &str) -> String {
    let description = call_description(name);
    let result = description.get("result").and_then(Value::as_str);
    format!("#/components/schemas/{}", result.unwrap_or_default())
}

/// Returns the schema of a call's parameters.
fn params(name: &str) -> Value {
    let description = call_description(name);
    let required = description.get("required").and_then(Value::as_array);
    let mut required = required.cloned().unwrap_or_default();
    if name != "session.start" {
        required.insert(0, "session".into());
    }
    let mut properties = description.get("properties").cloned().unwrap_or_default();
    if let Some(fields) = properties.as_object_mut() {
        fields.insert("session".to_owned(), json!({"type": "string"}));
        fields.insert(
            "key".to_owned(),
            json!({"type": "string", "minLength": 16, "maxLength": 256}),
        );
    }
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}
