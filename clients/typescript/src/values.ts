/**
 * JSON values that arrive as they were sent.
 */

import { InvalidRequest } from "./errors.js";

/** A value that JSON can carry. A `bigint` is an integer of up to 64 bits. */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject;

/** An object of JSON values. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

const MAX_DEPTH = 64;
const LEAST_INTEGER = -(2n ** 63n);
const GREATEST_INTEGER = 2n ** 64n - 1n;

/** Copies the parameters of a call. A value that JSON cannot carry unchanged is refused, with its path. */
export function copyObject(value: unknown): JsonObject {
  const copied = copyValue(value, "", 0);
  if (copied === null || typeof copied !== "object" || Array.isArray(copied)) {
    throw new InvalidRequest("the parameters must be an object");
  }
  return copied as JsonObject;
}

/** Copies a JSON value. */
export function copyValue(value: unknown, path: string, depth: number): JsonValue {
  if (depth > MAX_DEPTH) throw new InvalidRequest(`\`${path}\` is nested deeper than ${MAX_DEPTH} levels`);
  switch (typeof value) {
    case "boolean":
      return value;
    case "string":
      return wellFormed(value, path);
    case "number":
      if (!Number.isFinite(value)) {
        throw new InvalidRequest(`\`${path}\` is ${value}, which JSON has no number for: send it as text`);
      }
      // Digits may be lost already.
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
        throw new InvalidRequest(`\`${path}\` is an integer above 2^53: send a bigint or a text`);
      }
      return value;
    case "bigint":
      if (value < LEAST_INTEGER || value > GREATEST_INTEGER) {
        throw new InvalidRequest(`\`${path}\` is an integer of more than 64 bits: send it as text`);
      }
      return value;
    case "object":
      return value === null ? null : copyContainer(value, path, depth);
    default:
      throw new InvalidRequest(`\`${path}\` is of type ${typeof value}, which is no JSON value`);
  }
}

function copyContainer(value: object, path: string, depth: number): JsonValue {
  if (Array.isArray(value)) {
    // Not `map`, which skips holes.
    return Array.from(value, (item, at) => copyValue(item, `${path}[${at}]`, depth + 1));
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new InvalidRequest(`\`${path}\` is a ${value.constructor?.name ?? "special object"}, which is no JSON value`);
  }
  const copied = {};
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue;
    const inner = path === "" ? name : `${path}.${name}`;
    // Not an assignment, which would lose `__proto__`.
    Object.defineProperty(copied, wellFormed(name, inner), {
      value: copyValue(item, inner, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return copied;
}

function wellFormed(text: string, path: string): string {
  if (!text.isWellFormed()) throw new InvalidRequest(`\`${path}\` has half of a character: it is no Unicode text`);
  return text;
}

/** Writes a copied value as JSON. */
export function writeJson(value: JsonValue): string {
  if (typeof value === "bigint") return value.toString();
  if (Object.is(value, -0)) return "-0.0";
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item: JsonValue) => writeJson(item)).join(",")}]`;
  const members = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${writeJson(item as JsonValue)}`);
  return `{${members.join(",")}}`;
}
