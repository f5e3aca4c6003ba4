import { chmodSync, copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { plainPolicy } from '../../../domain/refusal.ts'
import type { Preparation } from '../../../domain/tool.ts'
import { fold } from '../../../safety/fold.ts'
import { judge } from '../../../safety/judge.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { logOf, looked } from '../../support/events.ts'
import { prepared, type RealAgent, ran, realAgent, useMeshApi } from '../../support/mesh-api.ts'

// What goes through: the registry's tool, the judge, core API, signature, the agent's door, guard
// and journal, a set-user-ID program.

const api = useMeshApi()
const place = temporaryDirectory()
const on = 'node-osl-1'
const root_reads = [
  ['/usr/bin/id', '-u'],
  ['/usr/bin/nproc', '--all'],
]
const terms = { capabilities: [], roots: [], root_reads }
let agent: RealAgent
afterAll(() => place.remove())

/** What the judge makes of a call with what the tool found out about it. */
function verdictOn(tool: string, args: Record<string, unknown>, preparation: Preparation | undefined) {
  const node = { kind: 'node' as const, id: on }
  const incidentId = 'inc_00000000000000000000000001'
  const state = fold(logOf(looked('c0_0', [node])), 1, node)
  const call = { callId: 'c1_0', tool, arguments: args, problem: null }
  const found = preparation ? { ok: true as const, preparation } : null
  const now = Date.parse('2026-11-21T02:00:10Z')
  return judge({ ...call, prepared: found }, toolFacts, state, plainPolicy(incidentId, node), now)
}

const asRoot = process.getuid?.() === 0 ? describe : describe.skip
asRoot('a command that the manifest lets root read with', () => {
  beforeAll(async () => {
    const tools = join(place.path, 'tools')
    mkdirSync(tools)
    // util-linux's own `unshare -n -- program` starts the program; with the set-user-ID bit, as
    // root.
    copyFileSync('/usr/bin/unshare', join(tools, 'sudo'))
    chmodSync(join(tools, 'sudo'), 0o4755)
    copyFileSync('/usr/bin/nproc', join(tools, 'nproc'))
    chmodSync(join(tools, 'nproc'), 0o775)
    agent = await realAgent(api, on, { mode: 'user', terms }, {}, tools)
  })

  test.each([
    ['exec', { on, argv: ['sudo', '-n', '/usr/bin/id', '-u'] }],
    ['shell_eval', { on, command: 'sudo -n /usr/bin/id -u | head -n 1' }],
  ])('is run by %s without approval, and the judge and the device agree', async (tool, args) => {
    const found = await prepared(api, tool, args)
    expect(found).not.toHaveProperty('asks')
    expect(verdictOn(tool, args, found)).toMatchObject({ verdict: 'run', code: 'READ_COMMAND', effect: 'read' })
    const { answer } = await ran(api, tool, args, 'unasked')
    expect(answer).toMatchObject({ ok: true, data: { stdout: '0\n', approval_status: 'auto_approved' } })
  })

  test.each([
    [['sudo', '-n', '/usr/bin/id', '-u', '-r']],
    [['sudo', '-n', '-E', '/usr/bin/id', '-u']],
    [['sudo', '-n', 'id', '-u']],
  ])('needs two people in any other form: %j', async (argv) => {
    const args = { on, argv }
    const found = await prepared(api, 'exec', args)
    expect(verdictOn('exec', args, found)).toMatchObject({ verdict: 'ask', risk: 'critical' })
    const { answer } = await ran(api, 'exec', args, 'unasked')
    expect(answer).toMatchObject({ ok: false, problem: { code: 'approval_required' } })
  })

  test('needs an approval if others than root may change the program, with what the device found', async () => {
    const args = { on, argv: ['sudo', '-n', '/usr/bin/nproc', '--all'] }
    const found = await prepared(api, 'exec', args)
    expect(found?.asks).toMatchObject({
      risk: 'critical',
      why: expect.stringContaining('users other than root may write /usr/bin/nproc'),
    })
    expect(verdictOn('exec', args, found)).toMatchObject({ verdict: 'ask', risk: 'critical' })
  })

  test('needs an approval if the device has a manifest from before the one that allows it', async () => {
    const newer = { ...terms, root_reads: [...root_reads, ['/usr/bin/uptime']] }
    const { body } = await api.get(`/devices/${on}`)
    expect((await api.put(`/devices/${on}`, { body: { url: body.url, mode: 'user', terms: newer } })).status).toBe(200)
    const args = { on, argv: ['sudo', '-n', '/usr/bin/uptime'] }
    const found = await prepared(api, 'exec', args)
    expect(found?.asks?.why).toBe(`the manifest that ${on} holds does not allow this command as root`)
    expect(verdictOn('exec', args, found)).toMatchObject({ verdict: 'ask', risk: 'critical' })
    await api.put(`/devices/${on}`, { body: { url: body.url, mode: 'user', terms } })
  })

  test("is in the device's journal with the words that root ran", () => {
    expect(readFileSync(join(agent.state, 'journal/000000001.jsonl'), 'utf8')).toContain('sudo -n /usr/bin/id -u')
  })
})

test('a manifest without such commands does not mention them, so that older agents can read it', async () => {
  const body = { url: 'http://127.0.0.1:1', mode: 'user', terms: { capabilities: [], roots: [], root_reads: [] } }
  expect((await api.put('/devices/host-osl-1', { body })).status).toBe(200)
  const { body: minted } = await api.post('/devices/host-osl-1/enrolment')
  const response = await api.api.app.request('/mesh/enrolments', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: minted.token }),
  })
  const text = await response.text()
  expect(text).toContain('"auto_approve"')
  expect(text).not.toContain('root_reads')
})

test.each([
  [[['-n', 'id']]],
  [[['A=b', 'id']]],
  [[[]]],
  [[['./id']]],
  [[['id', 'a\nb']]],
  [[['id', '\u202e']]],
  ['id -u'],
])('%j is no list of commands', async (root_reads) => {
  const body = { url: 'http://127.0.0.1:1', mode: 'user', terms: { capabilities: [], roots: [], root_reads } }
  expect((await api.put('/devices/host-osl-1', { body })).status).toBe(422)
})
