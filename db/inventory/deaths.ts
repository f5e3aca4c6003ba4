import type { Death, JudgedDeath, Witness } from '../../domain/death.ts'
import type { EventMetadata } from '../../domain/event.ts'
import { deathsOfDryRun } from '../../domain/format-death.ts'
import { type PlanStep, planOfDryRun } from '../../domain/placement.ts'
import { judgeDeath, whyNotDead } from '../../safety/death.ts'
import { databaseTime } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { ApprovalRow } from '../tables.ts'
import { devicesOf } from './devices.ts'

/** What starts a VM away from a host. */
type Start = Pick<PlanStep, 'action' | 'vm' | 'from'>

/** A host that is taken for dead, and those of its VMs that would start elsewhere. */
export type Suspect = { host: string; vms: string[] }

export function suspectsOf(steps: readonly Start[]): Suspect[] {
  const byHost = new Map<string, string[]>()
  for (const { action, vm, from } of steps)
    if (action === 'start' && from !== null) byHost.set(from, [...(byHost.get(from) ?? []), vm])
  return [...byHost].map(([host, vms]) => ({ host, vms }))
}

/**
 * Starts of a plan, less those of VMs that run elsewhere by now: a witness of such a VM says
 * nothing of its old host.
 */
export async function openStarts<T extends Start>(db: Db | Trx, steps: readonly T[]): Promise<T[]> {
  const starts = steps.filter(({ action }) => action === 'start')
  if (starts.length === 0) return []
  const vms = starts.map(({ vm }) => vm)
  const up = await db
    .selectFrom('vm')
    .select(['id', 'host'])
    .where('id', 'in', vms)
    .where('running', '=', true)
    .execute()
  return starts.filter(({ vm, from }) => !up.some(({ id, host }) => id === vm && host !== from))
}

/** Witnesses by host that no row knows: they are asked for. */
export type AskedWitnesses = ReadonlyMap<string, readonly Witness[]>

/**
 * Hosts whose VMs these steps start elsewhere, each with its witnesses as rows know them: the
 * platform, and the agents of host and VMs. Dead ones only, unless in `taken`: what was taken for
 * dead and is not any more.
 */
export async function readDeaths(
  db: Db | Trx,
  steps: readonly Start[],
  asked: AskedWitnesses = new Map(),
  taken: readonly string[] = [],
): Promise<Death[]> {
  const suspects = suspectsOf(await openStarts(db, steps))
  const named = suspects.map(({ host }) => host).sort()
  if (named.length === 0) return []
  const rows = await db.selectFrom('host').select(['id', 'state']).where('id', 'in', named).execute()
  const stateOf = new Map(rows.map(({ id, state }) => [id, state]))
  const hosts = named.filter((host) => stateOf.get(host) === 'dead' || taken.includes(host))
  if (hosts.length === 0) return []
  const vms = suspects.filter(({ host }) => hosts.includes(host)).flatMap((each) => each.vms)
  const said = await db
    .selectFrom('resourceSource')
    .select(['id', 'attributes'])
    .where('source', '=', 'platform')
    .where('kind', '=', 'host')
    .where('id', 'in', hosts)
    .execute()
  const restarted = await vmsRestartedElsewhere(db, vms)
  const at = await databaseTime(db as Trx)
  const [agents, guests] = [await devicesOf(db, 'host', hosts), await devicesOf(db, 'vm', vms)]
  return hosts.map((host) => {
    const own = suspects.find((each) => each.host === host)?.vms ?? []
    return {
      host,
      witnesses: [
        toPlatformWitness(stateOf.get(host), said.find(({ id }) => id === host)?.attributes ?? {}, at),
        ...agents.filter(({ resource }) => resource.id === host).map(toAgentWitness),
        // The agent of a VM that answers runs in it: it is at work, wherever its host is.
        ...guests.filter(({ resource }) => own.includes(resource.id)).map(toAgentWitness),
        ...(asked.get(host) ?? []),
      ],
      isForecast: own.length > 0 && own.every((vm) => restarted.has(vm)),
    }
  })
}

function toPlatformWitness(
  state: string | undefined,
  { fencedBy, fencedAt }: Record<string, unknown>,
  at: string,
): Witness {
  const by = (who: string, says: Witness['says'], when: string | null): Witness => ({
    ...{ who, sees: 'platform', says, at: when },
  })
  if (state === undefined) return by('the platform', 'silent', at)
  if (state !== 'dead') return by('the platform', 'up', at)
  if (typeof fencedBy !== 'string') return by('the platform', 'down', at)
  return by(`the platform (${fencedBy})`, 'fenced', typeof fencedAt === 'string' ? fencedAt : null)
}

/** An agent that does not answer says nothing: it may be cut off as its host is. */
function toAgentWitness({
  resource: { kind, id },
  health,
  healthProblem,
  healthAt,
}: Awaited<ReturnType<typeof devicesOf>>[number]): Witness {
  const hasAnswered = health !== null && healthProblem === null && healthAt !== null
  return { who: `the agent of ${kind} ${id}`, sees: 'agent', says: hasAnswered ? 'up' : 'silent', at: healthAt }
}

/** The same, judged by the database's clock. */
export async function readJudgedDeaths(
  db: Db | Trx,
  steps: readonly Start[],
  asked?: AskedWitnesses,
  taken?: readonly string[],
): Promise<JudgedDeath[]> {
  const deaths = await readDeaths(db, steps, asked, taken)
  if (deaths.length === 0) return []
  const nowMs = Date.parse(await databaseTime(db as Trx))
  return deaths.map((each) => judgeDeath(each, [], nowMs))
}

/**
 * Deaths in an approval's plan as they are now. Without `asked`, what no row knows is as it was at
 * the question, and ages.
 */
export async function deathsOfApproval(
  db: Db | Trx,
  { dryRun }: Pick<ApprovalRow, 'dryRun'>,
  asked: AskedWitnesses | null = null,
): Promise<JudgedDeath[]> {
  const stored = deathsOfDryRun(dryRun.details)
  if (stored.length === 0) return []
  const then = stored.map(
    ({ host, witnesses }) => [host, witnesses.filter(({ sees }) => sees === 'monitoring')] as const,
  )
  const hosts = stored.map(({ host }) => host)
  return await readJudgedDeaths(db, planOfDryRun(dryRun.details)?.steps ?? [], asked ?? new Map(then), hosts)
}

/** Why an approval that says this much does not count; null where it does. */
export async function whyDeathsBar(
  db: Db | Trx,
  approval: Pick<ApprovalRow, 'dryRun'>,
  said: readonly string[],
  asked: AskedWitnesses | null = null,
): Promise<{ code: string; reason: string } | null> {
  const deaths = await deathsOfApproval(db, approval, asked)
  const strange = said.find((host) => !deaths.some((each) => each.host === host))
  if (strange !== undefined) {
    const reason = `${strange} is none of the dead hosts away from which this starts VMs${deaths.length > 0 ? ` (${deaths.map(({ host }) => host).join(', ')})` : ''}.`
    return { code: 'HOST_NOT_CONFIRMED', reason }
  }
  if (deaths.length === 0) return null
  return whyNotDead(deaths, said, Date.parse(await databaseTime(db as Trx)))
}

/** Those of these VMs that their platform starts elsewhere by itself, where their host dies. */
export async function vmsRestartedElsewhere(db: Db | Trx, vms: readonly string[]): Promise<Set<string>> {
  if (vms.length === 0) return new Set()
  const rows = await db
    .selectFrom('resourceSource')
    .select(['id', 'attributes'])
    .where('source', '=', 'platform')
    .where('kind', '=', 'vm')
    .where('id', 'in', [...vms])
    .execute()
  return new Set(rows.filter(({ attributes }) => attributes.restartsElsewhere === true).map(({ id }) => id))
}

/** Hosts of which those who approved this said that they are off. */
export async function hostsSaidOff(db: Db | Trx, approvalId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('incidentEvent')
    .innerJoin('approval', 'approval.incidentId', 'incidentEvent.incidentId')
    .select('incidentEvent.metadata')
    .where('approval.id', '=', approvalId)
    .where('incidentEvent.kind', '=', 'approval_decided')
    .execute()
  const votes = rows
    .map(({ metadata }) => metadata as EventMetadata['approval_decided'])
    .filter((vote) => vote.approvalId === approvalId && vote.decision === 'approve')
  return [...new Set(votes.flatMap(({ hostIsOff = [] }) => hostIsOff))]
}
