import { expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { contextActivities } from '../../activities/context.ts'
import { lookFirst } from '../../activities/leader-looks.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { declareResources } from '../../db/inventory/registry.ts'
import { append } from '../../db/log/append.ts'
import { bodyText } from '../../db/log/bodies.ts'
import { eventsOf } from '../../db/log/events.ts'
import { importSource } from '../../domain/declared-resources.ts'
import { agentActor } from '../../domain/event.ts'
import type { LeaderLook } from '../../domain/leader-look.ts'
import { stepKey } from '../../domain/step-key.ts'
import type { CoreAnswer, CorePort } from '../../domain/tool.ts'
import { conversation } from '../../model/transcript.ts'
import { readPrompts } from '../../prompts/render.ts'
import { fold } from '../../safety/fold.ts'
import { replay } from '../../safety/replay.ts'
import { toolFacts } from '../../tools/registry.ts'
import { claimedIncident, openedIncident, useDatabase } from '../support/database.ts'
import { partOfRow } from '../support/events.ts'

const database = useDatabase()
const node = { kind: 'node' as const, id: 'web-1' }
const fullNode = { id: 'web-1', hostname: 'web-1.example.com', ip: '10.0.0.1', shard: 's-1', status: 'critical' }

/**
 * A core API that answers reads of the node, wants everything on its device to be asked, and counts
 * what it is asked.
 */
function scriptedCore(): CorePort & { asked: string[] } {
  const asked: string[] = []
  const answer = (path: string): CoreAnswer => {
    asked.push(path)
    if (path === '/api/v1/nodes/web-1') return { ok: true, status: 200, data: fullNode }
    if (path.includes('/preparation'))
      return {
        ok: true,
        status: 200,
        data: {
          resource: node,
          stateFingerprint: '',
          dryRun: { possible: false, summary: 'Read it', details: {} },
          asks: { risk: 'high', why: 'it is held for secret' },
        },
      }
    return { ok: false, status: 404, problem: { title: 'not there', detail: 'there is no such thing' } }
  }
  return { asked, get: async (path) => answer(path), post: async (path) => answer(path) }
}

async function follower(looks: LeaderLook[]) {
  const { db } = database
  const declared = { resources: [{ ...node, aliases: [] }], relations: [] }
  await db.transaction().execute((trx) => declareResources(trx, importSource, declared))
  const incidentId = await openedIncident(db, { labels: { alertname: 'DiskFull', node: 'web-1' } })
  const run = { incidentId, attempt: 1 }
  const workflowExecution = { workflowId: `investigate:${incidentId}:1`, runId: 'r' }
  const inRun = <T>(work: () => Promise<T>) => new MockActivityEnvironment({ workflowExecution }).run(work)
  const deps = { db, prompts: readPrompts(), protocol: 'native' as const, model: 'scripted', environment: {} }
  await inRun(() => contextActivities(deps).claim({ ...run, role: 'follower', groupId: 'grp_test' }))
  await db.transaction().execute(async (trx) => {
    await append(trx, incidentId, 1, {
      kind: 'context_assembled',
      actor: agentActor,
      stepKey: stepKey(run, 0, 'context_assembled', 0),
      detail: 'Gathered context',
      metadata: {
        ...{ prompt: body, tools: body, context: body, protocol: 'native', model: 'scripted', parts: {} },
        ...{ hintFrom: 'inc_leader', maxTurns: 10, deadline: '60 s of work', tokenBudget: 1_000 },
        looks: { before: looks, write: 'converge_shard', after: [] },
      },
    })
  })
  const core = scriptedCore()
  const look = () => inRun(() => lookFirst({ db, core, environment: {} }, run, new AbortController().signal))
  return { db, incidentId, core, look, events: () => eventsOf(db, incidentId) }
}
const body = { digest: '0'.repeat(64), bytes: 0, head: '', tail: '' }

test('the reads that decided the incident of the leader are repeated for a follower, as evidence before its first model call', async () => {
  const { look, events, core } = await follower([{ tool: 'get_node', arguments: { id: 'web-1' } }])
  await look()
  const log = await events()
  expect(log.filter(({ kind }) => kind === 'model_answered')).toEqual([])
  const state = fold(log, 1, node)
  expect([...state.lookedAt]).toContain('node:web-1')
  const [answer, result] = conversation(log, 1)
  expect(answer).toMatchObject({ kind: 'answer', content: '', calls: [{ tool: 'get_node' }] })
  expect(result).toMatchObject({ kind: 'result', envelope: { ok: true, data: { status: 'critical' } } })
  expect(replay(log, toolFacts, node)).toMatchObject({ judged: 1, differences: [] })
  // Another try of the activity finds it.
  await look()
  expect(core.asked).toHaveLength(1)
  expect(await events()).toHaveLength(log.length)
})

test('a read that needs approval here, or a call that is no read, is not repeated, and a failed read is not shown to the model', async () => {
  const { db, look, events } = await follower([
    { tool: 'fs_read', arguments: { on: 'web-1', path: '/srv/.env' } },
    { tool: 'get_node', arguments: { id: 'web-2' } },
    { tool: 'converge_shard', arguments: { id: 's-1', reason: 'the leader did' } },
    { tool: 'no_such_tool', arguments: {} },
    { tool: 'get_node', arguments: { id: 'web-1' } },
  ])
  await look()
  const log = await events()
  expect(await db.selectFrom('approval').selectAll().execute()).toEqual([])
  expect(
    log.filter(({ kind }) => kind === 'tool_started').map((event) => (event.metadata as { tool: string }).tool),
  ).toEqual(['get_node', 'get_node'])
  const state = fold(log, 1, node)
  expect(state).toMatchObject({ loops: 0, unformed: null, corrections: 0, writes: [] })
  expect(state.recoveries.attempted).toBe(0)
  expect(conversation(log, 1)).toHaveLength(2)
  expect(replay(log, toolFacts, node).differences).toEqual([])
})

/**
 * A leader at web-0, which found its disk full, converged its shard and read it again: its ending
 * quotes the two looks.
 */
async function resolvedLeader(): Promise<void> {
  const { db } = database
  const incidentId = await claimedIncident(db, { labels: { alertname: 'DiskFull', node: 'web-0' } })
  const call = (callId: string, tool: string, args: object, target: { kind: 'node' | 'shard'; id: string }) => ({
    ...{ callId, tool, arguments: args, targets: [target] },
  })
  const looked = (callId: string) =>
    partOfRow('tool_finished', {
      ...call(callId, 'get_node', { id: 'web-0' }, { kind: 'node', id: 'web-0' }),
      ...{ effect: 'read', outcome: 'done', result: { ok: true, meta: {} }, body: null, discovered: [], durationMs: 1 },
    })
  const wrote = call('c2_0', 'converge_shard', { id: 's-0', reason: 'full' }, { kind: 'shard', id: 's-0' })
  const rows = [
    looked('c1_0'),
    partOfRow('tool_started', { ...wrote, effect: 'write', risk: 'low', actionDigest: 'd', approvalId: null }),
    partOfRow('verification', { ...wrote, writeSeq: 1, outcome: 'held', postcondition: '', observed: '' }),
    looked('c3_0'),
  ]
  const seqs: number[] = []
  await db.transaction().execute(async (trx) => {
    for (const [index, { kind, metadata }] of rows.entries()) {
      const stored = {
        kind,
        actor: agentActor,
        stepKey: stepKey({ incidentId, attempt: 1 }, 9, kind, index),
        detail: kind,
      }
      const { event } = await append(trx, incidentId, 1, { ...stored, metadata } as never)
      if (kind === 'tool_finished') seqs.push(event.seq)
    }
    const quotes = seqs.map((seq) => ({ seq, text: '"status":"critical"' }))
    const claims = [{ kind: 'was' as const, text: 'web-0 was critical', quotes }]
    const closing = {
      status: 'resolved' as const,
      resolution: 'Converged s-0',
      outcome: 'repaired' as const,
      claims,
      confidence: null,
    }
    await closeIncident(trx, incidentId, 1, closing, { actor: agentActor, stepKey: null })
  })
}

test('a follower gets the reads on which the ending of its leader rests, their results for its own resource, and the runbook by name', async () => {
  const { db } = database
  const resources = ['web-0', 'web-1'].map((id) => ({ kind: 'node' as const, id, aliases: [] }))
  await db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations: [] }))
  await resolvedLeader()
  const incidentId = await openedIncident(db, { labels: { alertname: 'DiskFull', node: 'web-1' } })
  const runbook = { name: 'full-disk', description: 'A disk is full', incidentTypes: ['disk_full'], resourceKinds: [] }
  const chosen = {
    ...runbook,
    owner: null,
    reviewedAt: null,
    origin: 'shipped',
    replaces: [],
    digest: 'd',
    bytes: 9,
    body: 'Look at it',
    why: 'type',
  }
  const scripted = scriptedCore()
  const core: CorePort = {
    ...scripted,
    get: async (path, options) =>
      path.startsWith('/api/v1/knowledge-match')
        ? { ok: true, status: 200, data: { chosen, others: [] } }
        : await scripted.get(path, options),
  }
  const deps = { db, core, prompts: readPrompts(), protocol: 'native' as const, model: 'scripted', environment: {} }
  const { claim, assembleContext } = contextActivities(deps)
  const workflowExecution = { workflowId: `investigate:${incidentId}:1`, runId: 'r' }
  await new MockActivityEnvironment({ workflowExecution }).run(async () => {
    await claim({ incidentId, attempt: 1, role: 'follower', groupId: 'grp_test' })
    await assembleContext(incidentId, 1)
  })
  const log = await eventsOf(db, incidentId)
  const opening = log.find((event) => event.kind === 'context_assembled')
  if (opening?.kind !== 'context_assembled') throw new Error('no context')
  const look = { tool: 'get_node', arguments: { id: 'web-1' } }
  expect(opening.metadata).toMatchObject({
    looks: { before: [look], write: 'converge_shard', after: [look] },
    runbook: null,
  })
  const { hint } = JSON.parse(await bodyText(db, opening.metadata.context.digest))
  expect(hint).toContain('Looks that decided it, at your resource:\n  1. get_node({"id":"web-1"})')
  const given = JSON.parse(await bodyText(db, opening.metadata.runbooks?.digest ?? ''))
  expect(given).toEqual({ chosen: null, others: [{ name: 'full-disk', description: 'A disk is full', why: 'type' }] })
  expect(conversation(log, 1)).toHaveLength(2)
  expect(scripted.asked.filter((path) => path === '/api/v1/nodes/web-1')).toHaveLength(1)
})
