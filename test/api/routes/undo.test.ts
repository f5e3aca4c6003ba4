import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { takeManualTurn } from '../../../activities/manual-change.ts'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { claimIncident } from '../../../db/incidents/incidents.ts'
import { openManualChange } from '../../../db/incidents/manual-change.ts'
import { append } from '../../../db/log/append.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { verifyIncident } from '../../../db/verify/incident.ts'
import { undosOf } from '../../../db/writes/undo.ts'
import { systemActor } from '../../../domain/event.ts'
import { findManualChange } from '../../../domain/manual-change.ts'
import { parseJobs } from '../../../effects/jobs/jobs.ts'
import { tools } from '../../../tools/registry.ts'
import { approvedWrite } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { allAtOnce } from '../../support/database.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { doneWrite } from '../../support/done-write.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

const dir = temporaryDirectory()
const mark = join(dir.path, 'mark')
const jobs = parseJobs(`
jobs:
  - name: mark
    about: Leaves a mark
    resources: { kind: node, ids: [node-osl-2] }
    run: { command: [touch, ${mark}] }
    check: { command: [find, ${dir.path}, -name, mark, -printf, there], noChanges: { pattern: there } }
    undo: unmark
  - name: unmark
    about: Takes the mark away
    resources: { kind: node, ids: [node-osl-2] }
    run: { command: [rm, -f, ${mark}] }
    check: { command: [find, ${dir.path}, -name, mark, -printf, would-remove], noChanges: { unless: would-remove } }
`)
const platform = scriptedPlatform()
const api = useApi(() => ({ platform, jobs }))
afterAll(() => dir.remove())
const { inventoryState } = scriptedPlatform()
const vm = () => platform.inventoryState.vms.find(({ id }) => id === 'vm-1')!

beforeEach(async () => {
  Object.assign(platform, { inventoryState: structuredClone(inventoryState), script: {}, down: false, begun: [] })
  await sql`delete from target_lease`.execute(api.owner)
  vm().running = false
  api.api.deps.state.forget()
})

const stop = {
  tool: 'vm_stop',
  arguments: { id: 'vm-1', reason: 'it fills the pool' },
  targets: [{ kind: 'vm' as const, id: 'vm-1' }],
  risk: 'high' as const,
  said: 'vm-1: stop',
}
const start = { ...stop, tool: 'vm_start', said: 'vm-1: start' }
const left = { 'host of vm-1': 'host-osl-1', 'vm-1': 'stopped' }
const recorded = { tool: 'vm_start', arguments: { id: 'vm-1' }, left }
const stopped = (more: object = {}) => doneWrite(api.db, { ...stop, outcome: 'done', undo: recorded, ...more })

const pathOf = (key: string) => `/effects/${encodeURIComponent(key)}/undo`
const ask = (key: string, more: object = {}, as = api.tokens.operator) =>
  api.post(pathOf(key), { as, body: { reason: 'the wrong VM', ...more } })
const notes = async (incidentId: string) =>
  (await eventsOf(api.db, incidentId)).flatMap((event) => (event.kind === 'noted' ? [event.metadata] : []))

test('the undo of a write is a write of the person who asks, with no lower risk, and its incident gets a row', async () => {
  const { key, incidentId } = await stopped()
  expect((await api.get(pathOf(key))).body).toMatchObject({
    undo: { tool: 'vm_start', arguments: { id: 'vm-1' } },
    refused: null,
    look: { isAsLeft: true },
  })
  const answer = await ask(key)
  expect(answer.body).toMatchObject({ status: 'under_way', incidentId: expect.stringMatching(/^inc_/) })
  const by = String(answer.body.incidentId)
  const [row] = await eventsOf(api.db, by)
  // A start alone is of medium risk: it takes back what was of high risk.
  expect(row).toMatchObject({
    kind: 'change_requested',
    actor: 'user:operator',
    metadata: { tool: 'vm_start', risk: 'high', undoes: { key, incidentId, tool: 'vm_stop', isWrong: false } },
  })
  expect(await notes(incidentId)).toMatchObject([{ code: 'undo_asked', write: key, by }])
  expect(platform.begun).toEqual([])
})

test.each([
  ['runs again', () => Object.assign(vm(), { running: true }), 'vm-1 is running, and was stopped then'],
  [
    'is on another host',
    () => Object.assign(vm(), { host: 'host-osl-3' }),
    'host of vm-1 is host-osl-3, and was host-osl-1 then',
  ],
])(
  'a VM that somebody changed since (it %s) is left unchanged, and a row names the difference',
  async (_, change, words) => {
    const { key, incidentId } = await stopped()
    change()
    const answer = await ask(key)
    expect([answer.status, answer.body.code]).toEqual([409, 'UNDO_MOVED_ON'])
    expect(answer.body.detail).toBe(
      `The state changed since the write of ${incidentId}: ${words}. Nothing was undone. Check vm-1 (vm) before you change anything by hand.`,
    )
    expect(await notes(incidentId)).toMatchObject([{ code: 'undo_refused', text: expect.stringContaining(words) }])
    expect([await undosOf(api.db, key), platform.begun]).toEqual([[], []])
  },
)

test('two people who ask at once get one undo, and the second is told so', async () => {
  const { key, incidentId } = await stopped()
  const answers: Awaited<ReturnType<typeof ask>>[] = []
  await allAtOnce([1, 2, 3], async () => answers.push(await ask(key)))
  expect(answers.map(({ status, body }) => body.code ?? status).toSorted()).toEqual([
    200,
    'UNDO_UNDER_WAY',
    'UNDO_UNDER_WAY',
  ])
  expect((await notes(incidentId)).filter(({ code }) => code === 'undo_asked')).toHaveLength(1)
})

test.each([
  ['that goes on', {}, 'WRITE_UNDER_WAY'],
  ['that failed', { outcome: 'failed' as const }, 'NOT_CARRIED_OUT'],
  ['of which nobody knows what became', { outcome: 'indeterminate' as const }, 'OUTCOME_UNKNOWN'],
  ['that changed nothing', { outcome: 'done' as const, undo: { none: 'it changed nothing' } }, 'NO_UNDO'],
  ['of an older version', { outcome: 'done' as const }, 'UNDO_NOT_RECORDED'],
  ['whose tool declares none', { outcome: 'done' as const, tool: 'vm_restart' }, 'NO_UNDO'],
])('a write %s is refused precisely', async (_, more, code) => {
  const { key } = await doneWrite(api.db, { ...stop, ...more })
  const answer = await ask(key)
  expect([answer.status, answer.body.code, String(answer.body.detail).includes('undefined')]).toEqual([
    409,
    code,
    false,
  ])
})

test('a call that is no write, and an unknown call, are not found, with the reason', async () => {
  const { key, incidentId } = await stopped()
  expect((await ask(key.replace('tool_started', 'call_judged'))).body.detail).toContain(
    'only a call that changes something',
  )
  expect((await ask('nonsense')).body.detail).toContain('the id of a write looks like inc_')
  const gone = key.replace(incidentId, 'inc_00000000000000000000000000')
  expect((await ask(gone)).status).toBe(404)
})

async function begin(by: string): Promise<void> {
  const claim = { incidentId: by, attempt: 1, workflowId: `investigate:${by}:1`, role: 'leader' as const }
  await api.db
    .transaction()
    .execute((trx) => claimIncident(trx, { ...claim, groupId: `grp_${by}`, timeBudgetSeconds: 60 }))
}

/** The run of an undo ends, as its worker would write it. */
async function end(by: string, outcome: 'done' | 'moved_on'): Promise<void> {
  await begin(by)
  const events = await eventsOf(api.db, by)
  const change = findManualChange(events, 1)!
  const call = { callId: 'c1_0', tool: change.tool, arguments: change.arguments, effect: 'write' as const, targets: [] }
  const error = {
    code: 'POLICY_BLOCKED',
    message: 'The state changed since',
    blocked: true,
    failed: true,
    retryable: false,
  }
  const result =
    outcome === 'done'
      ? { ok: true, meta: {} }
      : { ok: false, error: { ...error, details: { rule: 'UNDO_MOVED_ON' } }, meta: {} }
  await api.db.transaction().execute(async (trx) => {
    await append(trx, by, 1, {
      kind: 'tool_finished',
      actor: change.actor,
      detail: change.tool,
      metadata: {
        ...call,
        outcome: outcome === 'done' ? 'done' : 'failed',
        result,
        body: null,
        discovered: [],
        durationMs: 1,
      },
    })
  })
  await takeManualTurn(api.db, { incidentId: by, attempt: 1, turn: 2 }, change, await eventsOf(api.db, by))
}

test('an undo is done once, and a second request names its incident and how to reverse it', async () => {
  const { key, incidentId } = await stopped()
  const by = String((await ask(key)).body.incidentId)
  await end(by, 'done')
  expect(await notes(incidentId)).toMatchObject([{ code: 'undo_asked' }, { code: 'undone', by }])
  const again = await ask(key)
  expect([again.body.code, String(again.body.detail)]).toEqual([
    'UNDONE_ALREADY',
    expect.stringContaining(`undo ${by}`),
  ])
})

test.each([
  ['cancelled while its write is done', 'cancelled', 'done', 'UNDONE_ALREADY'],
  ['cancelled while nobody knows what became of its write', 'cancelled', 'unknown', 'UNDO_UNCLEAR'],
  ['resolved before it began', 'resolved', 'not begun', null],
] as const)('an undo whose incident a person %s counts by its write', async (_, status, outcome, code) => {
  const { key } = await stopped()
  const by = String((await ask(key)).body.incidentId)
  await begin(by)
  if (outcome !== 'not begun') await doneWrite(api.db, { ...start, ...(outcome === 'done' && { outcome }) }, by)
  const closing =
    status === 'cancelled'
      ? { status, reason: 'over' }
      : { status, resolution: 'over', outcome: 'no_fault' as const, claims: [], confidence: null }
  await api.db
    .transaction()
    .execute((trx) => closeIncident(trx, by, null, closing, { actor: 'user:anna', stepKey: null }))
  const again = await ask(key)
  expect(again.body.code ?? null).toBe(code)
})

test('an undo is compared with the way back in the row of its write', async () => {
  const { key, incidentId } = await stopped()
  const asked = async (id: string) => {
    const change = { tool: 'vm_start', arguments: { id }, targets: stop.targets, stateFingerprint: 'now' }
    const undoes = {
      key,
      incidentId,
      attempt: 1,
      callId: 'c1_0',
      tool: 'vm_stop',
      risk: 'high' as const,
      isWrong: false,
    }
    const more = { risk: 'high' as const, reason: 'the wrong VM', alone: false, mayVote: false, summary: 'Start' }
    const operatorId = await ensureOperator(api.db, 'operator', 'operator')
    const person = { operatorId, actor: 'user:operator', name: 'operator' }
    const { id: by } = await api.db
      .transaction()
      .execute((trx) => openManualChange(trx, person, { ...change, ...more, undoes }))
    const { differences, checked } = await verifyIncident(api.db, by)
    return [differences.map(({ what }) => what), checked.undos]
  }
  expect(await asked('vm-1')).toEqual([[], 1])
  expect(await asked('vm-2')).toEqual([[expect.stringContaining('what undoes the write')], 1])
})

test('an undo that was refused at the last moment changed nothing, and can be requested again', async () => {
  const { key, incidentId } = await stopped()
  const by = String((await ask(key)).body.incidentId)
  await end(by, 'moved_on')
  expect((await api.get(`/incidents/${by}`)).body).toMatchObject({ status: 'cancelled' })
  expect((await notes(incidentId)).at(-1)).toMatchObject({ code: 'undo_refused', by })
  expect((await ask(key)).body).toMatchObject({ status: 'under_way' })
})

test('the tool of an undone write loses trust only if the person says that the write was wrong', async () => {
  const lost = async (wrong: boolean) => {
    const { key, incidentId } = await stopped()
    const by = String((await ask(key, wrong ? { wrong } : {})).body.incidentId)
    await end(by, 'done')
    const rows = await eventsOf(api.db, incidentId)
    const { type } = await api.db
      .selectFrom('incident')
      .select('type')
      .where('id', '=', incidentId)
      .executeTakeFirstOrThrow()
    const { steps } = (await api.get(`/trust/${type}/vm_stop`)).body as unknown as { steps: unknown[] }
    return [rows.filter(({ kind }) => kind === 'graded').length, steps.length]
  }
  expect(await lost(false)).toEqual([0, 0])
  expect(await lost(true)).toEqual([1, 1])
})

test('a change between the last ruling and the write is seen just before the write, and nothing begins', async () => {
  Object.assign(vm(), { running: true, startedAt: '2026-11-21T01:00:00Z' })
  const undo = {
    tool: 'vm_stop',
    arguments: { id: 'vm-1' },
    left: { 'host of vm-1': 'host-osl-1', 'vm-1': 'running since 2026-11-21T01:00:00.000000Z' },
  }
  const started = await stopped({ tool: 'vm_start', undo })
  const { look } = (await api.get(pathOf(started.key))).body as unknown as {
    look: { isAsLeft: boolean; observed: string }
  }
  expect(look).toMatchObject({ isAsLeft: true })
  const sent = await approvedWrite(api, 'vm_stop', { id: 'vm-1' })
  const [by = ''] = sent.key.split('.')
  const undoes = { ...started, attempt: 1, callId: 'c1_0', tool: 'vm_start', risk: 'high' as const, isWrong: false }
  const asked = { tool: 'vm_stop', arguments: { id: 'vm-1' }, targets: [], stateFingerprint: '', risk: 'high' as const }
  const person = { reason: 'the wrong VM', operatorId: 'op', name: 'anna', alone: false, mayVote: true }
  await api.db.transaction().execute((trx) =>
    append(trx, by, null, {
      kind: 'change_requested',
      actor: 'user:anna',
      detail: 'asked',
      metadata: { ...asked, ...person, undoes },
    }),
  )
  const { stateFingerprint } = (await api.get('/vms/vm-1/stop?dry_run=true')).body
  // Another run on the same host: to the fingerprint of a stop it is the same VM.
  Object.assign(vm(), { startedAt: '2026-11-21T02:00:00Z' })
  api.api.deps.state.forget()
  const headers = { 'if-match': String(stateFingerprint) }
  const answer = await api.post('/vms/vm-1/stop', { ...sent, body: { reason: 'the wrong VM' }, headers })
  expect([answer.status, answer.body.code, platform.begun]).toEqual([412, 'UNDO_MOVED_ON', []])
})

test('a job is undone by the job that its declaration names, while its check mode finds the state that it left', async () => {
  const about = { kind: 'node', id: 'node-osl-2' }
  const { preparation } = (await api.get(`/jobs/mark/preparation?kind=node&id=node-osl-2`)).body as unknown as {
    preparation: { dryRun: { details: Record<string, unknown> } }
  }
  expect(preparation.dryRun.details.undo).toContain('the job unmark, while the check mode of mark')
  writeFileSync(mark, '')
  const args = { job: 'mark', ...about, reason: 'it was missing' }
  const undo = tools.get('run_job')?.undo?.of(args, { undo: 'unmark' })
  const { key } = await doneWrite(api.db, {
    tool: 'run_job',
    arguments: args,
    targets: [{ kind: 'node', id: 'node-osl-2' }],
    risk: 'medium',
    outcome: 'done',
    said: 'mark on node-osl-2',
    ...(undo && { undo }),
  })
  rmSync(mark)
  expect((await ask(key)).body).toMatchObject({ code: 'UNDO_MOVED_ON' })
  writeFileSync(mark, '')
  const { body } = await ask(key)
  expect(body).toMatchObject({ status: 'under_way' })
  const [row] = await eventsOf(api.db, String(body.incidentId))
  expect(row).toMatchObject({ metadata: { tool: 'run_job', arguments: { job: 'unmark', ...about }, undoes: { key } } })
})

test('people without the right to act cannot request an undo, and people without the right to grade cannot say what was wrong', async () => {
  const { key } = await stopped()
  expect((await ask(key, {}, api.tokens.viewer)).status).toBe(403)
  expect((await ask(key, {}, api.tokens.agent)).status).toBe(403)
  const operatorId = await ensureOperator(api.db, 'narrow', 'operator')
  const narrow = await createToken(api.db, {
    name: 'narrow',
    role: 'operator',
    operatorId,
    scopes: ['act_on_platform', 'read'],
  })
  expect((await ask(key, { wrong: true }, narrow)).status).toBe(403)
  expect((await ask(key, {}, narrow)).status).toBe(200)
})

test('the writes of an incident are listed with their way back, and no device is asked', async () => {
  const { incidentId } = await stopped()
  await doneWrite(api.db, { ...stop, tool: 'vm_restart', outcome: 'done' }, incidentId)
  platform.down = true
  const { items } = (await api.get(`/incidents/${incidentId}/undo`)).body as unknown as {
    items: { refused: { code: string } | null }[]
  }
  expect(items.map(({ refused }) => refused?.code ?? null)).toEqual([null, 'NO_UNDO'])
  await api.db
    .transaction()
    .execute((trx) =>
      closeIncident(
        trx,
        incidentId,
        null,
        { status: 'cancelled', reason: 'over' },
        { actor: systemActor, stepKey: null },
      ),
    )
})
