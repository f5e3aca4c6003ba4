import { newId } from '../domain/id.ts'
import type { PlacementProblem, PlanStep, Proposal } from '../domain/placement.ts'
import type { Db, Trx } from './connect.ts'

export async function storeProposal(
  db: Db,
  proposal: Omit<Proposal, 'id' | 'createdAt'>,
  problem: PlacementProblem,
): Promise<Proposal> {
  const row = await db
    .insertInto('proposal')
    .values({
      ...proposal,
      id: newId('prp'),
      hostIds: JSON.stringify(proposal.hostIds),
      steps: JSON.stringify(proposal.steps),
      problem: JSON.stringify(problem),
    })
    .returning(['id', 'createdAt'])
    .executeTakeFirstOrThrow()
  return { ...proposal, ...row }
}

export async function proposalById(
  db: Db | Trx,
  id: string,
): Promise<{ proposal: Proposal; problem: PlacementProblem } | null> {
  const row = await db.selectFrom('proposal').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) return null
  const { problem, steps, ...rest } = row
  return {
    proposal: { ...rest, steps: steps as PlanStep[] } as Proposal,
    problem: problem as PlacementProblem,
  }
}

/** Hosts and VMs of the inventory as a placement problem sees them. */
export async function placementState(db: Db): Promise<Pick<PlacementProblem, 'hosts' | 'vms'>> {
  const hosts = await db.selectFrom('host').selectAll().orderBy('id').execute()
  const vms = await db.selectFrom('vm').selectAll().orderBy('id').execute()
  return {
    hosts: hosts.map((host) => ({
      name: host.id,
      ramMib: host.ramMib,
      cpuMc: host.cpuMc,
      rack: host.rack,
      state: host.state as 'live' | 'draining' | 'dead',
    })),
    vms: vms.map((vm) => ({
      vm: vm.id,
      ramMib: vm.ramMib,
      cpuMc: vm.cpuMc,
      haGroup: vm.haGroup,
      host: vm.host,
      running: vm.running,
    })),
  }
}
