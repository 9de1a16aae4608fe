// A plugin that decides nothing and keeps what opencode tells its plugins. FOLDER is filled in by the recorder.
import { writeFileSync } from "node:fs"
let count = 0
const keep = (event, ...payload) =>
  writeFileSync(`FOLDER/${Date.now()}${String(++count).padStart(6, "0")}-${process.pid}.json`,
    JSON.stringify({ event, payload: payload.length === 1 ? payload[0] : { input: payload[0], output: payload[1] } }))
export const Spy = async ({ directory, worktree }) => {
  keep("plugin.start", { directory, worktree })
  return {
    "chat.message": async (input, output) => keep("chat.message", input, output),
    "permission.ask": async (input, output) => keep("permission.ask", input, output),
    "tool.execute.before": async (input, output) => keep("tool.execute.before", input, output),
    "tool.execute.after": async (input, output) => keep("tool.execute.after", input, output),
    event: async ({ event }) => {
      if (/^(session\.(created|idle|error|deleted|compacted)|permission\.)/.test(event.type)) keep(`event.${event.type}`, event)
    },
  }
}
