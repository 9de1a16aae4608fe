use super::*;
use crate::base::digest::Digest;

fn by(session: &str, secret: Option<&str>, number: u32) -> TurnIds {
    TurnIds {
        by: ThreadOwner {
            secret: secret.map(Digest::of),
            ..owner(session)
        },
        memento: format!("mm-{number}").parse().unwrap(),
    }
}

fn go() -> Turn {
    turn("go", &json!({}))
}

fn brings(memento: &Value) -> Value {
    json!({"context": {"thread_memento": memento}})
}

fn take(thread: &Thread, fields: &Value, number: u32) -> (Thread, TurnOutcome) {
    let taken = thread.process_turn(&turn("go", fields), named(number), at(number.into()));
    taken.unwrap()
}

fn edited(thread: &Thread) -> Thread {
    let shape = SummaryShape {
        arc: "the operator's".to_owned(),
        ..SummaryShape::default()
    };
    let etag = thread.etag().unwrap();
    let edited = thread.edit(&shape, &etag, "edit-1".parse().unwrap(), at(5));
    edited.unwrap()
}

#[test]
fn only_the_owner_and_sessions_with_its_secret_take_turns() {
    let first = by("s-1", Some("key"), 1);
    let (one, _) = thread().process_turn(&go(), first, at(1)).unwrap();
    let refused = |named: TurnIds| one.process_turn(&go(), named, at(2)).map(|_| ());
    assert_eq!(refused(by("s-2", None, 2)), Err(TurnRefusal::NotOwner));
    assert_eq!(
        refused(by("s-2", Some("other"), 2)),
        Err(TurnRefusal::NotOwner)
    );
    assert_eq!(refused(by("s-1", Some("key"), 2)), Ok(()));
    // A later session with the same secret continues the thread, and the first one still may.
    let (two, _) = one
        .process_turn(&go(), by("s-2", Some("key"), 2), at(2))
        .unwrap();
    assert_eq!(two.owner.as_ref().unwrap().session.as_str(), "s-2");
    assert!(two.admits(&by("s-1", Some("key"), 3).by));
    // Two sessions without a secret are not the same.
    let (bare, _) = thread()
        .process_turn(&go(), by("s-1", None, 1), at(1))
        .unwrap();
    assert!(!bare.admits(&owner("s-2")));
}

#[test]
fn offered_thread_changes_its_owner_with_the_first_turn() {
    let (one, _) = take(&thread(), &json!({}), 1);
    let offered = one.offer("s-2".parse().unwrap());
    assert!(offered.admits(&owner("s-1")) && offered.admits(&owner("s-2")));
    assert!(!offered.admits(&owner("s-3")));
    // A turn of the owner does not revoke the offer.
    let (offered, _) = take(&offered, &json!({}), 2);
    let (two, _) = offered
        .process_turn(&go(), by("s-2", None, 3), at(3))
        .unwrap();
    assert!(two.is_owned_by(&owner("s-2")));
    assert!(!two.admits(&owner("s-1")));
    assert_eq!(two.offered_to, None);
}

#[test]
fn owner_of_an_old_thread_is_inferred_from_its_turns() {
    let stored = |id: &str, writers: &[&str]| {
        let session = |name: &str| name.parse::<SessionId>().unwrap();
        let mut thread = Thread::new(id.parse().unwrap(), session(writers[0]));
        for (number, writer) in (1..).zip(writers) {
            thread.owner = Some(owner(writer));
            let named = by(writer, None, number);
            thread = thread
                .process_turn(&go(), named, at(number.into()))
                .unwrap()
                .0;
        }
        let mut old = serde_json::to_value(&thread).unwrap();
        for field in ["owner", "offered_to", "refused"] {
            old.as_object_mut().unwrap().remove(field);
        }
        let read: Thread = serde_json::from_value(old).unwrap();
        let owner = read.with_inferred_owner().owner;
        owner.map(|owner| owner.session.to_string())
    };
    assert_eq!(stored("t-1", &["s-1", "s-1"]).as_deref(), Some("s-1"));
    // Others wrote to a session's own thread.
    assert_eq!(stored("s-1", &["s-1", "s-2"]).as_deref(), Some("s-1"));
    // The last writer may be the one without the right to write.
    assert_eq!(stored("t-1", &["s-1", "s-2"]), None);
}

// covers D20
#[test]
fn outdated_memento_replaces_nothing() {
    let proposes = json!({"proposed": proposal()});
    let (one, first) = take(&thread(), &proposes, 1);
    let edited = edited(&one);
    let old = serde_json::to_value(&first.memento).unwrap();
    let by_ref = json!({"context": {"thread_memento_ref": first.memento.memento_id}});
    for fields in [brings(&old), by_ref] {
        let (next, outcome) = take(&edited, &fields, 6);
        assert_eq!(outcome.memento.arc.as_str(), "the operator's");
        assert_eq!(outcome.source, BaselineSource::StoredLatest);
        assert_eq!(outcome.notes.len(), 1);
        assert!(outcome.notes[0].contains("is not the newest of this thread"));
        assert!(next.edited, "the agent has not read the edit");
    }
}

// covers D20
#[test]
fn proposal_with_an_outdated_memento_is_held_back_after_an_edit() {
    let (one, first) = take(&thread(), &json!({}), 1);
    let edited = edited(&one);
    let mut fields = brings(&serde_json::to_value(&first.memento).unwrap());
    fields["proposed"] = proposal();
    let (next, outcome) = take(&edited, &fields, 6);
    assert_eq!(outcome.decided.rule, DecisionRule::SummaryChanged);
    assert_eq!(outcome.summary, SummaryResult::Kept(KeptReason::BeforeEdit));
    assert_eq!(outcome.memento.arc.as_str(), "the operator's");
    assert_eq!(next.held_back[0].why, KeptReason::BeforeEdit);
    // The response contained the edit: the agent's next proposal is accepted.
    let mut fields = brings(&serde_json::to_value(&outcome.memento).unwrap());
    fields["proposed"] = proposal();
    let (next, outcome) = take(&next, &fields, 7);
    assert_eq!(outcome.decided.rule, DecisionRule::SummaryChanged);
    assert_eq!(outcome.summary, SummaryResult::Updated);
    assert!(!next.edited && next.held_back.is_empty());
    // A proposal with the ETag of the edit is accepted, too.
    let mut fields = brings(&serde_json::to_value(&first.memento).unwrap());
    fields["proposed"] = proposal();
    fields["if_match"] = json!(edited.etag());
    let (_, outcome) = take(&edited, &fields, 6);
    assert_eq!(outcome.summary, SummaryResult::Updated);
}

// covers D20
#[test]
fn proposal_without_proof_of_reading_the_edit_is_held_back_once() {
    let (one, _) = take(&thread(), &json!({}), 1);
    let edited = edited(&one);
    let blind = json!({"proposed": proposal()});
    let (next, outcome) = take(&edited, &blind, 6);
    assert_eq!(outcome.summary, SummaryResult::Kept(KeptReason::BeforeEdit));
    assert_eq!(outcome.memento.arc.as_str(), "the operator's");
    assert_eq!(next.held_back[0].why, KeptReason::BeforeEdit);
    let notes = outcome.notes.join("; ");
    assert!(notes.contains("not used"), "{notes}");
    // The response contained the edit, also after the thread was stored and read again.
    let stored = serde_json::to_string(&next).unwrap();
    let next: Thread = serde_json::from_str(&stored).unwrap();
    let (next, outcome) = take(&next, &blind, 7);
    assert_eq!(outcome.decided.rule, DecisionRule::SummaryChanged);
    assert_eq!(outcome.summary, SummaryResult::Updated);
    assert!(!next.edited && next.held_back.is_empty());
    // The response to a turn without a proposal contained it, too.
    let (informed, _) = take(&edited, &json!({}), 6);
    let (_, outcome) = take(&informed, &blind, 7);
    assert_eq!(outcome.summary, SummaryResult::Updated);
    // Another edit must be read, too.
    let again = self::edited(&informed);
    let (_, outcome) = take(&again, &blind, 8);
    assert_eq!(outcome.summary, SummaryResult::Kept(KeptReason::BeforeEdit));
}

#[test]
fn edit_read_by_one_session_is_unread_for_another_with_the_same_secret() {
    let first = Thread::new("t-1".parse().unwrap(), "s-1".parse().unwrap());
    let turn_by = |thread: &Thread, session: &str, fields: &Value, number: u32| {
        let named = by(session, Some("ours"), number);
        let taken = thread.process_turn(&turn("go", fields), named, at(number.into()));
        taken.unwrap()
    };
    let (one, _) = turn_by(&first, "s-1", &json!({}), 1);
    let (informed, _) = turn_by(&edited(&one), "s-1", &json!({}), 6);
    let blind = json!({"proposed": proposal()});
    let (next, outcome) = turn_by(&informed, "s-2", &blind, 7);
    assert_eq!(outcome.summary, SummaryResult::Kept(KeptReason::BeforeEdit));
    assert!(next.edited, "it still has to be followed");
    let (_, outcome) = turn_by(&next, "s-1", &blind, 8);
    assert_eq!(outcome.summary, SummaryResult::Updated);
}

// covers D14
#[test]
fn changed_copy_of_the_stored_memento_is_ignored() {
    let hot = json!({
        "affect": {"label": "tense", "intensity": 0.9, "confidence": "high", "source": "model"},
        "proposed": proposal(),
    });
    let (one, outcome) = take(&thread(), &hot, 1);
    let mut changed = serde_json::to_value(&outcome.memento).unwrap();
    changed["arc"] = json!("mine");
    changed["affect"] = memento()["affect"].clone();
    let (_, outcome) = take(&one, &brings(&changed), 2);
    assert_eq!(outcome.source, BaselineSource::Request);
    assert_eq!(outcome.memento.arc.as_str(), "purge all");
    assert_eq!(outcome.memento.affect.points.len(), 1);
    assert!(outcome.freeze.is_frozen());
    assert!(outcome.notes[0].contains("differs from the stored one"));
}
