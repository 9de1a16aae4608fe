/**
 * Errors of the client. None of them lets an action run.
 */
/** Base class of all errors of this package. */
export class CraError extends Error {
    name = "CraError";
    /** Reason for a person or a model. */
    get reason() {
        return this.message;
    }
}
/** The request cannot be sent, or the console says that it is malformed. Nothing was allowed. */
export class InvalidRequest extends CraError {
    name = "InvalidRequest";
}
/** The console denied the request. */
export class Denied extends CraError {
    name = "Denied";
    code;
    help;
    gate;
    constructor(reason, details = {}) {
        super(reason);
        this.code = details.code ?? "denied";
        this.help = details.help;
        this.gate = details.gate;
    }
    /** Reason and help in one text, for the model that asked. */
    get explanation() {
        return this.help === undefined ? this.message : `${this.message} (${this.help})`;
    }
}
/**
 * The request is held until the agent answers questions. Answer with `Session.answerCheckpoint` and send the same request
 * again, or give the session an `onQuestions` function, and the client does both.
 */
export class QuestionsAsked extends Denied {
    name = "QuestionsAsked";
    asked;
    problems;
    constructor(reason, asked, problems = []) {
        super(reason, { code: "asked", gate: String(asked["gate"]) });
        this.asked = asked;
        this.problems = problems;
    }
    /** True when an operator must answer, too. */
    get needsOperator() {
        return this.asked["operator"] === true;
    }
    /** The questions, by checkpoint. */
    get questions() {
        const gates = (Array.isArray(this.asked["gates"]) ? this.asked["gates"] : []);
        const names = gates.map((gate) => String(gate["checkpoint_id"]));
        const found = new Map();
        gates.forEach((gate, at) => {
            const name = names[at] ?? "";
            // Two checkpoints of one name are told apart by their Atlas.
            const isShared = names.filter((other) => other === name).length > 1;
            const questions = Array.isArray(gate["questions"]) ? gate["questions"] : [];
            found.set(isShared ? `${String(gate["atlas_id"])}/${name}` : name, questions);
        });
        return found;
    }
}
/** The agent's answers break rules of the questions. The request is still held. */
export class AnswersRejected extends Denied {
    name = "AnswersRejected";
    problems;
    constructor(reason, gate, problems) {
        super(reason, { code: "invalid_answers", gate });
        this.problems = problems;
    }
}
/** No console answered: it is not running, it closed the connection, or the time was up. */
export class ConsoleUnavailable extends CraError {
    name = "ConsoleUnavailable";
}
/** An answer was not signed with the console's key: another process listens at the socket, or the key is wrong. */
export class UnverifiedAnswer extends ConsoleUnavailable {
    name = "UnverifiedAnswer";
}
/** The action ran, and its result could not be reported. Do not run it again because of this error. */
export class NotReported extends CraError {
    name = "NotReported";
}
/** The connection failed. Without `sent`, the console cannot have taken the request. */
export class ConnectionLost extends ConsoleUnavailable {
    sent;
    constructor(reason, sent) {
        super(reason);
        this.sent = sent;
    }
}
