//! Alarms as log entries: each is recorded when it is first shown.

use std::collections::BTreeSet;

use crate::base::text::one_line;
use crate::runtime::OperatorHandle;
use crate::runtime::snapshot::RuntimeSnapshot;
use crate::trace::event::AlarmRaised;

/// Kind of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AlarmKind {
    Socket,
    RejectedAnswer,
    Connection,
    Key,
    AgentLeft,
    Passing,
    State,
    Head,
    UnrequestedRun,
}

impl AlarmKind {
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
            Self::UnrequestedRun => "ran_unasked",
        }
    }
}

/// An alarm that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alarm {
    pub(super) kind: AlarmKind,
    pub(super) what: String,
}

impl Alarm {
    /// Creates alarms of one kind.
    pub(super) fn of_kind(kind: AlarmKind, texts: impl IntoIterator<Item = String>) -> Vec<Self> {
        let texts = texts.into_iter();
        texts.map(|what| Self { kind, what }).collect()
    }

    /// Identity of the alarm. It ignores counts, so an alarm stays the same while its count grows.
    fn identity(&self) -> (AlarmKind, String) {
        let text = self.what.chars().filter(|c| !c.is_ascii_digit());
        (self.kind, text.collect())
    }
}

/// Recorded alarms, for as long as they are shown.
#[derive(Debug, Default)]
pub(super) struct AlarmLog(BTreeSet<(AlarmKind, String)>);

impl AlarmLog {
    /// Records alarms that were not shown before. A failed record is tried again.
    pub(super) async fn record(&mut self, operator: &OperatorHandle, shown: &[Alarm]) {
        for alarm in self.take_new(shown) {
            let entry = AlarmRaised {
                alarm: alarm.kind.as_str().to_owned(),
                what: alarm.what.clone(),
                by: None,
            };
            match operator.record_entry(entry.into()).await {
                Ok(()) => drop(self.0.insert(alarm.identity())),
                Err(error) => tracing::error!(?error, "cannot record an alarm"),
            }
        }
    }

    /// Alarms that are not recorded yet; forgets those that are not shown any more.
    fn take_new(&mut self, shown: &[Alarm]) -> Vec<Alarm> {
        let marks: BTreeSet<_> = shown.iter().map(Alarm::identity).collect();
        self.0.retain(|mark| marks.contains(mark));
        // The runtime records these together with the report.
        let shown = shown
            .iter()
            .filter(|alarm| alarm.kind != AlarmKind::UnrequestedRun);
        let new = shown.filter(|alarm| !self.0.contains(&alarm.identity()));
        new.cloned().collect()
    }
}

/// Alarm text: an action ran without a request. Shown for as long as this console runs.
pub(super) fn unrequested_run_alarm(snapshot: &RuntimeSnapshot) -> Option<String> {
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
        let mut recorded = AlarmLog::default();
        let few = Alarm::of_kind(
            AlarmKind::Passing,
            ["5 connections were refused".to_owned()],
        );
        let more = Alarm::of_kind(
            AlarmKind::Passing,
            ["64 connections were refused".to_owned()],
        );
        assert_eq!(recorded.take_new(&few), few);
        recorded.0.insert(few[0].identity());
        assert_eq!(recorded.take_new(&more), []);
        let other = Alarm::of_kind(AlarmKind::Socket, ["the socket is gone".to_owned()]);
        assert_eq!(
            recorded.take_new(&[more.clone(), other.clone()].concat()),
            other
        );
        assert_eq!(recorded.take_new(&[]), []);
        assert_eq!(recorded.take_new(&more), more, "it began anew");
    }
}
