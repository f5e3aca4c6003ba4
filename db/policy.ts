import { actionByKeys, keyReader, type NamingFacts } from '../domain/approval.ts'
import type { Incident } from '../domain/incident.ts'
import { quietSecondsFor } from '../domain/lifecycle.ts'
import type { Policy } from '../domain/refusal.ts'
import { type ResourceRef, resourceKey } from '../domain/resource.ts'
import type { Risk } from '../domain/tool.ts'
import { denialsOfTool, deniedDigests, usableApproval as usable } from './approvals/find.ts'
import { databaseTime, type Trx } from './connect.ts'
import { usableGrants } from './grants.ts'
import { neighboursOf } from './inventory.ts'
import { leasesOfOthers } from './leases.ts'
import { alertCounts } from './lifecycle/view.ts'
import { leaseKeyByName } from './registry.ts'
import type { SettingsReader } from './settings.ts'

/**
 * Everything the judge weighs besides the log, read in the transaction that will write its ruling. Throws when a store cannot
 * be read: then nothing runs.
 */
export async function readPolicy(
  trx: Trx,
  incident: Incident,
  settings: SettingsReader,
  call: { facts: NamingFacts; targets: ResourceRef[]; approvalId: string | null; isEnding: boolean },
): Promise<Policy> {
  const { resource } = incident
  const { name: tool } = call.facts
  return {
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
    vicinity: resource ? [resource, ...(await neighboursOf(trx, resource))] : [],
    denied: await deniedDigests(trx, incident.id),
    ...(await deniedByKey(trx, incident.id, call)),
    busy: await leasesOfOthers(trx, incident.id, call.targets),
    approval: await usableApproval(trx, incident.id, call.approvalId),
    // Nothing but an ending is judged by its alerts.
    ...(call.isEnding && { alerts: await alertsNow(trx, incident, settings) }),
    isQuestion: incident.type === 'question',
  }
}

/** The denials of this tool by the key of each thing, with the keys of what this call would write to. */
async function deniedByKey(
  trx: Trx,
  incidentId: string,
  { facts, targets }: { facts: NamingFacts; targets: ResourceRef[] },
): Promise<Pick<Policy, 'deniedActions' | 'keys'>> {
  const denials = await denialsOfTool(trx, incidentId, facts.name)
  if (denials.length === 0) return {}
  const all = Object.fromEntries(await leaseKeyByName(trx, [...targets, ...denials.flatMap((each) => each.targets)]))
  const ofCall = new Set(targets.map(resourceKey))
  return {
    deniedActions: denials.map((each) => actionByKeys(facts, each, keyReader(all))),
    keys: Object.fromEntries(Object.entries(all).filter(([own, key]) => ofCall.has(own) && own !== key)),
  }
}

async function alertsNow(trx: Trx, incident: Incident, settings: SettingsReader): Promise<Policy['alerts']> {
  const { total, firing, unknown, endless, lastEnd } = await alertCounts(trx, incident, settings)
  const quietSeconds = quietSecondsFor(incident.status, { quietSeconds: settings.value<number>('alert.quiet') })
  const isOver = total > 0 && firing === 0 && lastEnd !== null
  const endedForSeconds = isOver ? (Date.parse(await databaseTime(trx)) - Date.parse(lastEnd)) / 1000 : null
  return { total, firing: firing - endless, unknown, endless, endedForSeconds, quietSeconds }
}

async function usableApproval(trx: Trx, incidentId: string, approvalId: string | null): Promise<Policy['approval']> {
  const approval = approvalId ? await usable(trx, approvalId) : null
  if (approval?.incidentId !== incidentId) return null
  const { id, callId, actionDigest, stateFingerprint } = approval
  return { id, callId, actionDigest, stateFingerprint }
}
