import { unifiedDiff } from '../../../mesh/agent/replace.ts'
import { type AgentOptions, startAgent } from '../../../mesh/agent/start.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

/**
 * `demoted.ts '<AgentOptions>' <uid>`: the agent as another user, who need not be able to read this checkout: what it loads when it first
 * compares or meets SQL is loaded before.
 */
await unifiedDiff('/', null, Buffer.from('a line\n'))
await loadSql()
const [, , options = '{}', uid] = process.argv
process.setgroups?.([Number(uid)])
process.setgid?.(Number(uid))
process.setuid?.(Number(uid))
const { url } = await startAgent(JSON.parse(options) as AgentOptions)
console.error(`Listening on ${url}: ready`)
