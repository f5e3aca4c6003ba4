import { activityInfo } from '@temporalio/activity'
import { alertsOf, ambiguityOf } from '../db/alerts.ts'
import { activeAlerts } from '../db/alerts-of-resource.ts'
import { append } from '../db/append.ts'
import { hasChanges } from '../db/changes.ts'
import { closeIncident } from '../db/closing.ts'
import { type Db, isTransient } from '../db/connect.ts'
import { usableDevices } from '../db/devices.ts'
import { eventByStepKey, eventsOf, storeBody } from '../db/events.ts'
import { incidentById, incidentState } from '../db/incidents.ts'
import { neighboursOf, resourceById } from '../db/inventory.ts'
import { earlierAttempts } from '../db/lifecycle/view.ts'
import { precedentsOf } from '../db/precedents.ts'
import { hintLeader } from '../db/queue.ts'
import { peopleSaid, whyReopened } from '../db/requests.ts'
import { type EnvironmentDefaults, readSettings } from '../db/settings.ts'
import { listSources } from '../db/sources.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import type { Incident } from '../domain/incident.ts'
import { type InventoryKind, kinds } from '../domain/kinds.ts'
import { inventoryKind, resourceKey } from '../domain/resource.ts'
import { stepKey } from '../domain/step-key.ts'
import type { CorePort } from '../domain/tool.ts'
import { describeTools, describeToolsAsText } from '../model/describe-tools.ts'
import { renderLeaderHint } from '../model/transcript.ts'
import { type Prompts, renderSystemPrompt } from '../prompts/render.ts'
import { describedTools, splitTools } from '../tools/registry.ts'
import type { EscalationCode } from '../workflows/outcome.ts'
import { changesAround } from './changes-around.ts'
import { NonRetryable } from './failure.ts'
import { assertOwnRun, type Claimed, type ClaimInput, claim, ownRunOf } from './own-run.ts'
import { patienceMs, retryWhileAway, whoIsAway, withHeartbeat } from './patience.ts'
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

  const { context, parts, hintFrom, hasJobs } = await gather(deps, incident)
  const offered = settings.value<string[] | null>('agent.tools', incident.type)
  const devices = await usableDevices(db)
  const described = describedTools(
    offered,
    devices,
    (await listSources(db)).map(({ kind }) => kind),
    { changes: await hasChanges(db), jobs: hasJobs },
  )
  // An admin's own list is offered whole.
  const about = inventoryKind.safeParse(incident.resource?.kind)
  const kind = about.data ?? null
  const { first, more } = offered === null ? splitTools(described, kind) : { first: described, more: [] }
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

/** What the prompt says something about: the kind of the resource with those near it, and devices. Null: everything. */
function topicsOf(kind: InventoryKind | null, hasDevices: boolean): ReadonlySet<string> | null {
  if (kind === null) return null
  const near = kinds[kind].near.flatMap((steps) => steps.map(({ to }) => to))
  return new Set([kind, ...near, ...(hasDevices ? ['device'] : [])])
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

const precedentLimit = 5
/** So often the context is tried where the database is there and assembling fails all the same. */
const brokenTries = 3

/** The incident, its alerts and runbook, the resource and its neighbours, active alerts, precedents, hint. */
async function gather({ db, core }: Pick<ContextDeps, 'db' | 'core'>, incident: Incident) {
  const parts: Record<string, 'ok' | 'empty' | 'failed'> = {}
  const part = async <T>(name: string, empty: T, read: () => Promise<T>): Promise<T> => {
    try {
      const value = await read()
      parts[name] = value === null || (Array.isArray(value) && value.length === 0) ? 'empty' : 'ok'
      return value
    } catch (error) {
      // With the database away every part would be missing.
      if (isTransient(error)) throw error
      // One part less is still an investigation; the row says which was missing.
      parts[name] = 'failed'
      return empty
    }
  }
  const { resource } = incident
  const alerts = await part('alerts', [], () => ownAlerts(db, incident.id))
  const candidates = resource ? [] : await part('candidates', [], () => candidatesOf(db, incident.id))
  const own = await part('resource', null, async () => (resource ? await resourceById(db, resource) : null))
  const neighbours = await part('neighbours', [], async () => (resource ? await neighboursOf(db, resource) : []))
  const active = await part('activeAlerts', [], async () =>
    (resource ? await activeAlerts(db, resourceKey(resource)) : []).map((row) => ({
      name: row.name,
      status: row.status,
      labels: row.labels,
    })),
  )
  const earlier = await part('earlierAttempts', [], async () =>
    (await earlierAttempts(db, incident.id, incident.attempt)).map(({ text, ...each }) => ({
      ...each,
      text: (text ?? '').slice(0, 500).toWellFormed(),
    })),
  )
  const notes = await part('notes', [], async () => await peopleSaid(db, incident.id))
  const precedents = await part('precedents', [], async () => await precedentsOf(db, incident, precedentLimit))
  const rule = await part('rule', null, async () => await firingRule(db, core, incident.id))
  const changes = await part('changes', [], async () => await changesAround(db, incident))
  const jobs = await part('jobs', null, async () => await declaredJobs(core, resource))
  const hint = await part('hint', null, async () => await leaderHint(db, incident))
  return {
    parts,
    hintFrom: hint?.from ?? null,
    hasJobs: jobs !== null,
    context: {
      incident: {
        id: incident.id,
        type: incident.type,
        severity: incident.severity,
        title: incident.title,
        resource,
        status: incident.status,
      },
      alerts,
      // What the alert computes, where a source evaluates it.
      rule,
      // What was deployed or configured around its beginning, there and on what it needs.
      changes,
      resource: own,
      // Its alert names several things and so none: one of these is meant, if any.
      ...(candidates.length > 0 && { candidates }),
      ...(jobs && jobs.length > 0 && { jobs }),
      neighbours,
      activeAlerts: active,
      // What was tried at this trouble before, how it was verified, and why it ended.
      earlierAttempts: earlier,
      notes,
      cameBack: incident.reopened > 0 ? await whyReopened(db, incident.id) : null,
      precedents,
      hint: hint?.text ?? null,
    },
  }
}

async function ownAlerts(db: Db, incidentId: string) {
  return (await alertsOf(db, incidentId)).slice(0, 10).map((row) => ({
    name: row.name,
    status: row.status,
    labels: row.labels,
    annotations: row.annotations,
    startsAt: row.startsAt,
    count: row.count,
    runbook: row.links.runbook,
  }))
}

/** Of the core API, for a part of the context. */
const partWithinMs = 5_000

const candidateLimit = 5

/** What an ambiguous label of its alert may mean. */
async function candidatesOf(db: Db, incidentId: string): Promise<{ resource: string; why: string }[]> {
  const about = await ambiguityOf(db, incidentId)
  if (!about) return []
  const last = about.tried.findLast(({ result }) => result === 'several')
  const why = last
    ? `label ${last.label} says ${last.name}, which means ${about.candidates.length} things`
    : 'ambiguous'
  return about.candidates.slice(0, candidateLimit).map((resource) => ({ resource, why }))
}

async function firingRule(db: Db, core: CorePort | undefined, incidentId: string): Promise<unknown> {
  if (!core || (await listSources(db)).length === 0) return null
  const answer = await core.get(`/api/v1/incidents/${incidentId}/rule`, { signal: AbortSignal.timeout(partWithinMs) })
  if (!answer.ok) throw new Error(answer.problem.title)
  return (answer.data as { rule: unknown }).rule
}

/** Jobs that an operator declared for this resource; null where there are none at all. */
async function declaredJobs(core: CorePort | undefined, resource: Incident['resource']) {
  if (!core) return null
  const ask = async (query: string): Promise<{ name: string; about: string }[]> => {
    const answer = await core.get(`/api/v1/jobs${query}`, { signal: AbortSignal.timeout(partWithinMs) })
    if (!answer.ok) throw new Error(answer.problem.title)
    return (answer.data as { items: { name: string; about: string }[] }).items
  }
  if ((await ask('')).length === 0) return null
  if (!resource) return []
  const fitting = await ask(`?kind=${resource.kind}&id=${encodeURIComponent(resource.id)}`)
  return fitting.map(({ name, about }) => ({ name, about }))
}

async function leaderHint(db: Db, incident: Incident): Promise<{ from: string; text: string } | null> {
  if (incident.role !== 'follower' || !incident.groupId) return null
  const leaderId = await hintLeader(db, incident.groupId)
  const leader = leaderId ? await incidentById(db, leaderId) : null
  if (!leader) return null
  const events: IncidentEvent[] = await eventsOf(db, leader.id, { attempt: leader.attempt })
  const text = renderLeaderHint(leader, events)
  return text === null ? null : { from: leader.id, text }
}
