import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { unifiedDiff } from '../../mesh/agent/replace.ts'
import { type AgentOptions, startAgent } from '../../mesh/agent/start.ts'
import { loadSql } from '../../safety/sql/inspect.ts'

/**
 * `agent-process.ts '<AgentOptions>' [uid]`: the agent as another user, who need not be able to
 * read this checkout, and one that can be made to die: by SIGKILL when its journal has told what
 * the file `die-at` says, `<kind> <milliseconds later>`.
 */
const [, , given = '{}', uid] = process.argv
const options = JSON.parse(given) as AgentOptions
const file = join(options.state, 'die-at')

if (uid) {
  // What it loads when it first compares or meets SQL is loaded before.
  await unifiedDiff('/', null, Buffer.from('a line\n'))
  await loadSql()
  process.setgroups?.([Number(uid)])
  process.setgid?.(Number(uid))
  process.setuid?.(Number(uid))
}
const { url } = await startAgent(options, {
  onEntry({ kind }) {
    const [at, laterMs] = wish()
    if (at !== kind) return
    rmSync(file)
    if (Number(laterMs) > 0) setTimeout(die, Number(laterMs))
    else die()
  },
})
console.error(`Listening on ${url}: ready`)

function wish(): string[] {
  try {
    return readFileSync(file, 'utf8').split(' ')
  } catch {
    return []
  }
}

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}
