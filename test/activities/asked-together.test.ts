import { expect, test } from '@jest/globals'
import { rule } from '../../activities/rule.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { failedEnvelope } from '../../domain/envelope.ts'
import { agentActor } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { stepKey } from '../../domain/step-key.ts'
import { approvedBySomebody } from '../support/announced.ts'
import { claimedIncident, useDatabase } from '../support/database.ts'
import { answeredWith } from '../support/events.ts'

const database = useDatabase()
const kill = { pid: 4711, start_time: '100', signal: 'TERM' }
const node = (id: string): ResourceRef => ({ kind: 'node', id })

/** An answer with a kill on each of these nodes, of which these were looked up. */
async function proposed(on: string[], known: string[]) {
  const incidentId = await claimedIncident(database.db)
  const base = { incidentId, attempt: 1, turn: 2 }
  const calls = on.map((id, index) => ({
    id: `c2_${index}`,
    tool: 'proc_kill',
    arguments: { on: id, ...kill, reason: 'it eats the CPU' },
    problem: null,
  }))
  await database.db.transaction().execute(async (trx) => {
    for (const [index, id] of known.entries())
      await append(trx, incidentId, 1, {
        kind: 'tool_finished',
        actor: agentActor,
        turn: 1,
        detail: '',
        stepKey: stepKey(base, 1, 'tool_finished', index),
        metadata: {
          callId: `c1_${index}`,
          tool: 'find_resource',
          arguments: { text: id },
          effect: 'resolve',
          targets: [],
          outcome: 'done',
          body: null,
          durationMs: 1,
          result: { ok: true, data: {}, meta: {} },
          discovered: [{ ...node(id), name: id, aliases: [] }],
        },
      })
    await append(trx, incidentId, 1, {
      kind: 'model_answered',
      actor: agentActor,
      turn: 2,
      detail: '',
      stepKey: stepKey(base, 2, 'model_answered', 0),
      metadata: answeredWith(calls),
    })
  })
  const later = (index: number) => {
    const dryRun = { possible: false, summary: `end a process on ${on[index]}`, details: {} }
    const identity = { on: on[index], ...kill }
    const preparation = { targets: [node(on[index] ?? '')], identity, stateFingerprint: 'f', dryRun }
    return {
      place: { ...base, call: index, approvalId: null as string | null },
      call: { ...calls[index]!, edit: null },
      prepared: { ok: true as const, preparation },
    }
  }
  const judge = (index: number, approvalId: string | null = null) =>
    database.db.transaction().execute((trx) => {
      const { place, call, prepared } = later(index)
      const behind = on.map((_, each) => each).filter((each) => each > index)
      return rule({ environment: {} }, trx, { ...place, approvalId }, { call, prepared, later: behind.map(later) })
    })
  const approvals = () =>
    database.db
      .selectFrom('approval')
      .select(['id', 'callId', 'status', 'askedWith', 'announced'])
      .where('incidentId', '=', incidentId)
      .orderBy('requestedAt')
      .orderBy('callId')
      .execute()
  return { incidentId, base, judge, approvals }
}

/** What the first call came to: it ran and failed. */
async function fail({ incidentId, base }: Awaited<ReturnType<typeof proposed>>) {
  const metadata = { callId: 'c2_0', tool: 'proc_kill', arguments: {}, effect: 'write' as const, targets: [] }
  const result = failedEnvelope('DENIED', 'there is no such process')
  await database.db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      turn: 2,
      detail: '',
      stepKey: stepKey(base, 2, 'tool_finished', 0),
      metadata: { ...metadata, outcome: 'failed', result, body: null, discovered: [], durationMs: 1 },
    }),
  )
}

test('a call that touches the same resource, or that would be refused now, is not asked together with the others', async () => {
  const answer = await proposed(['web-1', 'web-1', 'web-2', 'web-unknown'], ['web-1', 'web-2'])
  expect(await answer.judge(0)).toMatchObject({ kind: 'ask' })
  const asked = await answer.approvals()
  expect(asked.map(({ callId, announced }) => [callId, announced])).toEqual([
    ['c2_0', true],
    ['c2_2', false],
  ])
  expect(new Set(asked.map(({ askedWith }) => askedWith))).toEqual(new Set([asked[0]?.id]))
  const judged = (await eventsOf(database.db, answer.incidentId)).filter(({ kind }) => kind === 'call_judged')
  expect(judged).toHaveLength(2)
})

test('an answer with one question makes no card with several calls', async () => {
  const answer = await proposed(['db-1', 'db-unknown'], ['db-1'])
  await answer.judge(0)
  expect(await answer.approvals()).toMatchObject([{ callId: 'c2_0', askedWith: null, announced: true }])
})

test('if the first call fails, the approval of the second call is withdrawn and asked again', async () => {
  const answer = await proposed(['api-1', 'api-2'], ['api-1', 'api-2'])
  await answer.judge(0)
  const [, second] = await answer.approvals()
  await approvedBySomebody(database.db, second?.id ?? '')
  await fail(answer)
  expect(await answer.judge(1)).toMatchObject({ kind: 'ask' })
  const [, , again] = await answer.approvals()
  expect((await answer.approvals()).map(({ status }) => status)).toEqual(['pending', 'withdrawn', 'pending'])
  expect(again).toMatchObject({ callId: 'c2_1', announced: true })
  // Found again after a crash, that question stands: people knew of the failure when it was asked.
  expect(await answer.judge(1)).toMatchObject({ kind: 'ask', approvalId: again?.id })
})

test('a decision that was made before the turn of its call is used when the call is due, also a denial', async () => {
  const answer = await proposed(['mail-1', 'mail-2'], ['mail-1', 'mail-2'])
  await answer.judge(0)
  const [, second] = await answer.approvals()
  await database.db
    .updateTable('approval')
    .set({ status: 'denied' })
    .where('id', '=', second?.id ?? '')
    .execute()
  expect(await answer.judge(1)).toEqual({ kind: 'ask', approvalId: second?.id, expiresInMs: 250 })
  expect(await answer.approvals()).toHaveLength(2)
})
