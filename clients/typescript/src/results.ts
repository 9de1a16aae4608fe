/**
 * Values that the console returns.
 */

import { isFields, type Fields } from "./wire.js";

/** A text that the Atlas gives to the agent. */
export interface Context {
  readonly contextId: string;
  readonly content: string;
}

/** Guidance of a checkpoint. `block` has all of its fields. */
export interface Guidance {
  readonly checkpointId: string;
  readonly content: string;
  readonly block: Fields;
}

/** Contexts and guidance that came along with an answer. */
export class Given {
  constructor(
    readonly contexts: readonly Context[] = [],
    readonly guidance: readonly Guidance[] = [],
    readonly withdrawn: readonly string[] = [],
    readonly notGiven: readonly { readonly contextId: string; readonly reason: string }[] = [],
    readonly warnings: readonly string[] = [],
  ) {}

  /** Reads the member `given` of a result. */
  static of(result: Fields): Given {
    const given = isFields(result["given"]) ? result["given"] : {};
    return new Given(
      objects(given["contexts"]).map((item) => ({
        contextId: String(item["context_id"]),
        content: String(item["content"] ?? ""),
      })),
      objects(given["guidance"]).map((item) => {
        const block = isFields(item["block"]) ? item["block"] : {};
        return { checkpointId: String(item["checkpoint_id"]), content: String(block["content"] ?? ""), block };
      }),
      texts(given["withdrawn"]),
      objects(given["not_given"]).map((item) => ({
        contextId: String(item["context_id"]),
        reason: String(item["reason"]),
      })),
      texts(given["warnings"]),
    );
  }

  /** True when there is nothing for the agent. */
  get isEmpty(): boolean {
    const all = [this.contexts, this.guidance, this.withdrawn, this.notGiven, this.warnings];
    return all.every((list) => list.length === 0);
  }

  /** Both together. */
  with(other: Given): Given {
    return new Given(
      [...this.contexts, ...other.contexts],
      [...this.guidance, ...other.guidance],
      [...this.withdrawn, ...other.withdrawn],
      [...this.notGiven, ...other.notGiven],
      [...this.warnings, ...other.warnings],
    );
  }

  /** The contexts and the guidance as one text for a prompt. */
  text(): string {
    return [...this.contexts, ...this.guidance].map((item) => item.content).join("\n\n");
  }
}

/** Answer to an input, a context request or a reported error. */
export interface Accepted {
  readonly given: Given;
  readonly modifiedInput: string | undefined;
  readonly held: readonly string[];
  /** Identifier of a reported error. */
  readonly error: string | undefined;
}

/** Answer to `answerCheckpoint`. The request runs after it was sent again. */
export interface Answered {
  readonly given: Given;
  readonly permitUntil: string | undefined;
  readonly needsOperator: boolean;
}

/** Answer to a turn of a thread. `fields` has everything. */
export interface Turned {
  readonly decision: string;
  readonly frozen: boolean;
  readonly summary: string;
  readonly version: number;
  readonly etag: string;
  readonly memento: unknown;
  readonly given: Given;
  readonly held: readonly string[];
  readonly fields: Fields;
}

/** Actions that the agent may ask for now. It permits nothing. `fields` has everything. */
export interface Resolution {
  readonly resolutionId: string;
  readonly allowed: readonly string[];
  readonly denied: readonly Fields[];
  readonly constraints: readonly Fields[];
  readonly expiresAt: string;
  readonly fields: Fields;
}

export function accepted(result: Fields): Accepted {
  return {
    given: Given.of(result),
    modifiedInput: text(result["modified_input"]),
    held: texts(result["held"]),
    error: text(result["error"]),
  };
}

export function answered(result: Fields): Answered {
  return {
    given: Given.of(result),
    permitUntil: text(result["permit_until"]),
    needsOperator: result["needs_operator"] === true,
  };
}

export function turned(result: Fields): Turned {
  return {
    decision: String(result["decision"]),
    frozen: result["frozen"] === true,
    summary: String(result["summary"]),
    version: Number(result["version"]),
    etag: String(result["etag"]),
    memento: result["memento"],
    given: Given.of(result),
    held: texts(result["held"]),
    fields: result,
  };
}

export function resolved(result: Fields): Resolution {
  return {
    resolutionId: String(result["id"]),
    allowed: texts(result["allowed"]),
    denied: objects(result["denied"]),
    constraints: objects(result["constraints"]),
    expiresAt: String(result["expires_at"]),
    fields: result,
  };
}

/** Returns a text, or nothing. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns the texts of a list. */
export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function objects(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}
