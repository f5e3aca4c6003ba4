import type { Db } from '../db/connect.ts'
import { claimIncident, lockIncident, toIncident } from '../db/incidents/incidents.ts'
import { keep, keptNow } from '../db/incidents/queue.ts'
import { append } from '../db/log/append.ts'
import { eventsOf } from '../db/log/events.ts'
import { spentCap } from '../db/models/spend.ts'
import { type EnvironmentDefaults, readSettings, type SettingsReader } from '../db/settings.ts'
import { agentActor, type ConfigInForce } from '../domain/event.ts'
import { findManualChange, type ManualChange, manualChangeType } from '../domain/manual-change.ts'
import { resourceKey } from '../domain/registry.ts'
import { investigationId, stepKey } from '../domain/step-key.ts'
import { mayClaim, ownRunId, ownWorkflowId, recordForgery } from './own-run.ts'

export type ClaimInput = { incidentId: string; attempt: number; role: 'leader' | 'follower'; groupId: string }

export type ClaimedIncident = { type: string; severity: string; target: string }

type ClaimDeps = {
  db: Db
  environment: EnvironmentDefaults
  /** Value of `AGENT_ENABLED`. */
  isEnabled: boolean
}

/**
 * Claims the incident for this run. Returns null if another run has the incident, the agent is
 * paused or off, or `agent.investigate` now leaves the incident to people.
 */
export async function claim(
  { db, environment, isEnabled }: ClaimDeps,
  input: ClaimInput,
): Promise<ClaimedIncident | null> {
  const settings = await readSettings(db, environment)
  const change = findManualChange(await eventsOf(db, input.incidentId), input.attempt)
  // Checks this again, because not only the queue may start a run. While the agent is off or
  // paused, only a person's own write may run.
  if (!change && (!isEnabled || settings.value<boolean>('agent.paused') || (await spentCap(db)))) return null
  // Lets only the run with the attempt's name claim, because a second run that was started by hand
  // would use the same step keys.
  const claimed = ownWorkflowId() === investigationId(input) ? await claimRows(db, settings, input, change) : 'forged'
  if (claimed !== 'forged') return claimed
  await recordForgery(db, input)
  return null
}

async function claimRows(
  db: Db,
  settings: SettingsReader,
  input: ClaimInput,
  change: ManualChange | null,
): Promise<ClaimedIncident | 'forged' | null> {
  const workflowId = ownWorkflowId()
  const timeBudgetSeconds = settings.value<number>('agent.time_budget')
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, input.incidentId)
    if (!row || (row.type === manualChangeType && !change)) return null
    if (input.attempt > row.attempt + 1 || !(await mayClaim(trx, input))) return 'forged'
    const isNext = row.status === 'open' && row.keptReason === null && input.attempt === row.attempt + 1
    const kept = isNext && !change ? await keptNow(trx, row, settings) : null
    if (kept !== null) {
      await keep(trx, row.id, kept)
      return null
    }
    if (!(await claimIncident(trx, { ...input, workflowId, timeBudgetSeconds }))) return null
    await append(trx, input.incidentId, input.attempt, {
      kind: 'claimed',
      actor: change?.actor ?? agentActor,
      stepKey: stepKey(input, 0, 'claimed', 0),
      detail: change ? 'Began the change' : 'Agent claimed incident for investigation',
      metadata: {
        role: input.role,
        groupId: input.groupId,
        workflowId,
        runId: ownRunId(),
        config: configInForce(settings, row.type),
      },
    })
    const { resource } = toIncident(row)
    return { type: row.type, severity: row.severity, target: resource ? resourceKey(resource) : 'unknown' }
  })
}

const configKeys = ['agent.max_turns', 'agent.concurrency', 'agent.tools'] as const

const globalKeys = ['agent.leader_wait', 'agent.time_budget', 'agent.token_budget'] as const

function configInForce(settings: SettingsReader, type: string): ConfigInForce {
  const inForce: ConfigInForce = {}
  for (const key of configKeys) {
    const { value, source } = settings.effective(key, type)
    inForce[key] = { value, source }
  }
  for (const key of globalKeys) {
    const { value, source } = settings.effective(key)
    inForce[key] = { value, source }
  }
  inForce['agent.system_prompt'] = { value: null, source: settings.effective('agent.system_prompt', type).source }
  return inForce
}
