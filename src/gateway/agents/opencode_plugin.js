// Written by `cra connect opencode`, and removed by `cra disconnect opencode`. The console raises an alarm when it is
// edited. It asks cra before each tool and each prompt. Every failure stops the step.
import { spawn } from "node:child_process"

const GATE_COMMAND = @GATE_COMMAND@
const EVENT_COMMAND = @EVENT_COMMAND@
const GATE_SECONDS = @GATE_SECONDS@
const EVENT_SECONDS = @EVENT_SECONDS@
const MARGIN_SECONDS = 5
const MAX_TEXT = 16000
const FAILED = "cra: its hook failed, so nothing goes on"

// Runs `cra hook` and returns its answer. Rejects when there is no answer that can be read.
function ask(command, seconds, payload, started) {
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`${FAILED} (${why})`))
    let text
    try {
      text = JSON.stringify(payload)
    } catch (error) {
      return fail(error)
    }
    const hook = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "pipe"] })
    started?.(hook)
    const timer = setTimeout(() => hook.kill("SIGKILL"), 1000 * (seconds + MARGIN_SECONDS))
    let out = "", err = ""
    hook.stdout.setEncoding("utf8").on("data", (part) => (out += part))
    hook.stderr.setEncoding("utf8").on("data", (part) => (err += part))
    // A hook that has decided may not read all of it.
    hook.stdin.on("error", () => {})
    hook.on("error", (error) => {
      clearTimeout(timer)
      fail(error.message)
    })
    hook.on("close", (code) => {
      clearTimeout(timer)
      if (code !== 0) return err.trim() ? reject(new Error(err.trim())) : fail(`exit code ${code}`)
      try {
        const answer = JSON.parse(out)
        if (answer === null || typeof answer !== "object") return fail("unreadable answer")
        resolve(answer)
      } catch {
        fail("unreadable answer")
      }
    })
    hook.stdin.end(text)
  })
}

const cut = (value) => (typeof value === "string" ? value : JSON.stringify(value) ?? "").slice(0, MAX_TEXT)

export const Cra = async ({ client, directory }) => {
  const parents = new Map()
  const greeted = new Set()
  const running = new Map()
  const waiting = new Map()

  // The session that a person started, for a session of a subagent.
  async function root(session) {
    for (let depth = 0; depth < 20; depth++) {
      if (!parents.has(session)) {
        const found = await client.session.get({ path: { id: session } }).catch(() => undefined)
        if (!found?.data) return session
        parents.set(session, found.data.parentID)
      }
      const parent = parents.get(session)
      if (!parent) return session
      session = parent
    }
    return session
  }

  async function payload(event, session, fields) {
    const owner = session === undefined ? undefined : await root(session)
    const agent = owner === session ? undefined : session
    return { hook_event_name: event, cwd: directory, session_id: owner, agent_id: agent, ...fields }
  }

  async function gate(event, session, fields) {
    const sent = await payload(event, session, fields)
    let hook
    const started = (child) => {
      hook = child
      waiting.set(hook, session)
    }
    try {
      const answer = await ask(GATE_COMMAND, GATE_SECONDS, sent, started)
      if (answer.decision !== "allow") throw new Error(answer.reason || FAILED)
      return answer.additionalContext
    } finally {
      waiting.delete(hook)
    }
  }

  // opencode shows no reason of a blocked prompt by itself.
  function show(reason) {
    if (process.argv.includes("run")) process.stderr.write(`${reason}\n`)
    client.tui?.showToast({ body: { message: reason, variant: "error" } })?.catch(() => {})
  }

  // Nothing is held at these events, so a failure stops nothing.
  async function tell(event, session, fields) {
    try {
      return (await ask(EVENT_COMMAND, EVENT_SECONDS, await payload(event, session, fields))).additionalContext
    } catch {
      return undefined
    }
  }

  return {
    "chat.message": async (input, output) => {
      const session = input.sessionID
      // What a subagent is told is the prompt of a tool.
      if ((await root(session)) !== session) return
      const contexts = []
      if (!greeted.has(session)) {
        contexts.push(await tell("session.created", session, {}))
        greeted.add(session)
      }
      const parts = output.parts.map(({ type, text, synthetic, filename }) => ({ type, text, synthetic, filename }))
      const sent = { input: { messageID: output.message.id }, output: { parts } }
      const asked = gate("chat.message", session, sent)
      asked.catch((error) => show(error.message))
      contexts.push(await asked)
      const first = output.parts.find((part) => part.type === "text")
      contexts.filter(Boolean).forEach((text, at) => {
        const base = first ?? { sessionID: session, messageID: output.message.id, id: "prt_cra" }
        output.parts.push({ id: `${base.id}${at}`, sessionID: session, messageID: base.messageID, type: "text", text, synthetic: true })
      })
    },
    "tool.execute.before": async (input, output) => {
      const context = await gate("tool.execute.before", input.sessionID, { input, output: { args: output.args } })
      running.set(input.callID, { tool: input.tool, args: output.args, context })
    },
    "tool.execute.after": async (input, output) => {
      const before = running.get(input.callID)
      running.delete(input.callID)
      const result = { output: cut(output.output ?? output.content), isError: output.isError === true }
      const after = await tell("tool.execute.after", input.sessionID, { input, output: result })
      for (const text of [before?.context, after].filter(Boolean)) {
        if (typeof output.output === "string") output.output += `\n\n${text}`
        else if (Array.isArray(output.content)) output.content.push({ type: "text", text })
      }
    },
    "experimental.text.complete": async (input, output) => {
      await tell("text.complete", input.sessionID, { text: cut(output.text) })
    },
    event: async ({ event }) => {
      const { properties } = event
      const part = properties?.part
      if (event.type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error") {
        const before = running.get(part.callID)
        if (!before || !running.delete(part.callID)) return
        const input = { tool: before.tool, sessionID: part.sessionID, callID: part.callID, args: before.args }
        await tell("tool.execute.failed", part.sessionID, { input, error: cut(part.state.error) })
      } else if (event.type === "session.idle") {
        // The turn is over, so nothing waits for an answer any more.
        for (const [hook, session] of waiting) if (session === properties.sessionID) hook.kill()
      } else if (event.type === "session.error") {
        await tell("session.error", properties.sessionID, { error: cut(properties.error?.data?.message ?? properties.error?.name) })
      } else if (event.type === "session.deleted") {
        await tell("session.deleted", properties.info?.id ?? properties.sessionID, {})
      }
    },
  }
}
