//! Alarms as log entries: each is recorded when it is first shown.

use std::collections::BTreeSet;

use crate::base::text::one_line;
use crate::runtime::Desk;
use crate::runtime::snapshot::Snapshot;
use crate::trace::event::AlarmRaised;

/// Kind of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Socket,
    RejectedAnswer,
    Connection,
    Key,
    AgentLeft,
    Passing,
    State,
    Head,
    RanUnasked,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::RejectedAnswer => "rejected_answer",
            Self::Connection => "connection",
            Self::Key => "key",
            Self::AgentLeft => "agent_left",
            Self::Passing => "passing",
            Self::State => "state",
            Self::Head => "head",
            Self::RanUnasked => "ran_unasked",
        }
    }
}

/// An alarm that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alarm {
    pub(super) kind: Kind,
    pub(super) what: String,
}

impl Alarm {
    /// Creates alarms of one kind.
    pub(super) fn all(kind: Kind, told: impl IntoIterator<Item = String>) -> Vec<Self> {
        let told = told.into_iter();
        told.map(|what| Self { kind, what }).collect()
    }

    /// Identity of the alarm. It ignores counts, so an alarm stays the same while its count grows.
    fn mark(&self) -> (Kind, String) {
        let text = self.what.chars().filter(|c| !c.is_ascii_digit());
        (self.kind, text.collect())
    }
}

/// Recorded alarms, for as long as they are shown.
#[derive(Debug, Default)]
pub(super) struct Recorded(BTreeSet<(Kind, String)>);

impl Recorded {
    /// Records alarms that were not shown before. A failed record is tried again.
    pub(super) async fn record(&mut self, desk: &Desk, shown: &[Alarm]) {
        for alarm in self.new_among(shown) {
            let entry = AlarmRaised {
                alarm: alarm.kind.as_str().to_owned(),
                what: alarm.what.clone(),
                by: None,
            };
            match desk.record_entry(entry.into()).await {
                Ok(()) => drop(self.0.insert(alarm.mark())),
                Err(error) => tracing::error!(?error, "an alarm cannot be recorded"),
            }
        }
    }

    /// Alarms that are not recorded yet; forgets those that are not shown any more.
    fn new_among(&mut self, shown: &[Alarm]) -> Vec<Alarm> {
        let marks: BTreeSet<_> = shown.iter().map(Alarm::mark).collect();
        self.0.retain(|mark| marks.contains(mark));
        // The runtime records these together with the report.
        let shown = shown.iter().filter(|alarm| alarm.kind != Kind::RanUnasked);
        let new = shown.filter(|alarm| !self.0.contains(&alarm.mark()));
        new.cloned().collect()
    }
}

/// Alarm text: an action ran without a request. Shown for as long as this console runs.
pub(super) fn ran_unasked(snapshot: &Snapshot) -> Option<String> {
    let ran = snapshot.ran_unasked.as_ref()?;
    let more = match ran.count {
        1 => String::new(),
        count => format!(" ({count} such actions)"),
    };
    let (session, what) = (&ran.session, one_line(&ran.what));
    Some(format!("{session}: {what}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_new_once_although_its_count_grows() {
        let mut recorded = Recorded::default();
        let few = Alarm::all(Kind::Passing, ["5 connections were refused".to_owned()]);
        let more = Alarm::all(Kind::Passing, ["64 connections were refused".to_owned()]);
        assert_eq!(recorded.new_among(&few), few);
        recorded.0.insert(few[0].mark());
        assert_eq!(recorded.new_among(&more), []);
        let other = Alarm::all(Kind::Socket, ["the socket is gone".to_owned()]);
        assert_eq!(
            recorded.new_among(&[more.clone(), other.clone()].concat()),
            other
        );
        assert_eq!(recorded.new_among(&[]), []);
        assert_eq!(recorded.new_among(&more), more, "it began anew");
    }
}
