import { rule } from '../../activities/rule.ts'
import type { Db } from '../../db/connect.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Alert } from '../../domain/alert.ts'
import { agentActor, type IncidentEvent } from '../../domain/event.ts'
import { stepKey } from '../../domain/step-key.ts'
import { readSitePolicy } from '../../safety/site/read.ts'
import { toolFacts } from '../../tools/registry.ts'
import { claimedIncident } from './database.ts'
import { answeredWith, looked } from './events.ts'

/** A policy as it is taken up. */
export function sound(text: string, commit: string | null = 'c0ffee') {
  const read = readSitePolicy(text, toolFacts, commit)
  if (!read.ok) throw new Error(JSON.stringify(read.faults))
  return { text: read.text, compiled: read.compiled, place: 'policy.yaml', commit }
}

/** One proposed start of a VM, judged as the run judges it. */
export async function proposeStart(
  db: Db,
  {
    id = 'vm-101',
    environment = {},
    alert = {},
  }: { id?: string; environment?: Record<string, string>; alert?: Partial<Alert> },
) {
  const vm = { kind: 'vm' as const, id }
  const incidentId = await claimedIncident(db, alert)
  const place = { incidentId, attempt: 1, turn: 1, call: 0, approvalId: null }
  const call = { id: 'c1_0', tool: 'vm_start', arguments: { id, reason: 'it is down' }, problem: null }
  await db.transaction().execute(async (trx) => {
    const seen = looked('c0_0', [vm])
    await append(trx, incidentId, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      turn: 1,
      stepKey: stepKey(place, 0, 'tool_finished', 0),
      detail: '',
      metadata: (seen as IncidentEvent<'tool_finished'>).metadata,
    })
    await append(trx, incidentId, 1, {
      kind: 'model_answered',
      actor: agentActor,
      turn: 1,
      stepKey: stepKey(place, 1, 'model_answered', 0),
      detail: '',
      metadata: answeredWith([call]),
    })
  })
  const preparation = {
    targets: [vm],
    identity: call.arguments,
    stateFingerprint: 's',
    dryRun: { possible: true, summary: `starts ${id}`, details: {} },
  }
  const prepared = { ok: true as const, preparation }
  const outcome = await db
    .transaction()
    .execute((trx) => rule({ environment }, trx, place, { call: { ...call, edit: null }, prepared, later: null }))
  const events = await eventsOf(db, incidentId)
  const judged = events.findLast((event) => event.kind === 'call_judged') as IncidentEvent<'call_judged'>
  return { incidentId, outcome, events, judged: judged.metadata }
}
