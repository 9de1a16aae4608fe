/**
 * Client of the cra console: an agent asks before it acts, and a person decides.
 *
 * ```ts
 * const console = await CraConsole.connect({ key: "ed25519:..." });
 * const session = await console.session("backup-bot", { intent: "nightly cleanup" });
 * const files = await session.action("shell.run", { command: "ls" }, () => readdir("."));
 * await session.end();
 * ```
 *
 * The function of an action runs only after the console has allowed exactly this request. Everything else throws.
 */

export * from "./console.js";
export {
  AnswersRejected,
  ConsoleUnavailable,
  CraError,
  Denied,
  InvalidRequest,
  NotReported,
  QuestionsAsked,
  UnverifiedAnswer,
  type AnswerProblem,
  type DenialDetails,
  type Question,
} from "./errors.js";
export { Given, type Accepted, type Answered, type Context, type Guidance, type Resolution, type Turned } from "./results.js";
export type { JsonObject, JsonValue } from "./values.js";
