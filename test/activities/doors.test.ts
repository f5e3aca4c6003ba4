import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { WorkflowHandle } from '@temporalio/client'
import { NativeConnection, Worker } from '@temporalio/worker'
import { sql } from 'kysely'
import { actActivities } from '../../activities/act.ts'
import { approvalActivities } from '../../activities/approvals.ts'
import { contextActivities } from '../../activities/context.ts'
import { sanitizeFailures } from '../../activities/failures.ts'
import { groupActivities } from '../../activities/queue.ts'
import { principalOf } from '../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { incidentById, setWaiting } from '../../db/incidents/incidents.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Decision } from '../../domain/approval.ts'
import type { Principal } from '../../domain/permissions.ts'
import type { CorePort } from '../../domain/tool.ts'
import { readPrompts } from '../../prompts/render.ts'
import { cancelInvestigation } from '../../workflows/outcome.ts'
import { asked } from '../support/announced.ts'
import { temporalAddress } from '../support/broker.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { mintedToken } from '../support/decision-tokens.ts'
import { eventually } from '../support/directory.ts'
import { calls, hourMs, scriptedRun } from '../support/scripted-run.ts'
import { newTaskQueue, scheduled, spoken, useTemporal } from '../support/temporal.ts'

// Real runs, real decisions and real rows; only the model and what is asked for are scripted.
const database = useDatabase()
const temporal = useTemporal({ cached: 100 })
let anna: Principal

beforeAll(async () => {
  const operatorId = await ensureOperator(database.db, 'anna', 'approver')
  const token = await createToken(database.db, { name: 'anna', role: 'approver', operatorId })
  anna = (await principalOf(database.db, token)) as Principal
  connection = await NativeConnection.connect({ address: await temporalAddress() })
  mallory = await Worker.create({
    connection,
    namespace: temporal.client.options.namespace,
    taskQueue: mallorysQueue,
    workflowsPath: new URL('../support/stranger.ts', import.meta.url).pathname,
  })
  running = mallory.run()
})

const silent = { warn: () => {}, info: () => {} }
const nowhere: CorePort = {
  get: async () => ({ ok: false, status: 503, problem: { title: 'away', detail: 'away' } }),
  post: async () => ({ ok: false, status: 503, problem: { title: 'away', detail: 'away' } }),
}

/** Activities of a run that asks for one approval; a thought is recorded. */
function crew() {
  const deps = { db: database.db, environment: {}, core: nowhere }
  const scripted = scriptedRun({
    think: async (turn) => (turn === 1 ? calls('execute_migration') : { kind: 'closed' }),
  })
  const approvals = new Map<string, string>()
  const context = contextActivities({ ...deps, prompts: readPrompts(), protocol: 'native', model: 'scripted' })
  const activities = {
    ...scripted.activities,
    ...sanitizeFailures({ claim: context.claim, escalate: context.escalate, closing: context.closing }, silent),
    ...sanitizeFailures({ endEarly: actActivities(deps).endEarly }, silent),
    ...sanitizeFailures(approvalActivities(deps), silent),
    ...sanitizeFailures(
      groupActivities({ ...deps, queue: { stampQueue: async () => [], wakeGroup: async () => {} } }),
      silent,
    ),
    async act({ incidentId, approvalId }: { incidentId: string; approvalId: string | null }) {
      if (approvalId) return { kind: 'next' }
      if ((await incidentById(database.db, incidentId))?.status === 'escalated') return { kind: 'closed' }
      const id = approvals.get(incidentId) ?? (await asked(database.db, incidentId))
      approvals.set(incidentId, id)
      await database.db.transaction().execute((trx) => setWaiting(trx, incidentId, true))
      return { kind: 'ask', approvalId: id, expiresInMs: hourMs }
    },
  }
  return { activities: activities as never, did: scripted.did, approvals }
}

type Waiting = { incidentId: string; approvalId: string; run: WorkflowHandle; taskQueue: string; did: string[] }

const argsOf = (incidentId: string, more: Record<string, unknown> = {}) => [
  { incidentId, attempt: 1, role: 'leader', groupId: 'grp_test', group: 'group:disk_pressure', ...more },
]

/** A run that waits for a person, for as long as the work takes. */
async function whileItWaits(work: (waiting: Waiting) => Promise<unknown>): Promise<void> {
  const { activities, did, approvals } = crew()
  await temporal.working(activities, async (taskQueue) => {
    const incidentId = await openedIncident(database.db)
    const run = await temporal.client.workflow.start('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:${incidentId}:1`,
      args: argsOf(incidentId),
    })
    const approvalId = await eventually('the question', async () => approvals.get(incidentId))
    await eventually(
      'the run to wait',
      async () => (await run.describe()).searchAttributes.Status?.[0] === 'awaiting_approval',
    )
    await work({ incidentId, approvalId, run, taskQueue, did })
  })
}

const token = (approvalId: string, decision: Decision) =>
  mintedToken(database.db, anna, approvalId, { decision }, 'temporal')

const codesOf = async (incidentId: string) =>
  (await eventsOf(database.db, incidentId)).flatMap((event) =>
    event.kind === 'security_event' ? [event.metadata.code] : [],
  )
const unspent = async () =>
  (await database.db.selectFrom('decisionToken').select('sha256').where('usedAt', 'is', null).execute()).length
const statusOf = async (approvalId: string) =>
  (await database.db.selectFrom('approval').select('status').where('id', '=', approvalId).executeTakeFirstOrThrow())
    .status

test('one real decision among a thousand forged signals is accepted, and its token is used up', () =>
  whileItWaits(async ({ run, approvalId, incidentId }) => {
    const forge = (at: number) => run.signal('approve', { token: `forged-${at}`, approvalId })
    await Promise.all(Array.from({ length: 500 }, (_, at) => forge(at)))
    await run.signal('approve', { token: await token(approvalId, 'approve') })
    await Promise.all(Array.from({ length: 500 }, (_, at) => forge(500 + at)))
    await eventually('the decision', async () => (await statusOf(approvalId)) === 'approved')
    await run.result()
    expect(await unspent()).toBe(0)
    const rows = await eventsOf(database.db, incidentId)
    expect(rows.find((event) => event.kind === 'approval_decided')).toMatchObject({
      actor: 'user:anna',
      metadata: { via: 'signal', decision: 'approve' },
    })
    const batches = scheduled(await run.fetchHistory()).filter((name) => name === 'decideAll').length
    expect(batches).toBeLessThan(100)
    expect(new Set(await codesOf(incidentId))).toEqual(new Set(['UNKNOWN_TOKEN']))
  }))

test('a denial by signal without a reason is recorded, and its token can approve nothing afterwards', () =>
  whileItWaits(async ({ run, approvalId, incidentId }) => {
    const sent = await token(approvalId, 'deny')
    await run.signal('deny', { token: sent })
    await eventually('the denial', async () => (await statusOf(approvalId)) === 'denied')
    const rows = await eventsOf(database.db, incidentId)
    expect(rows.find((event) => event.kind === 'approval_decided')).toMatchObject({
      metadata: { decision: 'deny', reason: 'no reason given', via: 'signal' },
    })
    await run.result()
    expect(await unspent()).toBe(0)
  }))

test.each([
  ['nothing', []],
  ['a reason alone', [{ reason: 'stop it' }]],
  ['an empty object', [{}]],
])(
  "a bare denial that contains %s withdraws the question, hands the incident to people, and counts as nobody's vote",
  (_how, args) =>
    whileItWaits(async ({ run, approvalId, incidentId }) => {
      await sql`insert into platform_config (key, value) values ('webhook.escalated.url', 'https://hooks.example.com/x')
        on conflict do nothing`.execute(database.owner)
      await Promise.allSettled(Array.from({ length: 50 }, () => run.signal('deny', ...(args as []))))
      await run.result()
      expect(await statusOf(approvalId)).toBe('withdrawn')
      expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'escalated' })
      const rows = await eventsOf(database.db, incidentId)
      expect(rows.filter(({ kind }) => kind === 'approval_decided')).toEqual([])
      expect(rows.filter((event) => event.kind === 'noted')).toMatchObject([
        { metadata: { code: 'withdrawn_at_temporal' }, actor: 'system:nightshift' },
      ])
      expect(rows.filter(({ kind }) => kind === 'escalated')).toMatchObject([
        { metadata: { code: 'WITHDRAWN_AT_TEMPORAL' } },
      ])
      const deliveries = database.db.selectFrom('delivery').selectAll().where('incidentId', '=', incidentId)
      const told = (await deliveries.execute()).filter(({ destination }) => destination === 'webhook.escalated')
      expect(told).toHaveLength(1)
    }),
)

test('a bare approval decides nothing, and its row says how to decide', () =>
  whileItWaits(async ({ run, approvalId, incidentId }) => {
    for (let sent = 0; sent < 50; sent += 1) await run.signal('approve')
    await eventually('the trace', async () => (await codesOf(incidentId)).includes('BARE_APPROVAL'))
    expect(await statusOf(approvalId)).toBe('pending')
    const rows = await eventsOf(database.db, incidentId)
    expect(rows.find((event) => event.kind === 'security_event')).toMatchObject({
      metadata: { detail: expect.stringContaining('nightshift approvals token') },
    })
    await run.signal('approve', { token: await token(approvalId, 'approve') })
    await run.result()
    expect(await statusOf(approvalId)).not.toBe('pending')
  }))

test.each([
  ['for the other verdict', (text: string) => ({ token: text }), 'deny' as const],
  ['as a bare text', (text: string) => text, 'approve' as const],
  ['beside its place', (text: string) => ({ Token: text }), 'approve' as const],
  ['in the reason', (text: string) => ({ token: 'oops', reason: `it is ${text}` }), 'approve' as const],
])(
  'a token that arrives by signal %s decides nothing and becomes void, and the card makes a new token',
  (_how, form, decision) =>
    whileItWaits(async ({ run, approvalId, incidentId }) => {
      await run.signal('approve', form(await token(approvalId, decision)))
      await eventually('the token to be void', async () => (await unspent()) === 0)
      expect(await statusOf(approvalId)).toBe('pending')
      expect((await codesOf(incidentId)).some((code) => code === 'TOKEN_EXPOSED' || code === 'OTHER_VERDICT')).toBe(
        true,
      )
      const answer = await run.executeUpdate('decide', {
        args: [{ decision: 'approve', token: await token(approvalId, 'approve') }],
      })
      expect(answer).toMatchObject({ outcome: 'recorded', status: 'approved' })
      await run.result()
    }),
)

test('an update that is refused for its form leaves no token in the history', () =>
  whileItWaits(async ({ run, approvalId }) => {
    const secret = await token(approvalId, 'approve')
    for (const body of [{ decision: 'maybe', token: secret }, secret, { token: secret }]) {
      await expect(run.executeUpdate('decide', { args: [body] })).rejects.toThrow()
    }
    expect(JSON.stringify(spoken(await run.fetchHistory()))).not.toContain(secret)
    const right = { decision: 'approve', token: secret }
    expect(await run.executeUpdate('decide', { args: [right] })).toMatchObject({ outcome: 'recorded' })
    expect(JSON.stringify(spoken(await run.fetchHistory()))).toContain(secret)
    await run.result()
  }))

test('a signal without a person behind it stops nothing, and a cancellation in Temporal hands the incident to people', () =>
  whileItWaits(async ({ run, approvalId, incidentId }) => {
    await run.signal(cancelInvestigation)
    await eventually('the trace', async () => (await codesOf(incidentId)).includes('FORGED_CANCEL'))
    expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'awaiting_approval', attempt: 1 })
    await run.cancel()
    await run.result()
    expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'escalated' })
    expect((await eventsOf(database.db, incidentId)).find(({ kind }) => kind === 'escalated')).toMatchObject({
      metadata: { code: 'RUN_STOPPED' },
    })
    expect(await statusOf(approvalId)).toBe('withdrawn')
  }))

test('a workflow that is restarted under the name of a run does nothing in its place, and leaves a row', () =>
  whileItWaits(async ({ run, incidentId, taskQueue, did }) => {
    await run.terminate('taken over')
    const before = did.length
    const progress = { turn: 0, workedMs: 0, corrections: 0, correctionsInARow: 0 }
    const forged = await temporal.client.workflow.start('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:${incidentId}:1`,
      args: argsOf(incidentId, { resume: { progress, maxTurns: 1_000, timeBudgetMs: 1e9 } }),
    })
    await forged.signal(cancelInvestigation)
    await forged.result()
    const plain = await temporal.client.workflow.start('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:${incidentId}:1`,
      args: argsOf(incidentId),
    })
    await plain.result()
    expect(did.slice(before).filter((step) => !step.startsWith('think'))).toEqual([])
    expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'awaiting_approval', attempt: 1 })
    expect((await codesOf(incidentId)).filter((code) => code === 'FORGED_RUN').length).toBeGreaterThanOrEqual(2)
  }))

test('a start of an attempt that was not planned leaves a row', () =>
  whileItWaits(async ({ incidentId, taskQueue }) => {
    const forged = await temporal.client.workflow.start('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:${incidentId}:7`,
      args: argsOf(incidentId, { attempt: 7 }),
    })
    await forged.result()
    expect(await codesOf(incidentId)).toEqual(['FORGED_RUN'])
  }))

/** A worker of somebody else's on the same Temporal, with workflows of theirs. */
let mallory: Worker
let running: Promise<void>
let connection: NativeConnection
const mallorysQueue = newTaskQueue()

afterAll(async () => {
  mallory?.shutdown()
  await running
  await connection?.close()
})

async function stranger(workflowId: string, workflowType: string, args: unknown[]): Promise<unknown> {
  return await temporal.client.workflow
    .execute(workflowType, { taskQueue: mallorysQueue, workflowId, args })
    .then((value) => ({ value }))
    .catch((error: { cause?: { cause?: { message?: string } } }) => error.cause?.cause?.message ?? String(error))
}

test('a foreign workflow that calls an activity decides, reads and plans nothing, whatever identity it claims', () =>
  whileItWaits(async ({ incidentId, approvalId, taskQueue }) => {
    const message = { decision: 'approve', token: await token(approvalId, 'approve'), via: 'page' }
    const inputs: [string, unknown[]][] = [
      ['decide', [incidentId, message]],
      ['decideAll', [incidentId, 1, [{ door: 'update', message, texts: [] }]]],
      ['readDecision', [incidentId, 1, approvalId]],
      ['isStopWanted', [incidentId, 1]],
      ['endEarly', [{ incidentId, attempt: 1, turn: 0, why: 'stopped' }]],
      ['escalate', [incidentId, 1, 'TURN_LIMIT', 1]],
      ['closing', [incidentId]],
      ['planGroup', ['disk_pressure', []]],
    ]
    for (const [name, input] of inputs) {
      const answer = await stranger(`mallory:${incidentId}:${name}`, 'Stranger', [taskQueue, name, input])
      const refused = name === 'planGroup' ? 'FORGED_GROUP' : name === 'endEarly' ? { value: true } : 'StaleRunError'
      expect([name, answer]).toEqual([name, refused])
    }
    expect(await statusOf(approvalId)).toBe('pending')
    expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'awaiting_approval' })
    expect((await codesOf(incidentId)).filter((code) => code === 'FORGED_RUN')).toHaveLength(7)
  }))

test('a run that continues as new still has its claim', async () => {
  await temporal.working(crew().activities, async (taskQueue) => {
    const incidentId = await openedIncident(database.db)
    const [claim] = argsOf(incidentId)
    const answer = await stranger(`investigate:${incidentId}:1`, 'Continuing', [
      taskQueue,
      claim,
      'isStopWanted',
      [incidentId, 1],
    ])
    expect(answer).toEqual({ value: false })
    expect(await codesOf(incidentId)).toEqual([])
    const afresh = await stranger(`investigate:${incidentId}:1`, 'Stranger', [
      taskQueue,
      'isStopWanted',
      [incidentId, 1],
    ])
    expect(afresh).toBe('StaleRunError')
    expect(await codesOf(incidentId)).toEqual(['FORGED_RUN'])
  })
})
