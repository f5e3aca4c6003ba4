import { rule } from '../../activities/rule.ts'
import { operatorByName, putOperator } from '../../db/access/operators.ts'
import { ingestAlert } from '../../db/alerts/ingest-body.ts'
import { closeIncident, type Person } from '../../db/incidents/close-incident.ts'
import { claimIncident } from '../../db/incidents/incidents.ts'
import { append } from '../../db/log/append.ts'
import { systemScope } from '../../db/scope.ts'
import { readSettings } from '../../db/settings.ts'
import { loseTrust } from '../../db/trust/lose.ts'
import { recordOf } from '../../db/trust/record.ts'
import { recordDigest, setTrust } from '../../db/trust/set.ts'
import { releaseLeases } from '../../db/writes/leases.ts'
import type { VerificationOutcome } from '../../domain/envelope.ts'
import { agentActor } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { stepKey } from '../../domain/step-key.ts'
import type { TrustLevel } from '../../domain/trust.ts'
import { anAlert } from './an-alert.ts'
import type { TestDatabase } from './database.ts'
import { answeredWith } from './events.ts'

/** One pair, played by the rows that a run would write: the ruling is the kernel's own. */

const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
export const pair = { type: 'replication_lag', tool: 'converge_shard' }

export const proposed = { id: 'c2_0', tool: pair.tool, arguments: { id: shard.id, reason: 'it lags' }, problem: null }

const dryRun = { possible: true, summary: 'start replication on db-osl-1', details: {} }
export const preparation = { targets: [shard], identity: proposed.arguments, stateFingerprint: 'f', dryRun }

export function playPair(database: Pick<TestDatabase, 'db' | 'owner'>, environment: Record<string, string> = {}) {
  const act = { environment }
  /** An incident about the shard, looked at, whose model proposes to converge it. */
  async function propose(fingerprint?: string, beforeCommit?: () => Promise<void>) {
    const { db, owner } = database
    const labels = { alertname: 'x', incident_type: pair.type }
    const alert = anAlert({ labels, ...(fingerprint && { fingerprint }) })
    const { incidentId: opened } = await ingestAlert(db, alert)
    const incidentId = opened as string
    await owner
      .updateTable('incident')
      .set({ resourceKind: shard.kind, resourceId: shard.id })
      .where('id', '=', incidentId)
      .execute()
    const run = { incidentId, attempt: 1 }
    await db.transaction().execute(async (trx) => {
      const claim = { workflowId: `investigate:${incidentId}:1`, role: 'leader' as const, groupId: `grp_${incidentId}` }
      await claimIncident(trx, { ...run, ...claim, timeBudgetSeconds: 1800 })
      await append(trx, incidentId, 1, {
        kind: 'tool_finished',
        actor: agentActor,
        turn: 1,
        detail: '',
        stepKey: stepKey(run, 1, 'tool_finished', 0),
        metadata: {
          callId: 'c1_0',
          tool: 'get_shard',
          arguments: { id: shard.id },
          effect: 'read',
          targets: [shard],
          outcome: 'done',
          body: null,
          durationMs: 1,
          result: { ok: true, data: {}, meta: {} },
          discovered: [{ ...shard, name: shard.id, aliases: [], seen: true, health: 'degraded' }],
        },
      })
      await append(trx, incidentId, 1, {
        kind: 'model_answered',
        actor: agentActor,
        turn: 2,
        detail: '',
        stepKey: stepKey(run, 2, 'model_answered', 0),
        metadata: answeredWith([proposed]),
      })
    })
    return { incidentId, alert, outcome: await judgeAgain(incidentId, beforeCommit) }
  }

  /** Judges the proposed call on the state of now, as a run does that was woken. */
  async function judgeAgain(incidentId: string, beforeCommit?: () => Promise<void>) {
    const place = { incidentId, attempt: 1, turn: 2, call: 0, approvalId: null as string | null }
    return await database.db.transaction().execute(async (trx) => {
      const outcome = await rule(act, trx, place, {
        call: { ...proposed, edit: null },
        prepared: { ok: true, preparation },
        later: null,
      })
      await beforeCommit?.()
      return outcome
    })
  }

  /** What the write that was started came to, as the run writes it. */
  async function verify(incidentId: string, outcome: VerificationOutcome) {
    await database.db.transaction().execute(async (trx) => {
      const common = { actor: agentActor, turn: 2, detail: '' }
      await append(trx, incidentId, 1, {
        ...common,
        kind: 'tool_finished',
        metadata: {
          callId: 'c2_0',
          tool: pair.tool,
          arguments: {},
          effect: 'write',
          targets: [shard],
          outcome: 'done',
          body: null,
          durationMs: 1,
          result: { ok: true, data: {}, meta: {} },
          discovered: [],
        },
      })
      const observed = outcome === 'held' ? 'it replicates' : 'it lags on'
      await append(trx, incidentId, 1, {
        ...common,
        kind: 'verification',
        metadata: {
          callId: 'c2_0',
          tool: pair.tool,
          targets: [shard],
          writeSeq: 1,
          outcome,
          postcondition: '',
          observed,
        },
      })
      await releaseLeases(trx, incidentId)
      if (outcome === 'not_held') await loseTrust(trx, incidentId, { callIds: ['c2_0'], why: observed })
    })
  }

  async function resolve(incidentId: string) {
    await database.db
      .transaction()
      .execute((trx) =>
        closeIncident(
          trx,
          incidentId,
          1,
          { status: 'resolved', outcome: 'repaired', resolution: 'it replicates', claims: [], confidence: null },
          { actor: agentActor, stepKey: null },
        ),
      )
  }

  const record = () => recordOf(database.db, pair)

  async function set(person: Person, to: TrustLevel, more: { seen?: string; risk?: string } = {}) {
    const settings = await readSettings(database.db, environment)
    const seen = more.seen ?? recordDigest(await record())
    return await setTrust(
      database.db,
      person,
      pair,
      { to, reason: 'seen it', seen, risk: more.risk ?? 'low' },
      settings,
    )
  }

  async function person(name: string, change: Partial<Parameters<typeof putOperator>[1]> = {}): Promise<Person> {
    const wanted = { name, role: 'approver' as const, maxRisk: 'high' as const, incidentTypes: null, disabled: false }
    await database.db.transaction().execute((trx) => putOperator(trx, { ...wanted, ...change }))
    const row = await operatorByName(systemScope(database.db), name)
    return { operatorId: row?.id ?? '', actor: `user:${name}`, name }
  }

  return { propose, judgeAgain, verify, resolve, record, set, person }
}
