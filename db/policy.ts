import type { Incident } from '../domain/incident.ts'
import type { Policy } from '../domain/policy.ts'
import type { ResourceRef } from '../domain/resource.ts'
import type { Risk } from '../domain/tool.ts'
import { deniedDigests, usableApproval as usable } from './approvals/find.ts'
import type { Trx } from './connect.ts'
import { usableGrants } from './grants.ts'
import { neighboursOf } from './inventory.ts'
import { leasesOfOthers } from './leases.ts'
import type { SettingsReader } from './settings.ts'

/**
 * Everything the judge weighs besides the log, read in the transaction that will write its ruling. Throws when a store cannot
 * be read: then nothing runs.
 */
export async function readPolicy(
  trx: Trx,
  incident: Incident,
  settings: SettingsReader,
  call: { tool: string; targets: ResourceRef[]; approvalId: string | null },
): Promise<Policy> {
  const { resource } = incident
  return {
    incidentId: incident.id,
    resource,
    role: incident.role ?? 'leader',
    paused: settings.value<boolean>('agent.paused'),
    raised: {
      risk: settings.value<Risk | null>('approval.risk', call.tool),
      required: settings.value<number>('approval.required', call.tool),
    },
    offered: settings.value<string[] | null>('agent.tools', incident.type),
    grants: await usableGrants(trx, call.tool),
    vicinity: resource ? [resource, ...(await neighboursOf(trx, resource))] : [],
    denied: await deniedDigests(trx, incident.id),
    busy: await leasesOfOthers(trx, incident.id, call.targets),
    approval: await usableApproval(trx, incident.id, call.approvalId),
  }
}

async function usableApproval(trx: Trx, incidentId: string, approvalId: string | null): Promise<Policy['approval']> {
  const approval = approvalId ? await usable(trx, approvalId) : null
  if (approval?.incidentId !== incidentId) return null
  const { id, callId, actionDigest, stateFingerprint } = approval
  return { id, callId, actionDigest, stateFingerprint }
}
