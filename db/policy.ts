import { actionByKeys, keyReader, type NamingFacts, type StandingGrant } from '../domain/approval.ts'
import { newId } from '../domain/digest.ts'
import type { Incident } from '../domain/incident.ts'
import { quietSecondsFor } from '../domain/lifecycle.ts'
import type { Policy } from '../domain/refusal.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import type { Risk } from '../domain/tool.ts'
import { append } from './append.ts'
import { usableApproval as usable } from './approvals/find.ts'
import { type Db, databaseTime, inSeconds, now, type Scope, type Trx } from './connect.ts'
import { neighboursOf } from './inventory.ts'
import { alertCounts } from './lifecycle/view.ts'
import { refusalToDecide } from './operators.ts'
import { leaseKeyByName, leasesOfOthers } from './registry.ts'
import type { SettingsReader } from './settings.ts'
import type { ApprovalRow } from './tables.ts'

/** What the judge weighs besides the log: settings in force and standing grants. */

/** Lets an approved action run again without asking: the same action on the same state, `uses` times within `hours`. */
export async function grant(
  trx: Trx,
  approval: ApprovalRow,
  operatorId: string,
  { uses, hours }: { uses: number; hours: number },
): Promise<string> {
  const id = newId('grt')
  await trx
    .insertInto('standingGrant')
    .values({
      id,
      approvalId: approval.id,
      tool: approval.tool,
      actionDigest: approval.actionDigest,
      stateFingerprint: approval.stateFingerprint,
      targets: JSON.stringify(approval.targets),
      uses,
      usesLeft: uses,
      grantedBy: operatorId,
      expiresAt: inSeconds(Math.round(hours * 3600)),
    })
    .execute()
  return id
}

/**
 * Grants of a tool that may still be used in this incident: the judge says whether one is for this very action. A grant is as good as
 * its giver is now: one of a person who may not approve the action in this incident is left out.
 */
export async function usableGrants(trx: Trx, tool: string, incidentId: string): Promise<Policy['grants']> {
  const grants = await trx
    .selectFrom('standingGrant')
    .innerJoin('approval', 'approval.id', 'standingGrant.approvalId')
    .select(['standingGrant.id', 'standingGrant.actionDigest', 'standingGrant.stateFingerprint', 'grantedBy', 'risk'])
    .where('standingGrant.tool', '=', tool)
    .where('usesLeft', '>', 0)
    .where('revokedAt', 'is', null)
    .where('standingGrant.expiresAt', '>', now)
    .orderBy('standingGrant.expiresAt')
    .execute()
  const usable: { id: string; actionDigest: string; stateFingerprint: string }[] = []
  for (const { id, actionDigest, stateFingerprint, grantedBy, risk } of grants) {
    if (await refusalToDecide(trx, grantedBy, { incidentId, risk })) continue
    usable.push({ id, actionDigest, stateFingerprint })
  }
  return usable
}

/** Takes one use, in the transaction that writes `tool_started`. False when a rival took the last, it ended, or its giver may not give it any more. */
export async function takeUse(
  trx: Trx,
  run: { incidentId: string; attempt: number; turn: number },
  grantId: string,
  stepKey: string,
): Promise<boolean> {
  const given = await trx
    .selectFrom('standingGrant')
    .innerJoin('approval', 'approval.id', 'standingGrant.approvalId')
    .select(['grantedBy', 'risk'])
    .where('standingGrant.id', '=', grantId)
    .executeTakeFirst()
  if (!given || (await refusalToDecide(trx, given.grantedBy, { incidentId: run.incidentId, risk: given.risk })))
    return false
  const taken = await trx
    .updateTable('standingGrant')
    .set((update) => ({ usesLeft: update('usesLeft', '-', 1) }))
    .where('id', '=', grantId)
    .where('usesLeft', '>', 0)
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', now)
    .returning(['approvalId', 'usesLeft'])
    .executeTakeFirst()
  if (!taken) return false
  await append(trx, run.incidentId, run.attempt, {
    kind: 'grant_used',
    actor: 'system:nightshift',
    turn: run.turn,
    stepKey,
    detail: `Runs on the standing grant ${grantId}: ${taken.usesLeft} uses left`,
    metadata: { approvalId: taken.approvalId, grantId, usesLeft: taken.usesLeft },
  })
  return true
}

export async function listGrants({ db }: Scope): Promise<StandingGrant[]> {
  const rows = await db
    .selectFrom('standingGrant')
    .innerJoin('operator', 'operator.id', 'standingGrant.grantedBy')
    .selectAll('standingGrant')
    .select('operator.name as by')
    .orderBy('grantedAt', 'desc')
    .limit(200)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    approvalId: row.approvalId,
    tool: row.tool,
    targets: row.targets as ResourceRef[],
    uses: row.uses,
    usesLeft: row.usesLeft,
    grantedBy: row.by,
    grantedAt: row.grantedAt as string,
    expiresAt: row.expiresAt as string,
    revokedAt: row.revokedAt,
  }))
}

/** Ends a grant at once. False when there is none, or it ended before. */
export async function revokeGrant(db: Db, id: string): Promise<boolean> {
  const revoked = await db
    .updateTable('standingGrant')
    .set({ revokedAt: now })
    .where('id', '=', id)
    .where('revokedAt', 'is', null)
    .returning('id')
    .executeTakeFirst()
  return revoked !== undefined
}

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
  const denials = await readDenials(trx, incident.id)
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
    denied: denials.map(({ actionDigest }) => actionDigest),
    ...(await deniedByKey(trx, denials, call)),
    busy: await leasesOfOthers(trx, incident.id, call.targets),
    approval: await usableApproval(trx, incident.id, call.approvalId),
    // Nothing but an ending is judged by its alerts.
    ...(call.isEnding && { alerts: await alertsNow(trx, incident, settings) }),
    isQuestion: incident.type === 'question',
  }
}

/**
 * The denials of this tool by the key of each thing, with the keys of what this call would write to: the same action may come back
 * under another name.
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

type Denial = { tool: string; actionDigest: string; arguments: Record<string, unknown>; targets: ResourceRef[] }

/** What people denied anywhere in the group of this incident; an expiry is not a denial. */
export async function readDenials(db: Db | Trx, incidentId: string): Promise<Denial[]> {
  const denied = db.selectFrom('approval').select('approval.id').where('approval.status', '=', 'denied')
  const ofGroup = denied
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .innerJoin('incident as own', 'own.groupId', 'incident.groupId')
    .where('own.id', '=', incidentId)
  // Two questions with an index each; asked as one, all that was ever denied would be read.
  const rows = await db
    .selectFrom('approval')
    .select(['tool', 'actionDigest', 'args', 'targets'])
    .where('id', 'in', denied.where('incidentId', '=', incidentId).union(ofGroup))
    .execute()
  return rows.map(({ args, targets, ...rest }) => ({ ...rest, arguments: args, targets: targets as ResourceRef[] }))
}
