import type { Death, JudgedDeath, Witness } from '../../domain/death.ts'
import type { EventMetadata } from '../../domain/event.ts'
import { deathsOfDryRun } from '../../domain/format-death.ts'
import { type PlanStep, planOfDryRun } from '../../domain/placement.ts'
import { judgeDeath, whyNotDead } from '../../safety/death.ts'
import { databaseTime } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { ApprovalRow } from '../tables.ts'
import { devicesOf } from './devices.ts'

/** A step of a plan that starts a VM away from its host. */
type Start = Pick<PlanStep, 'action' | 'vm' | 'from'>

/** A host that is considered dead, and its VMs that would start elsewhere. */
export type Suspect = { host: string; vms: string[] }

export function suspectsOf(steps: readonly Start[]): Suspect[] {
  const byHost = new Map<string, string[]>()
  for (const { action, vm, from } of steps)
    if (action === 'start' && from !== null) byHost.set(from, [...(byHost.get(from) ?? []), vm])
  return [...byHost].map(([host, vms]) => ({ host, vms }))
}

/**
 * Returns the starts among the steps of a plan. Leaves out a VM that now runs elsewhere, because a
 * witness of this VM shows nothing about its old host.
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

/** Witnesses that no rows contain, by host. They are queried for this decision. */
export type AskedWitnesses = ReadonlyMap<string, readonly Witness[]>

/**
 * Lists hosts whose VMs these steps start elsewhere, with the witnesses that rows contain: the
 * platform, and the agents of the host and its VMs. Lists only dead hosts, and the hosts in
 * `taken`, which were considered dead before.
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
        // Counts a responding agent in a VM as a witness: the VM then works, wherever its host is.
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

/**
 * Converts a device to a witness. An agent that does not respond is silent, because it may be cut
 * off together with its host.
 */
function toAgentWitness({
  resource: { kind, id },
  health,
  healthProblem,
  healthAt,
}: Awaited<ReturnType<typeof devicesOf>>[number]): Witness {
  const hasAnswered = health !== null && healthProblem === null && healthAt !== null
  return { who: `the agent of ${kind} ${id}`, sees: 'agent', says: hasAnswered ? 'up' : 'silent', at: healthAt }
}

/** Lists the hosts that `readDeaths` lists, each with a verdict by the database's clock. */
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
 * Reads the current state of the deaths in an approval's plan. Without `asked`, reports of
 * monitoring are the reports from when people were asked, which expire.
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

/** Explains why an approval of a plan with dead hosts is not accepted; null if it is accepted. */
export async function whyDeathsBar(
  db: Db | Trx,
  approval: Pick<ApprovalRow, 'dryRun'>,
  said: readonly string[],
  asked: AskedWitnesses | null = null,
): Promise<{ code: string; reason: string } | null> {
  const deaths = await deathsOfApproval(db, approval, asked)
  const strange = said.find((host) => !deaths.some((each) => each.host === host))
  if (strange !== undefined) {
    const reason = `${strange} is not one of the dead hosts whose VMs this starts elsewhere${deaths.length > 0 ? ` (${deaths.map(({ host }) => host).join(', ')})` : ''}.`
    return { code: 'HOST_NOT_CONFIRMED', reason }
  }
  if (deaths.length === 0) return null
  return whyNotDead(deaths, said, Date.parse(await databaseTime(db as Trx)))
}

/** Lists the VMs among these that the platform itself starts elsewhere when their host fails. */
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

/** Lists the hosts that the approvers of an approval stated to be off. */
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
