import { activityInfo, cancellationSignal } from '@temporalio/activity'
import type { Db } from '../db/connect.ts'
import { closeIncident } from '../db/incidents/close-incident.ts'
import { incidentById, incidentState } from '../db/incidents/incidents.ts'
import { append } from '../db/log/append.ts'
import { storeBody } from '../db/log/bodies.ts'
import { eventByStepKey, eventsOf } from '../db/log/events.ts'
import { type EnvironmentDefaults, readSettings, type SettingsReader } from '../db/settings.ts'
import { agentActor } from '../domain/event.ts'
import { manualChangeType } from '../domain/manual-change.ts'
import { inventoryKind } from '../domain/registry.ts'
import type { RunbookGiven, RunbookMatch } from '../domain/runbook.ts'
import { type RunRef, stepKey } from '../domain/step-key.ts'
import type { CorePort } from '../domain/tool.ts'
import type { Prompts } from '../prompts/render.ts'
import type { EscalationCode } from '../workflows/outcome.ts'
import { protocolOf, type RoutedModel } from './choose-model.ts'
import { type ClaimedIncident, type ClaimInput, claim } from './claim.ts'
import { NonRetryable } from './failures.ts'
import { readFirstTurn } from './first-turn.ts'
import { gatherContext } from './gather-context.ts'
import { withHeartbeat } from './heartbeat.ts'
import { lookFirst } from './leader-looks.ts'
import { assertOwnRun, ownRunOf } from './own-run.ts'
import { escalationReason } from './reason.ts'
import { patienceMs, retryWhileAway, whoIsAway } from './wait-while-away.ts'

type ContextDeps = {
  db: Db
  prompts: Prompts
  /** The protocol for models that declare none. */
  protocol: 'native' | 'json'
  model: string
  /**
   * Declared models by name, for the settings that choose a model; `model` is the default, called
   * `default`.
   */
  models?: ReadonlyMap<string, Pick<RoutedModel, 'model' | 'protocol' | 'served'>>
  environment: EnvironmentDefaults
  /** The core API; if absent, no source is queried. */
  core?: CorePort
  /** Value of `AGENT_ENABLED`. */
  isEnabled?: boolean
}

/**
 * Usual number of calls in an answer of the native protocol, which allows eight. The JSON protocol
 * gets more turns, because its answers hold one call.
 */
const callsUsual = 4

type RunLimits = { maxTurns: number; timeBudgetMs: number }

/** Activities at the beginning and end of a run: claim, gather facts, hand over, close. */
export function contextActivities(deps: ContextDeps) {
  const { db, core, isEnabled = true } = deps
  return {
    claim: (input: ClaimInput): Promise<ClaimedIncident | null> => claim({ ...deps, isEnabled }, input),

    /**
     * Gathers the facts and stores them with the rendered prompt and the tool definitions. Later
     * turns use these texts, so that a deployment in between changes nothing. A part that cannot be
     * read is left out and named.
     */
    async assembleContext(incidentId: string, attempt: number): Promise<RunLimits> {
      return await withHeartbeat(async () => {
        try {
          const limits = await retryWhileAway(() => assemble(deps, incidentId, attempt), { forMs: patienceMs })
          if (core) await lookFirst({ ...deps, core }, { incidentId, attempt }, cancellationSignal())
          return limits
        } catch (error) {
          // Waits while a server is unreachable. After any other failure, the attempt is repeated a
          // few times, and then the run ends.
          if (whoIsAway(error) === null && activityInfo().attempt >= brokenTries)
            throw new NonRetryable('CONTEXT_BROKEN')
          throw error
        }
      })
    },

    /**
     * Hands the incident to a person because code ended the run. The reason names the limit and the
     * last known facts.
     */
    escalate: (incidentId: string, attempt: number, code: EscalationCode, turn: number): Promise<void> =>
      escalate(db, incidentId, attempt, code, turn),

    /** Returns the incident's last status and the log's head hash, for the workflow's result. */
    async closing(incidentId: string): Promise<{ status: string; headHash: string | null }> {
      await ownRunOf(db, incidentId)
      const row = await incidentState(db, incidentId)
      return { status: row?.status ?? 'gone', headHash: row?.headHash ?? null }
    },
  }
}

export type ContextActivities = ReturnType<typeof contextActivities>

async function assemble(deps: ContextDeps, incidentId: string, attempt: number): Promise<RunLimits> {
  const { db, prompts, environment } = deps
  await assertOwnRun(db, { incidentId, attempt })
  const settings = await readSettings(db, environment)
  const incident = await incidentById(db, incidentId)
  if (!incident) throw new NonRetryable('INCIDENT_NOT_FOUND')
  const timeBudgetMs = settings.value<number>('agent.time_budget') * 1000
  // Gathers nothing for a person's own write, which needs no model.
  if (incident.type === manualChangeType) return { timeBudgetMs, maxTurns: 2 }
  const key = stepKey({ incidentId, attempt }, 0, 'context_assembled', 0)
  const stored = await eventByStepKey(db, key, 'context_assembled')
  if (stored) return { timeBudgetMs, maxTurns: stored.metadata.maxTurns }

  const { model, route, protocol, unknown } = await modelOfRun(deps, settings, { incidentId, attempt }, incident.type)
  const limits = {
    // Allows more turns for the JSON protocol, in which an answer holds only one call.
    maxTurns: settings.value<number>('agent.max_turns', incident.type) * (protocol === 'json' ? callsUsual : 1),
    timeBudgetMs,
  }
  const { context, parts, hintFrom, looks, ...had } = await gatherContext(deps, incident)
  const kind = inventoryKind.safeParse(incident.resource?.kind).data ?? null
  const about = { type: incident.type, kind, ...had }
  const { system, tools, more, runbooks } = await readFirstTurn({ db, prompts, settings }, protocol, about)
  const { chosen, others } = runbooksToGive(runbooks, looks !== null)
  await db.transaction().execute(async (trx) => {
    await append(trx, incidentId, attempt, {
      kind: 'context_assembled',
      actor: agentActor,
      stepKey: key,
      detail: `Gathered context: ${Object.keys(parts).join(', ')}${unknown ? `. ${unknown}` : ''}`,
      metadata: {
        prompt: await storeBody(trx, system),
        tools: await storeBody(trx, JSON.stringify(tools)),
        ...(more.length > 0 && { more: await storeBody(trx, JSON.stringify(more)) }),
        context: await storeBody(trx, JSON.stringify(context)),
        // Stores runbooks apart from the context, because a runbook is neither a read nor evidence.
        ...((chosen !== null || others.length > 0) && {
          runbooks: await storeBody(trx, JSON.stringify({ chosen, others })),
          runbook: chosen && toGiven(chosen),
        }),
        protocol,
        model,
        ...(route !== null && { route }),
        parts,
        hintFrom,
        ...(looks && { looks }),
        maxTurns: limits.maxTurns,
        deadline: `${limits.timeBudgetMs / 1000} s of work`,
        tokenBudget: settings.value<number>('agent.token_budget'),
      },
    })
  })
  return limits
}

/**
 * Gives a follower only the name of its runbook if code repeats the leader's reads for the
 * follower. These reads did what the runbook says, and `read_runbook` returns the text.
 */
function runbooksToGive(match: RunbookMatch | null, isLed: boolean): RunbookMatch {
  const { chosen = null, others = [] } = match ?? {}
  if (chosen === null || !isLed) return { chosen, others }
  const { name, description, why } = chosen
  return { chosen: null, others: [{ name, description, why }, ...others] }
}

const toGiven = ({ name, origin, digest, why }: RunbookGiven): RunbookGiven => ({ name, origin, digest, why })

/**
 * Chooses the run's model from the settings: by incident type, then by role. A name that is not
 * declared gives the default, with a note.
 */
async function modelOfRun(
  { db, model, models, protocol }: ContextDeps,
  settings: SettingsReader,
  run: RunRef,
  type: string,
): Promise<{ model: string; route: string | null; protocol: 'native' | 'json'; unknown: string | null }> {
  const claimed = await eventByStepKey(db, stepKey(run, 0, 'claimed', 0), 'claimed')
  const role = claimed?.metadata.role ?? 'leader'
  const byType = settings.effective('agent.model.type', type)
  const { key, value } = byType.value === null ? settings.effective(`agent.model.${role}`) : byType
  const wanted = typeof value === 'string' && models ? value : null
  const named = wanted === null ? undefined : models?.get(wanted)
  const asked = named ?? models?.get('default')
  const by = asked ? await protocolOf(asked, protocol) : protocol
  if (wanted === null) return { model, route: null, protocol: by, unknown: null }
  if (named) return { model: named.model, route: wanted, protocol: by, unknown: null }
  const unknown = `${key} names ${wanted}, which LLM_SERVERS_FILE does not declare, so the default model is used`
  return { model, route: null, protocol: by, unknown }
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

/** Attempts to gather the context, if the database responds and gathering still fails. */
const brokenTries = 3
