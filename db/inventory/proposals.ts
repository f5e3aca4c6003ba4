import { newId } from '../../domain/digest.ts'
import type { EventMetadata } from '../../domain/event.ts'
import {
  type AvoidedHost,
  type PlacementProblem,
  type Proposal,
  placementProblem,
  planStep,
} from '../../domain/placement.ts'
import type { Db, Trx } from '../connect.ts'

export async function storeProposal(
  db: Db,
  { isTimeUp: _, triage, ...proposal }: Omit<Proposal, 'id' | 'createdAt'>,
  problem: PlacementProblem,
): Promise<Proposal> {
  const row = await db
    .insertInto('proposal')
    .values({
      ...proposal,
      id: newId('prp'),
      hostIds: JSON.stringify(proposal.hostIds),
      steps: JSON.stringify(proposal.steps),
      proof: JSON.stringify(proposal.proof),
      unplaced: JSON.stringify(proposal.unplaced),
      triage: triage && JSON.stringify(triage),
      obstacle: proposal.obstacle && JSON.stringify(proposal.obstacle),
      standing: proposal.standing && JSON.stringify(proposal.standing),
      problem: JSON.stringify(problem),
    })
    .returning(['id', 'createdAt'])
    .executeTakeFirstOrThrow()
  return { ...proposal, ...(triage && { triage }), ...row }
}

/** A stored step. A step of an older release has no `needs`, so it waits for every earlier step. */
const storedStep = planStep.extend({ needs: planStep.shape.needs.optional(), wave: planStep.shape.wave.optional() })

/** Reads a stored plan of any release; null if the id is unknown. */
export async function proposalById(
  db: Db | Trx,
  id: string,
): Promise<{ proposal: Proposal; problem: PlacementProblem } | null> {
  const row = await db.selectFrom('proposal').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) return null
  const { problem, steps, triage, ...rest } = row
  const stored = storedStep.array().parse(steps)
  return {
    proposal: {
      ...rest,
      ...(triage && { triage }),
      steps: stored.map((step, index) => ({
        ...step,
        needs: step.needs ?? stored.slice(0, index).map((each) => each.step),
        wave: step.wave ?? index + 1,
      })),
    } as Proposal,
    // Parses the stored problem, because problems of older releases lack some rules.
    problem: placementProblem.parse(problem),
  }
}

/** Reads the hosts and VMs of the inventory in the form of a placement problem. */
export async function placementState(db: Db): Promise<Pick<PlacementProblem, 'hosts' | 'vms'>> {
  const hosts = await db.selectFrom('host').selectAll().orderBy('id').execute()
  const vms = await db.selectFrom('vm').selectAll().orderBy('id').execute()
  return {
    hosts: hosts.map((host) => ({
      name: host.id,
      ramMib: host.ramMib,
      cpuMc: host.cpuMc,
      ...(host.ramReserveMib !== null && { ramReserveMib: host.ramReserveMib }),
      ...(host.cpuReserveMc !== null && { cpuReserveMc: host.cpuReserveMc }),
      rack: host.rack,
      region: host.region,
      state: host.state as 'live' | 'draining' | 'dead',
    })),
    vms: vms.map((vm) => ({
      vm: vm.id,
      ramMib: vm.ramMib,
      cpuMc: vm.cpuMc,
      haGroup: vm.haGroup,
      host: vm.host,
      running: vm.running,
      priority: vm.priority,
      pinnedTo: vm.pinnedTo,
      forbiddenHosts: vm.forbiddenHosts,
      affinityGroup: vm.affinityGroup,
    })),
  }
}

/**
 * Lists by VM the hosts on which a step of this incident failed, so that no plan tries them again.
 */
export async function failedPlaces(db: Db, incidentId: string): Promise<AvoidedHost[]> {
  const rows = await db
    .selectFrom('incidentEvent')
    .select(['kind', 'metadata'])
    .where('incidentId', '=', incidentId)
    .where('kind', 'in', ['step_started', 'step_finished'])
    .orderBy('seq')
    .execute()
  const begun = new Map<string, { vm: string; to: string }>()
  const failed = new Map<string, AvoidedHost>()
  for (const { kind, metadata } of rows) {
    const { callId, step } = metadata as EventMetadata['step_started']
    const key = `${callId} ${step}`
    if (kind === 'step_started') begun.set(key, metadata as EventMetadata['step_started'])
    const at = begun.get(key)
    if (kind !== 'step_finished' || !at) continue
    const { status, detail } = metadata as EventMetadata['step_finished']
    const place = `${at.vm} ${at.to}`
    if (status === 'OK') failed.delete(place)
    if (status === 'FAILED') failed.set(place, { vm: at.vm, host: at.to, why: detail.slice(0, maxWhyCharacters) })
  }
  return [...failed.values()]
}

const maxWhyCharacters = 200
