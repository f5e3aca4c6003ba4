import { activityInfo } from '@temporalio/activity'
import { append } from '../db/append.ts'
import { hasChanges } from '../db/changes.ts'
import { closeIncident } from '../db/closing.ts'
import type { Db } from '../db/connect.ts'
import { usableDevices } from '../db/devices.ts'
import { eventByStepKey, eventsOf, storeBody } from '../db/events.ts'
import { incidentById, incidentState } from '../db/incidents.ts'
import { systemScope } from '../db/scope.ts'
import { type EnvironmentDefaults, readSettings } from '../db/settings.ts'
import { listSources } from '../db/sources.ts'
import { agentActor } from '../domain/event.ts'
import { inventoryKind } from '../domain/resource.ts'
import { stepKey } from '../domain/step-key.ts'
import type { CorePort } from '../domain/tool.ts'
import { describeTools, describeToolsAsText } from '../model/describe-tools.ts'
import { type Prompts, renderSystemPrompt, topicsOf } from '../prompts/render.ts'
import { describedTools, splitTools } from '../tools/registry.ts'
import type { EscalationCode } from '../workflows/outcome.ts'
import { NonRetryable, patienceMs, retryWhileAway, whoIsAway, withHeartbeat } from './failure.ts'
import { gatherContext } from './gather-context.ts'
import { assertOwnRun, type Claimed, type ClaimInput, claim, ownRunOf } from './own-run.ts'
import { escalationReason } from './reason.ts'

type ContextDeps = {
  db: Db
  prompts: Prompts
  protocol: 'native' | 'json'
  model: string
  environment: EnvironmentDefaults
  /** Without it nothing is asked of sources. */
  core?: CorePort
  /** `AGENT_ENABLED`. */
  isEnabled?: boolean
}

type RunLimits = { maxTurns: number; timeBudgetMs: number }

/** The activities with which a run begins and ends: claim, gather what is known, hand over, say how it ended. */
export function contextActivities(deps: ContextDeps) {
  const { db, isEnabled = true } = deps
  return {
    claim: (input: ClaimInput): Promise<Claimed | null> => claim({ ...deps, isEnabled }, input),

    /**
     * Gathers what is known and stores it with the rendered prompt and tool definitions: later turns use these very texts, so
     * that a deploy in between changes nothing. Each part that cannot be had is left out and named.
     */
    async assembleContext(incidentId: string, attempt: number): Promise<RunLimits> {
      return await withHeartbeat(async () => {
        try {
          return await retryWhileAway(() => assemble(deps, incidentId, attempt), { forMs: patienceMs })
        } catch (error) {
          // An absence is waited for; what fails for another reason fails again.
          if (whoIsAway(error) === null && activityInfo().attempt >= brokenTries)
            throw new NonRetryable('CONTEXT_BROKEN')
          throw error
        }
      })
    },

    /** Hands the incident to a person because code ended the run: the reason says which limit, and what was last known. */
    escalate: (incidentId: string, attempt: number, code: EscalationCode, turn: number): Promise<void> =>
      escalate(db, incidentId, attempt, code, turn),

    /** How it ended, for the workflow's result: the head hash lets a later alteration of the log be proved. */
    async closing(incidentId: string): Promise<{ status: string; headHash: string | null }> {
      await ownRunOf(db, incidentId)
      const row = await incidentState(db, incidentId)
      return { status: row?.status ?? 'gone', headHash: row?.headHash ?? null }
    },
  }
}

export type ContextActivities = ReturnType<typeof contextActivities>

async function assemble(deps: ContextDeps, incidentId: string, attempt: number): Promise<RunLimits> {
  const { db, prompts, protocol, model, environment } = deps
  await assertOwnRun(db, { incidentId, attempt })
  const settings = await readSettings(db, environment)
  const incident = await incidentById(db, incidentId)
  if (!incident) throw new NonRetryable('INCIDENT_NOT_FOUND')
  const limits = {
    maxTurns: settings.value<number>('agent.max_turns', incident.type),
    timeBudgetMs: settings.value<number>('agent.time_budget') * 1000,
  }
  const key = stepKey({ incidentId, attempt }, 0, 'context_assembled', 0)
  const stored = await eventByStepKey(db, key, 'context_assembled')
  if (stored) return { ...limits, maxTurns: stored.metadata.maxTurns }

  const { context, parts, hintFrom, hasJobs, hasFittingJob } = await gatherContext(deps, incident)
  const offered = settings.value<string[] | null>('agent.tools', incident.type)
  const devices = await usableDevices(db)
  const described = describedTools(
    offered,
    devices,
    (await listSources(db)).map(({ kind }) => kind),
    { changes: await hasChanges(systemScope(db)), jobs: hasJobs },
  )
  // An admin's own list is offered whole.
  const about = inventoryKind.safeParse(incident.resource?.kind)
  const kind = about.data ?? null
  const { first, more } =
    offered === null ? splitTools(described, kind, hasFittingJob ? [] : ['jobs']) : { first: described, more: [] }
  const system = renderSystemPrompt(prompts, {
    override: settings.value<string | null>('agent.system_prompt', incident.type),
    protocol,
    toolsText: describeToolsAsText(first),
    topics: topicsOf(kind, devices.length > 0),
  })
  const toolsText = JSON.stringify(protocol === 'native' ? describeTools(first) : [])
  await db.transaction().execute(async (trx) => {
    await append(trx, incidentId, attempt, {
      kind: 'context_assembled',
      actor: agentActor,
      stepKey: key,
      detail: `Context assembled: ${Object.keys(parts).join(', ')}`,
      metadata: {
        prompt: await storeBody(trx, system),
        tools: await storeBody(trx, toolsText),
        ...(more.length > 0 && { more: await storeBody(trx, JSON.stringify(describeTools(more))) }),
        context: await storeBody(trx, JSON.stringify(context)),
        protocol,
        model,
        parts,
        hintFrom,
        maxTurns: limits.maxTurns,
        deadline: `${limits.timeBudgetMs / 1000} s of work`,
        tokenBudget: settings.value<number>('agent.token_budget'),
      },
    })
  })
  return limits
}

async function escalate(
  db: Db,
  incidentId: string,
  attempt: number,
  code: EscalationCode,
  turn: number,
): Promise<void> {
  if ((await assertOwnRun(db, { incidentId, attempt })) === 'closed') return
  const events = await eventsOf(db, incidentId, { attempt })
  const { reason, budget } = escalationReason(code, events)
  await db.transaction().execute(async (trx) => {
    if (budget) {
      await append(trx, incidentId, attempt, {
        kind: 'budget_ended',
        actor: agentActor,
        turn,
        stepKey: stepKey({ incidentId, attempt }, turn, 'budget_ended', 0),
        detail: reason,
        metadata: budget,
      })
    }
    await closeIncident(
      trx,
      incidentId,
      attempt,
      { status: 'escalated', code, reason },
      { actor: agentActor, turn, stepKey: stepKey({ incidentId, attempt }, turn, 'escalated', 0) },
    )
  })
}

/** So often the context is tried where the database is there and assembling fails all the same. */
const brokenTries = 3
