import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { Proposal } from '../../domain/placement.ts'
import { asked } from '../api/announced.ts'
import { claimedIncident } from '../support/database.ts'
import type { Spine } from '../support/spine.ts'

/** An approval of a plan with migrations that leaves a VM down: the example's cluster with two dead hosts. Answers its id. */
export async function planAsked(spine: Spine): Promise<string> {
  const file = parse(readFileSync('examples/placement.yaml', 'utf8')) as { hosts: { name: string; state?: string }[] }
  const dead = ['host-1', 'host-2']
  const problem = {
    ...file,
    hosts: file.hosts.map((host) => (dead.includes(host.name) ? { ...host, state: 'dead' } : host)),
  }
  const question = { intent: 'recover', host_ids: dead, use_rack_constraints: true, problem }
  const { status, body } = await spine.post('/placement/proposals', question)
  if (status !== 201) throw new Error(`no plan was made: ${JSON.stringify(body)}`)
  const plan = body as unknown as Proposal
  const { state, steps, migrations, lowerBound, unplaced, standing } = plan
  const dryRun = {
    possible: true,
    summary: 'start 3 VMs and migrate 1 VM, to host-3, host-4; 1 VM stays down',
    details: {
      ...{ proposalId: plan.id, intent: plan.intent, hosts: dead, state, steps, migrations, lowerBound, unplaced },
      ...{ proof: plan.proof.kind, obstacle: plan.obstacle?.text ?? null, standing },
    },
  }
  const incidentId = await claimedIncident(spine.db, { title: 'Hosts host-1 and host-2 are down' })
  const vms = steps.map(({ vm }) => ({ kind: 'vm' as const, id: vm }))
  const id = await asked(spine.db, incidentId, { targets: vms })
  await spine.db
    .updateTable('approval')
    .set({
      args: JSON.stringify({ proposal_id: plan.id, reason: 'the hosts are dead' }),
      dryRun: JSON.stringify(dryRun),
    })
    .where('id', '=', id)
    .execute()
  return id
}
