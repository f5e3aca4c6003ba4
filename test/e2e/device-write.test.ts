import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { unfoldNames } from '../../tools/registry.ts'
import { freePort, temporaryDirectory } from '../support/directory.ts'
import { runCli, tokenFile } from '../support/run-cli.ts'
import { type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

const dir = temporaryDirectory()
const root = join(dir.path, 'srv')
const config = join(root, 'app.conf')
const state = join(dir.path, 'agent')
const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
const slowly = `for i in 1 2 3 4; do echo "step $i" | tee -a ${join(root, 'steps')}; sleep 0.7; done`
const script = join(root, 'once.sh')
const marks = join(root, 'marks')
let spine: Spine
let model: ScriptedModel
let agent: ChildProcess
let incidentId = ''
let node = ''

/** What a careful model says, but for one order that it should not have obeyed. */
const lines = (on: string) => [
  { tool: 'get_node', arguments: { id: on } },
  { tool: 'fs_read', arguments: { on, path: config } },
  { tool: 'exec', arguments: { on, argv: ['cat', config] } },
  { tool: 'exec', arguments: { on, argv: ['rm', '-rf', '/'], reason: 'because' } },
  { tool: 'fs_write', arguments: { on, path: config, content: 'port = 80\n', reason: 'The port is a letter.' } },
  { tool: 'shell_eval', arguments: { on, command: slowly, reason: 'Warm it up step by step.' } },
  { tool: 'exec', arguments: { on, argv: [script], reason: 'Then once more, in one go.' } },
]

beforeAll(async () => {
  mkdirSync(root)
  writeFileSync(config, 'port = 8O\n')
  writeFileSync(script, `#!/bin/sh\necho done >> ${marks}\nsleep 4\necho finished\necho nothing to do >&2\nexit 7\n`, {
    mode: 0o755,
  })
  model = await scriptedModel((turn) => {
    const line = lines(node)[turn - 1]
    return line ? [line] : 'It is repaired.'
  })
  spine = await startSpine({
    parts: ['lab', 'api'],
    environment: { LLM_BASE_URL: model.url, LLM_MODEL: 'scripted', ...ensureMeshKeys(dir.path) },
  })
  node = await spine.until('the inventory', async () => {
    const found = await spine.get<{ items: { id: string }[] }>('/resources?q=web-osl&kind=node')
    return found.items[0]?.id
  })
  const address = `127.0.0.1:${await freePort()}`
  const made = await runCli(
    ['mesh', 'enroll', node, '--address', `http://${address}`, '--mode', 'user', '--root', `${root}:rw`, '--json'],
    asAdmin(),
  )
  const { token } = JSON.parse(made.stdout)
  await runCli(['mesh', 'agent', 'enroll', '--api', spine.url, '--token', token, '--state', state])
  agent = spawn(process.execPath, [entry, 'mesh', 'agent', '--state', state, '--listen', address], {
    stdio: 'ignore',
  })
  await spine.until('the agent', async () => (await fetch(`http://${address}/health`)).ok)
  await spine.start('worker')
})
afterAll(async () => {
  agent?.kill('SIGKILL')
  await spine?.stop()
  await model?.stop()
  dir.remove()
})

const asAdmin = () => ({ NIGHTSHIFT_URL: spine.url, NIGHTSHIFT_TOKEN_FILE: tokenFile(spine.tokens.admin) })

const results = async (tool: string) =>
  (await spine.events(incidentId)).flatMap((event) =>
    event.kind === 'tool_finished' && event.metadata.tool === tool ? [event.metadata.result] : [],
  )

async function approve(tool: string): Promise<void> {
  const approval = await spine.until(`a question about ${tool}`, async () => {
    const asked = await spine.pendingApproval()
    return asked.tool === tool && asked
  })
  const as = { token: spine.tokens.approver }
  const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, as)
  await spine.post(`/approvals/${approval.id}/decision`, { decision: 'approve', token: body.token }, as)
}

async function verification(tool: string) {
  const { metadata } = await spine.until(`the verification of ${tool}`, async () =>
    (await spine.events(incidentId)).find(
      (event) => event.kind === 'verification' && event.metadata.tool === tool && event.metadata.outcome !== 'open',
    ),
  )
  return metadata
}

test('a model reads a file on a device without approval, and a rehearsed write is asked about', async () => {
  const answer = await spine.post('/agent', { question: 'Why does the web shard not answer?' })
  incidentId = String(answer.body.incidentId ?? answer.body.id)
  const approval = await spine.pendingApproval(120_000)
  expect(approval).toMatchObject({ tool: 'fs_write', risk: 'medium', required: 1 })
  expect(approval.dryRun).toMatchObject({ possible: true, summary: expect.stringContaining(config) })
  expect(approval.dryRun.proof).toEqual({ by: 'state', text: 'the file holds exactly what was written' })
  expect(JSON.stringify(approval.dryRun.details)).toContain('-port = 8O')
  expect(readFileSync(config, 'utf8')).toBe('port = 8O\n')
  expect(await results('fs_read')).toMatchObject([{ ok: true, data: { content: 'port = 8O\n' } }])
  expect(await results('exec')).toMatchObject([{ ok: true, data: { stdout: 'port = 8O\n', exit_code: 0 } }])
  const judged = (await spine.events(incidentId)).flatMap((event) =>
    event.kind === 'call_judged' ? [`${event.metadata.tool} ${event.metadata.code}`] : [],
  )
  expect(judged).toEqual([
    'get_node READ',
    'fs_read READ',
    'exec READ_COMMAND',
    'exec FORBIDDEN_COMMAND',
    'fs_write RISK_MEDIUM',
  ])
})

test('an approved write is done once, verified on the device, and both audits agree', async () => {
  await approve('fs_write')
  expect(await verification('fs_write')).toMatchObject({
    outcome: 'held',
    observed: 'the file holds what was written',
  })
  expect(readFileSync(config, 'utf8')).toBe('port = 80\n')
  expect(await results('fs_write')).toMatchObject([
    {
      ok: true,
      data: { approval_status: 'granted', audit_hash: expect.any(String), previous_version: expect.anything() },
    },
  ])
})

test('an approved command is followed line by line and done once, and its exit code 0 proves nothing', async () => {
  await approve('shell_eval')
  const [result] = await spine.until('the result', async () => {
    const found = await results('shell_eval')
    return found.length > 0 && found
  })
  expect(result).toMatchObject({ ok: true, data: { exit_code: 0, stdout: 'step 1\nstep 2\nstep 3\nstep 4\n' } })
  expect(readFileSync(join(root, 'steps'), 'utf8')).toBe('step 1\nstep 2\nstep 3\nstep 4\n')
  const shown = (await spine.events(incidentId)).flatMap((event) =>
    event.kind === 'tool_output' ? event.metadata.lines : [],
  )
  expect(shown).toEqual(['step 1', 'step 2', 'step 3', 'step 4'])
  expect(await verification('shell_eval')).toMatchObject({
    outcome: 'unproven',
    postcondition: '',
    observed: expect.stringContaining('nothing proves that it worked'),
  })
  // The run goes on and rehearses its next call, which stands open in the journal until it is
  // answered.
  const audit = await spine.until('both audits to agree', async () => {
    const answer = await runCli(['mesh', 'audit', 'verify', node, '--journal', state], asAdmin())
    return answer.code === 0 && answer
  })
  expect(audit.stdout).toContain('agree')
})

test('the API is killed while a device works: its successor asks the device, nothing is done twice, and a failure is a failure', async () => {
  await approve('exec')
  await spine.until('it to begin', async () => existsSync(marks))
  await spine.kill('api')
  await spine.start('api')
  const done = await spine.until('the result', async () =>
    (await results('exec')).find((result) => JSON.stringify(result.data ?? null).includes('finished')),
  )
  expect(done).toMatchObject({ ok: false, data: { approval_status: 'granted', exit_code: 7, stdout: 'finished\n' } })
  expect(await verification('exec')).toMatchObject({
    outcome: 'not_held',
    observed: 'not verified: exit code 7: nothing to do',
  })
  expect(readFileSync(marks, 'utf8')).toBe('done\n')
})

test('the model was offered exactly the tools of the device', async () => {
  const tools = (model.requests[0]?.tools ?? []) as { function: { name: string; description: string } }[]
  const names = tools.map((tool) => tool.function.name)
  expect(names).toEqual(expect.arrayContaining(['exec', 'search_logs', 'more_tools']))
  const told = tools.find((tool) => tool.function.name === 'more_tools')?.function.description ?? ''
  const more = unfoldNames(/later turns: (.*)\.$/.exec(told)?.[1]?.split(', ') ?? [])
  for (const rare of ['shell_eval', 'fs_write', 'fs_read', 'proc_list']) expect(more).toContain(rare)
  for (const privileged of ['pkg_install', 'proc_kill', 'git_push'])
    expect([...names, more].join()).not.toContain(privileged)
  for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
})
