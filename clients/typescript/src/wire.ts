/**
 * Requests and answers as bytes, and proofs that an answer came from the console.
 */

import { createHash, createPublicKey, randomBytes, verify, type KeyObject } from "node:crypto";

import {
  AnswersRejected,
  ConnectionLost,
  ConsoleUnavailable,
  CraError,
  Denied,
  InvalidRequest,
  QuestionsAsked,
  UnverifiedAnswer,
  type AnswerProblem,
} from "./errors.js";
import { writeJson, type JsonObject } from "./values.js";

/** A result of the console. */
export type Fields = Readonly<Record<string, unknown>>;

const SCHEME = "ed25519:";
const CONTEXT = Buffer.from("cra console answer v1\0", "latin1");
const MEMBER = Buffer.from(',"proof":"');
const END = Buffer.from('"}');
const PROOF_CHARS = 88;
const CHALLENGE_BYTES = 32;

/** Longest request that the console takes. */
const MAX_REQUEST_BYTES = 16 * 1024 * 1024;

/** Another process at the socket cannot fill the memory beyond this. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Encodings of points of small order, without the sign. With such a key, one signature fits many texts. */
const WEAK_KEYS = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

/** Decodes base64, and refuses texts that another encoder would not have written. */
function decodeBase64(text: string, length: number): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.length === length && bytes.toString("base64") === text ? bytes : undefined;
}

/** Public key of the console's answers, as `cra trace key --answers` prints it. */
export class AnswerKey {
  readonly #key: KeyObject;

  constructor(text: string) {
    const wrong = new InvalidRequest(
      "the key must have the form `ed25519:BASE64`, as `cra trace key --answers` prints it",
    );
    const trimmed = text.trim();
    const bytes = trimmed.startsWith(SCHEME) ? decodeBase64(trimmed.slice(SCHEME.length), 32) : undefined;
    if (bytes === undefined) throw wrong;
    const unsigned = Buffer.from(bytes);
    unsigned.writeUInt8(unsigned.readUInt8(31) & 0x7f, 31);
    if (WEAK_KEYS.has(unsigned.toString("hex"))) throw wrong;
    try {
      this.#key = createPublicKey({
        key: { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") },
        format: "jwk",
      });
    } catch {
      throw wrong;
    }
  }

  /** Returns the answer without its proof. Both lines have no line feed. */
  verify(challenge: Uint8Array, request: Uint8Array, line: Buffer): Buffer {
    const start = line.length - END.length - PROOF_CHARS;
    const head = line.subarray(0, Math.max(start, 0));
    const hasProof =
      start > MEMBER.length &&
      line.subarray(-END.length).equals(END) &&
      head.subarray(-MEMBER.length).equals(MEMBER);
    const proof = line.subarray(Math.max(start, 0), line.length - END.length).toString("latin1");
    const signature = hasProof ? decodeBase64(proof, 64) : undefined;
    if (signature === undefined) throw new UnverifiedAnswer("the answer has no proof");
    const answer = Buffer.concat([head.subarray(0, -MEMBER.length), Buffer.from("}")]);
    const signed = Buffer.concat([CONTEXT, challenge, sha256(request), sha256(answer)]);
    if (!verify(null, signed, this.#key, signature)) {
      throw new UnverifiedAnswer("the proof of the answer is not valid");
    }
    return answer;
  }
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/** One request with its challenge, for one sending. */
export class Request {
  readonly #challenge = randomBytes(CHALLENGE_BYTES);
  readonly #line: Buffer;

  constructor(
    readonly number: number,
    method: string,
    params: JsonObject,
    readonly key: AnswerKey,
  ) {
    const challenge = this.#challenge.toString("base64");
    this.#line = Buffer.from(writeJson({ jsonrpc: "2.0", id: number, method, params, challenge }));
    if (this.#line.length > MAX_REQUEST_BYTES) {
      throw new InvalidRequest(`a request must have at most ${MAX_REQUEST_BYTES} bytes`);
    }
  }

  /** The request with its line feed. */
  get line(): Buffer {
    return Buffer.concat([this.#line, Buffer.from("\n")]);
  }

  /** Returns the verified result, or throws the reason why there is none. */
  read(line: Buffer): Fields {
    if (isBusy(line)) {
      // Unsigned, so that it says nothing but "not now".
      throw new ConnectionLost("the console has too many connections", false);
    }
    const answer = parse(this.key.verify(this.#challenge, this.#line, line));
    if (answer === undefined || answer["id"] !== this.number) {
      throw new UnverifiedAnswer("the answer belongs to another request");
    }
    if ("error" in answer) throw faultError(answer["error"]);
    if (!isFields(answer["result"])) {
      throw new ConsoleUnavailable("the answer has no result that this client knows");
    }
    return answer["result"];
  }
}

function parse(text: Buffer): Fields | undefined {
  try {
    const read: unknown = JSON.parse(text.toString("utf8"));
    return isFields(read) ? read : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether a value is an object with members. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isBusy(line: Buffer): boolean {
  const answer = parse(line);
  if (answer === undefined || (answer["id"] ?? null) !== null) return false;
  return isFields(answer["error"]) && answer["error"]["code"] === -32004;
}

/** Returns the exception for an error of the console. Every error denies. */
export function faultError(error: unknown): CraError {
  if (!isFields(error)) return new ConsoleUnavailable("the answer has no error that this client knows");
  const reason = typeof error["message"] === "string" ? error["message"] : "";
  const data = isFields(error["data"]) ? error["data"] : {};
  const text = (value: unknown) => (typeof value === "string" ? value : undefined);
  switch (error["code"]) {
    case -32002:
      if (isFields(data["asked"])) return new QuestionsAsked(reason, data["asked"]);
      break;
    case -32003: {
      const problems = Array.isArray(data["problems"]) ? (data["problems"] as AnswerProblem[]) : [];
      return new AnswersRejected(reason, text(data["gate"]), problems);
    }
    case -32004:
      return new ConsoleUnavailable(reason);
    case -32700:
    case -32600:
    case -32601:
    case -32602:
      return new InvalidRequest(reason);
    default:
  }
  const code = error["code"] === -32001 ? text(data["code"]) : undefined;
  return new Denied(reason || "denied", { code, help: text(data["help"]), gate: text(data["gate"]) });
}
