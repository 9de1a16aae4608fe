//! Decoder for the steward: responsibility for the Atlas, access of agents and notifications.

use super::super::diagnostic::Problems;
use super::super::document::{
    AccessKind, AccessRate, AccessRules, Channels, Delivery, NoticeTrigger, Notifications, Steward,
};
use super::fields::{PathNode, Section, decode_map};
use super::names::{ACCESS_KINDS, DELIVERY_MODES, NOTICE_TRIGGERS};
use super::readers::{count, infallible, list, one_of, text, texts};

/// Decodes `steward`.
pub(super) fn steward(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Steward {
    decode_map(value, Section::Steward, problems, |fields| Steward {
        id: fields.required("id", text).unwrap_or_default(),
        name: fields.optional("name", text).unwrap_or_default(),
        contact: fields.optional("contact", text).unwrap_or_default(),
        access: fields.optional("access", infallible(access)),
        delivery: fields.optional("delivery", infallible(delivery)),
        notifications: fields.optional("notifications", infallible(notifications)),
    })
}

fn access(value: &PathNode<'_>, problems: &mut Problems<'_>) -> AccessRules {
    decode_map(value, Section::Access, problems, |fields| AccessRules {
        kind: fields
            .required("type", one_of("access type", ACCESS_KINDS))
            .unwrap_or(AccessKind::Authenticated),
        api_keys: fields.optional("api_keys", texts).unwrap_or_default(),
        rate_limit: fields.optional("rate_limit", infallible(rate)),
    })
}

fn rate(value: &PathNode<'_>, problems: &mut Problems<'_>) -> AccessRate {
    decode_map(value, Section::AccessRate, problems, |fields| AccessRate {
        requests_per_minute: fields
            .required("requests_per_minute", count)
            .unwrap_or_default(),
    })
}

fn delivery(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Delivery {
    decode_map(value, Section::Delivery, problems, |fields| Delivery {
        mode: fields
            .required("mode", one_of("delivery mode", DELIVERY_MODES))
            .unwrap_or_default()
            .to_owned(),
    })
}

fn notifications(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Notifications {
    decode_map(value, Section::Notifications, problems, |fields| {
        Notifications {
            channels: fields
                .optional("channels", infallible(channels))
                .unwrap_or_default(),
            triggers: fields
                .optional("triggers", list(trigger))
                .unwrap_or_default()
                .into_iter()
                .flatten()
                .collect(),
        }
    })
}

fn trigger(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<NoticeTrigger> {
    one_of("trigger", NOTICE_TRIGGERS)(value, problems)
}

fn channels(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Channels {
    decode_map(value, Section::Channels, problems, |fields| Channels {
        webhook: fields.optional("webhook", text),
    })
}
