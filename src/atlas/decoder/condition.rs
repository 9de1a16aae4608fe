//! Decoder for `when:` conditions.

use serde_json::Value as Json;

use super::super::condition::{ConditionDef, Operator};
use super::super::diagnostic::{Code, Problems};
use super::fields::{PathNode, Section, decode_map};
use super::readers::{infallible, list, text};

/// Decodes one condition. An unreadable condition is reported and replaced by a placeholder.
pub(super) fn condition(value: &PathNode<'_>, problems: &mut Problems<'_>) -> ConditionDef {
    let (forms, tests) = decode_map(value, Section::Condition, problems, |fields| {
        let all = fields
            .optional("all", list(condition))
            .map(ConditionDef::All);
        let any = fields
            .optional("any", list(condition))
            .map(ConditionDef::Any);
        let not = fields.optional("not", infallible(condition));
        let not = not.map(|part| ConditionDef::Not(Box::new(part)));
        let path = fields.optional("path", text);
        let mut tests = Vec::new();
        for (name, operator) in Operator::NAMES {
            let wanted = fields.optional(*name, |value, _| Some(value.node.to_json()));
            tests.extend(wanted.map(|wanted: Json| (*operator, wanted)));
        }
        let leaf = path.map(|path| ConditionDef::Leaf {
            path,
            tests: tests.clone(),
        });
        let forms: Vec<_> = [all, any, not, leaf].into_iter().flatten().collect();
        (forms, tests)
    });
    let count = forms.len();
    let mut forms = forms.into_iter();
    match forms.next() {
        Some(ConditionDef::Leaf { path, tests }) if count == 1 => {
            ConditionDef::Leaf { path, tests }
        }
        Some(form) if count == 1 && tests.is_empty() => form,
        _ => {
            let message = "a condition must be `all`, `any`, `not`, or a `path` with operators";
            problems.add(value.problem(Code::Contradiction, message));
            ConditionDef::All(Vec::new())
        }
    }
}
