/**
 * Errors of the client. None of them lets an action run.
 */

/** Base class of all errors of this package. */
export class CraError extends Error {
  override name = "CraError";

  /** Reason for a person or a model. */
  get reason(): string {
    return this.message;
  }
}

/** The request cannot be sent, or the console says that it is malformed. Nothing was allowed. */
export class InvalidRequest extends CraError {
  override name = "InvalidRequest";
}

/** Details of a denial. */
export interface DenialDetails {
  /** Code for programs: `refused`, `policy`, `expired` and others. */
  readonly code?: string | undefined;
  /** Advice for the agent. */
  readonly help?: string | undefined;
  /** The gate that held the request. */
  readonly gate?: string | undefined;
}

/** The console denied the request. */
export class Denied extends CraError {
  override name = "Denied";
  readonly code: string;
  readonly help: string | undefined;
  readonly gate: string | undefined;

  constructor(reason: string, details: DenialDetails = {}) {
    super(reason);
    this.code = details.code ?? "denied";
    this.help = details.help;
    this.gate = details.gate;
  }

  /** Reason and help in one text, for the model that asked. */
  get explanation(): string {
    return this.help === undefined ? this.message : `${this.message} (${this.help})`;
  }
}

/** One question of a checkpoint to the agent. */
export interface Question {
  readonly question_id: string;
  readonly question: string;
  readonly response_type: string;
  readonly [field: string]: unknown;
}

/** A broken rule of an answer. */
export interface AnswerProblem {
  readonly checkpoint?: string;
  readonly question?: string;
  readonly rules?: readonly string[];
}

/**
 * The request is held until the agent answers questions. Answer with `Session.answerCheckpoint` and send the same request
 * again, or give the session an `onQuestions` function, and the client does both.
 */
export class QuestionsAsked extends Denied {
  override name = "QuestionsAsked";
  readonly asked: Readonly<Record<string, unknown>>;
  readonly problems: readonly AnswerProblem[];

  constructor(reason: string, asked: Readonly<Record<string, unknown>>, problems: readonly AnswerProblem[] = []) {
    super(reason, { code: "asked", gate: String(asked["gate"]) });
    this.asked = asked;
    this.problems = problems;
  }

  /** True when an operator must answer, too. */
  get needsOperator(): boolean {
    return this.asked["operator"] === true;
  }

  /** The questions, by checkpoint. */
  get questions(): Map<string, Question[]> {
    const gates = (Array.isArray(this.asked["gates"]) ? this.asked["gates"] : []) as Record<string, unknown>[];
    const names = gates.map((gate) => String(gate["checkpoint_id"]));
    const found = new Map<string, Question[]>();
    gates.forEach((gate, at) => {
      const name = names[at] ?? "";
      // Two checkpoints of one name are told apart by their Atlas.
      const isShared = names.filter((other) => other === name).length > 1;
      const questions = Array.isArray(gate["questions"]) ? gate["questions"] : [];
      found.set(isShared ? `${String(gate["atlas_id"])}/${name}` : name, questions as Question[]);
    });
    return found;
  }
}

/** The agent's answers break rules of the questions. The request is still held. */
export class AnswersRejected extends Denied {
  override name = "AnswersRejected";
  readonly problems: readonly AnswerProblem[];

  constructor(reason: string, gate: string | undefined, problems: readonly AnswerProblem[]) {
    super(reason, { code: "invalid_answers", gate });
    this.problems = problems;
  }
}

/** No console answered: it is not running, it closed the connection, or the time was up. */
export class ConsoleUnavailable extends CraError {
  override name = "ConsoleUnavailable";
}

/** An answer was not signed with the console's key: another process listens at the socket, or the key is wrong. */
export class UnverifiedAnswer extends ConsoleUnavailable {
  override name = "UnverifiedAnswer";
}

/** The action ran, and its result could not be reported. Do not run it again because of this error. */
export class NotReported extends CraError {
  override name = "NotReported";
}

/** The connection failed. Without `sent`, the console cannot have taken the request. */
export class ConnectionLost extends ConsoleUnavailable {
  constructor(
    reason: string,
    readonly sent: boolean,
  ) {
    super(reason);
  }
}
