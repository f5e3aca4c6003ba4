import { beforeAll, expect, test } from '@jest/globals'
import { rule } from '../../../activities/rule.ts'
import { requestApproval } from '../../../db/approvals/ask.ts'
import { declareResources } from '../../../db/inventory/registry.ts'
import { append } from '../../../db/log/append.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { actionByKeys } from '../../../domain/approval.ts'
import { importSource } from '../../../domain/declared-resources.ts'
import { actionDigest } from '../../../domain/digest.ts'
import { agentActor } from '../../../domain/event.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import { stepKey } from '../../../domain/step-key.ts'
import { replay } from '../../../safety/replay.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'
import { answeredWith } from '../../support/events.ts'

const database = useDatabase()

const vm: ResourceRef = { kind: 'vm', id: 'vm-7' }
const node: ResourceRef = { kind: 'node', id: 'web-7' }
const other: ResourceRef = { kind: 'node', id: 'web-8' }
const kill = { pid: 4711, start_time: '100', signal: 'TERM' }

beforeAll(async () => {
  await database.db.transaction().execute((trx) =>
    declareResources(trx, importSource, {
      resources: [vm, node, other] as never,
      relations: [{ from: node, kind: 'same_as', to: vm }],
    }),
  )
})

/** A person denied that this process is ended, for the machine under this name. */
async function deny(on: ResourceRef): Promise<void> {
  const id = await ask(on)
  await database.db.updateTable('approval').set({ status: 'denied' }).where('id', '=', id).execute()
}

async function ask(on: ResourceRef): Promise<string> {
  const incidentId = await claimedIncident(database.db)
  const args = { on: on.id, ...kill, reason: 'it eats the CPU' }
  return await database.db.transaction().execute(async (trx) => {
    const { id } = await requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn: 1,
      callId: 'c1_0',
      tool: 'proc_kill',
      args,
      targets: [on],
      reason: '',
      actionDigest: actionDigest('proc_kill', args),
      stateFingerprint: 'f',
      risk: 'high',
      reversible: false,
      required: 1,
      dryRun: { possible: false, summary: '', details: {} },
      expirySeconds: 600,
      stepKey: `${incidentId}:ask`,
      replaces: null,
      actor: agentActor,
    })
    return id
  })
}

/**
 * The agent of another incident of the group looked the machine up, and proposes the same; answers
 * the ruling's row.
 */
async function propose(on: ResourceRef, args: object = kill, { tool = 'proc_kill', container = '' } = {}) {
  const incidentId = await claimedIncident(database.db)
  const place = { incidentId, attempt: 1, turn: 2, call: 0, approvalId: null }
  const input = { on: on.id, ...args }
  const call = { id: 'c2_0', tool, arguments: { ...input, reason: 'again' }, problem: null }
  const preparation = { targets: [on], identity: input, stateFingerprint: 'f', ...(container && { container }) }
  await database.db.transaction().execute(async (trx) => {
    const looked = { callId: 'c1_0', tool: 'find_resource', arguments: { text: on.id } }
    await append(trx, incidentId, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      turn: 1,
      detail: '',
      stepKey: stepKey(place, 1, 'tool_finished', 0),
      metadata: {
        ...looked,
        effect: 'resolve',
        targets: [],
        outcome: 'done',
        body: null,
        durationMs: 1,
        result: { ok: true, data: {}, meta: {} },
        discovered: [{ ...on, name: on.id, aliases: [] }],
      },
    })
    await append(trx, incidentId, 1, {
      kind: 'model_answered',
      actor: agentActor,
      turn: 2,
      detail: '',
      stepKey: stepKey(place, 2, 'model_answered', 0),
      metadata: answeredWith([call]),
    })
    const dryRun = { possible: false, summary: '', details: {} }
    const prepared = { ok: true as const, preparation: { ...preparation, dryRun } }
    await rule({ environment: {} }, trx, place, { call: { ...call, edit: null }, prepared, later: null })
  })
  const events = await eventsOf(database.db, incidentId)
  const judged = events.find(({ kind }) => kind === 'call_judged')
  if (judged?.kind !== 'call_judged') throw new Error('nothing was judged')
  return { code: judged.metadata.code, approvalId: judged.metadata.approvalId, events }
}

test('a question about a machine under one name is not asked again under its other name', async () => {
  const asked = await ask(vm)
  expect((await propose(node)).approvalId).toBe(asked)
  expect((await propose(vm)).approvalId).toBe(asked)
  // Another machine, another process: those are other questions.
  expect((await propose(other)).approvalId).not.toBe(asked)
  expect((await propose(node, { ...kill, pid: 4712 })).approvalId).not.toBe(asked)
  const pending = await database.db.selectFrom('approval').select('id').where('status', '=', 'pending').execute()
  expect(pending.filter(({ id }) => id === asked)).toHaveLength(1)
})

test('a denial for a machine under one name applies under its other name, and to nothing else', async () => {
  await deny(vm)
  const { code, events } = await propose(node)
  expect(code).toBe('DENIED_BEFORE')
  // The ruling stored what it rested on: judged again, it is the same.
  expect(replay(events, toolFacts, null).differences).toEqual([])
  expect((await propose(vm)).code).toBe('DENIED_BEFORE')
  expect((await propose(other)).code).not.toBe('DENIED_BEFORE')
  expect((await propose(node, { ...kill, pid: 4712 })).code).not.toBe('DENIED_BEFORE')
})

test('an action with swapped places is another action', () => {
  const facts = { name: 'move', names: { from: 'host', to: 'host' } } as const
  const [a, b]: ResourceRef[] = [
    { kind: 'host', id: 'a' },
    { kind: 'host', id: 'b' },
  ]
  const move = (from: string, to: string) =>
    actionByKeys(facts, { arguments: { from, to }, targets: [a as ResourceRef, b as ResourceRef] }, ({ id }) => id)
  expect(move('a', 'b')).not.toBe(move('b', 'a'))
})

test('a denial for a container by its name applies to its id and the beginning of the id, and to no other container', async () => {
  const tool = 'container_restart'
  const found = (container: string) => ({ tool, container })
  const incidentId = await claimedIncident(database.db)
  const args = { on: node.id, container: 'web' }
  await database.db.transaction().execute(async (trx) => {
    const { id } = await requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn: 1,
      callId: 'c1_0',
      tool,
      args,
      targets: [node],
      reason: '',
      actionDigest: actionDigest(tool, args),
      stateFingerprint: 'f',
      risk: 'medium',
      reversible: false,
      required: 1,
      dryRun: { possible: true, summary: '', details: { rehearsal: { container: 'web' } } },
      expirySeconds: 600,
      stepKey: `${incidentId}:ask`,
      replaces: null,
      actor: agentActor,
    })
    await trx.updateTable('approval').set({ status: 'denied' }).where('id', '=', id).execute()
  })
  for (const container of ['3f2a1b4c5d6e', '3f2a1b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708', 'web']) {
    const { code, events } = await propose(node, { container }, found('web'))
    expect([container, code]).toEqual([container, 'DENIED_BEFORE'])
    expect(replay(events, toolFacts, null).differences).toEqual([])
  }
  expect((await propose(node, { container: '77771b4c5d6e' }, found('cache'))).code).not.toBe('DENIED_BEFORE')
  // A name that the engine gave to nothing is only itself.
  expect((await propose(node, { container: '3f2a1b4c5d6e' }, { tool })).code).not.toBe('DENIED_BEFORE')
})
