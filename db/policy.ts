import { sql } from 'kysely'
import { actionByKeys, containerFound, keyReader, type NamingFacts } from '../domain/approval.ts'
import type { Incident } from '../domain/incident.ts'
import { quietSecondsFor } from '../domain/lifecycle.ts'
import type { ManualChange } from '../domain/manual-change.ts'
import { questionType } from '../domain/question.ts'
import type { Policy } from '../domain/refusal.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import { demandOf } from '../domain/site-decision.ts'
import { describeStop } from '../domain/stop.ts'
import type { Risk } from '../domain/tool.ts'
import type { PairTrust } from '../domain/trust.ts'
import { describeDoubt } from '../domain/unproven-end.ts'
import { usableApproval as usable } from './approvals/find.ts'
import { usableGrants } from './approvals/grants.ts'
import { databaseTime } from './clock.ts'
import type { Db, Trx } from './connect.ts'
import { hostsSaidOff } from './inventory/deaths.ts'
import { ownAmong } from './inventory/footprint.ts'
import { leaseKeyByName, leasesOfOthers } from './inventory/registry.ts'
import { neighboursOf } from './inventory/resources.ts'
import { alertCounts } from './lifecycle/read-lifecycle.ts'
import type { SettingsReader } from './settings.ts'
import { readSiteDecisions } from './site-policy.ts'
import { trustOf } from './trust/levels.ts'
import { type StoppableCall, stopOf } from './trust/stops.ts'

/** Inputs of the policy check in addition to the log: settings in force and standing grants. */

/**
 * Reads the facts that the policy check uses in addition to the log, in the transaction of the
 * policy decision. Throws if a fact cannot be read, so that nothing runs.
 */
export async function readPolicy(
  trx: Trx,
  incident: Incident,
  settings: SettingsReader,
  call: {
    facts: NamingFacts
    targets: ResourceRef[]
    approvalId: string | null
    isEnding: boolean
    manual?: ManualChange | null
  },
): Promise<Policy> {
  const { resource } = incident
  const { name: tool } = call.facts
  const denials = await readDenials(trx, incident.id)
  const own = await ownAmong(trx, call.targets, settings.value<string[]>('agent.footprint'))
  const site = await readSiteDecisions(trx, {
    ...{ tool, type: incident.type, targets: call.targets },
    incidentId: incident.id,
  })
  return {
    ...(site && { site }),
    incidentId: incident.id,
    resource,
    role: incident.role ?? 'leader',
    paused: settings.value<boolean>('agent.paused'),
    raised: {
      risk: settings.value<Risk | null>('approval.risk', tool),
      required: settings.value<number>('approval.required', tool),
    },
    offered: settings.value<string[] | null>('agent.tools', incident.type),
    grants: await usableGrants(trx, tool, incident.id),
    trust: await trustNow(trx, { type: incident.type, tool, targets: call.targets }, settings),
    vicinity: resource ? [resource, ...(await neighboursOf(trx, resource))] : [],
    denied: denials.map(({ actionDigest }) => actionDigest),
    ...(await deniedByKey(trx, denials, call)),
    busy: await leasesOfOthers(trx, incident.id, call.targets),
    ...(own.length > 0 && { own }),
    approval: await usableApproval(trx, incident.id, call.approvalId),
    // Reads the alerts only for an ending, because only an ending is checked against them.
    ...(call.isEnding && { alerts: await alertsNow(trx, incident, settings) }),
    isQuestion: incident.type === questionType,
    ...(call.manual && {
      manual: { stateFingerprint: call.manual.stateFingerprint, ...(call.manual.undoes && { isUndo: true as const }) },
    }),
  }
}

/** Returns the level of trust of a call. A kind of write that people stopped is in shadow. */
async function trustNow(trx: Trx, call: StoppableCall, settings: SettingsReader): Promise<PairTrust> {
  const trust = await trustOf(trx, call, settings)
  const stop = await stopOf(trx, call)
  return stop ? { ...trust, level: 'shadow', stop: { id: stop.id, words: describeStop(stop) } } : trust
}

/**
 * Lists denials of this tool with one key for each resource, and the keys of this call's targets. A
 * denied action may be proposed again under another name of its resource.
 */
async function deniedByKey(
  trx: Trx,
  all: readonly Denial[],
  { facts, targets }: { facts: NamingFacts; targets: ResourceRef[] },
): Promise<Pick<Policy, 'deniedActions' | 'keys'>> {
  const denials = all.filter(({ tool }) => tool === facts.name)
  if (denials.length === 0) return {}
  const keys = await leaseKeyByName(trx, [...targets, ...denials.flatMap((each) => each.targets)])
  const keyByName = Object.fromEntries(keys)
  const ofCall = new Set(targets.map(resourceKey))
  return {
    deniedActions: denials.map((each) => actionByKeys(facts, each, keyReader(keyByName))),
    keys: Object.fromEntries(Object.entries(keyByName).filter(([own, key]) => ofCall.has(own) && own !== key)),
  }
}

async function alertsNow(trx: Trx, incident: Incident, settings: SettingsReader): Promise<Policy['alerts']> {
  const counts = await alertCounts(trx, incident, settings)
  const { total, firing, unknown, unproven, endless, lastEnd } = counts
  const quietSeconds = quietSecondsFor(incident.status, { quietSeconds: settings.value<number>('alert.quiet') })
  const isOver = total > 0 && firing === 0 && lastEnd !== null
  const endedForSeconds = isOver ? (Date.parse(await databaseTime(trx)) - Date.parse(lastEnd)) / 1000 : null
  const isCritical = incident.severity === 'critical'
  const doubt = unknown + unproven > 0 && { doubt: describeDoubt(counts.unknownWhy, counts.endReason) }
  const isOverFor = { isCritical, endedForSeconds, quietSeconds }
  return { total, firing: firing - endless, unknown, unproven, endless, ...doubt, ...isOverFor }
}

async function usableApproval(trx: Trx, incidentId: string, approvalId: string | null): Promise<Policy['approval']> {
  const approval = approvalId ? await usable(trx, approvalId) : null
  if (approval?.incidentId !== incidentId) return null
  const { id, callId, actionDigest, stateFingerprint, dryRun } = approval
  const site = demandOf(dryRun)
  const hostIsOff = await hostsSaidOff(trx, id)
  return {
    id,
    callId,
    actionDigest,
    stateFingerprint,
    ...(hostIsOff.length > 0 && { hostIsOff }),
    ...(site && { site }),
  }
}

type Denial = {
  tool: string
  actionDigest: string
  arguments: Record<string, unknown>
  targets: ResourceRef[]
  container: string | null
}

/**
 * Lists denials anywhere in the incident's group. An expired question does not count as a denial.
 */
export async function readDenials(db: Db | Trx, incidentId: string): Promise<Denial[]> {
  const denied = db
    .selectFrom('approval')
    .select('approval.id')
    .where('approval.status', '=', 'denied')
    // Leaves out a "not now" that has ended. It is stored as a denial with an end.
    .where(
      sql<boolean>`not exists (select from approval_decision as vote where vote.approval_id = approval.id
        and vote.decision = 'deny' and vote.ask_again_at <= nightshift_now())`,
    )
  const ofGroup = denied
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .innerJoin('incident as own', 'own.groupId', 'incident.groupId')
    .where('own.id', '=', incidentId)
  // Uses two queries, each of which has an index. One query would read every denial.
  const rows = await db
    .selectFrom('approval')
    .select(['tool', 'actionDigest', 'args', 'targets', 'dryRun'])
    .where('id', 'in', denied.where('incidentId', '=', incidentId).union(ofGroup))
    .execute()
  return rows.map(({ args, targets, dryRun, ...rest }) => ({
    ...rest,
    arguments: args,
    targets: targets as ResourceRef[],
    container: containerFound(dryRun),
  }))
}
