import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'

/** What the control plane's own document quotes: people grep rows and messages for these words. */
const quoted: [string, folder: string][] = [
  ['Agent claimed incident for investigation', 'activities'],
  ['Called tool: ', 'activities'],
  ['agent:incident-investigator', 'domain'],
  ['A similar incident of the same type was recently investigated and resolved.', 'prompts'],
  ['Use this as a starting point.', 'prompts'],
  ['Investigation steps taken:', 'model'],
  ['Incident type: ', 'model'],
  ['Resolution: ', 'model'],
  ['agent.concurrency', 'domain'],
  ['agent.system_prompt', 'domain'],
  ['webhook.critical.url', 'docs'],
  ['Qwen/Qwen2.5-72B-Instruct', 'config'],
]

const actions = 'investigated attempted_fix fix_succeeded fix_failed escalated capability_gap commented'.split(' ')
const tools =
  'get_incident list_incident_events add_incident_event get_shard list_nodes_by_shard get_node get_tenant converge_shard resolve_incident escalate_incident report_capability_gap'.split(
    ' ',
  )

function textOf(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:ts|md)$/.test(entry.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n')
}

test.each(quoted)('"%s" is written as operators search for it', (words, folder) => {
  expect(textOf(folder).includes(words)).toBe(true)
})

test('the seven actions and eleven tools keep their published names', () => {
  const event = readFileSync('domain/event.ts', 'utf8')
  expect(actions.filter((action) => !event.includes(`'${action}'`))).toEqual([])
  const own = textOf('tools')
  expect(tools.filter((name) => !own.includes(`'${name}'`))).toEqual([])
})
