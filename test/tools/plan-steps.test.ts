import { expect, test } from '@jest/globals'
import type { StepVerification } from '../../domain/envelope.ts'
import type { Observation, ToolContext } from '../../domain/tool.ts'
import { partHeld } from '../../safety/claims/parts-held.ts'
import { evidenceOf } from '../../safety/claims/rows.ts'
import { fold } from '../../safety/fold.ts'
import { tools } from '../../tools/registry.ts'
import { changedBy, logOf, partOfRow, verified, wrote } from '../support/events.ts'

const digest = 'a'.repeat(64)
const step = (number: number, vm: string, to: string) => ({
  step: number,
  action: 'start',
  vm,
  from: 'host-1',
  to,
  needs: [],
  wave: 1,
})
const plan = (steps: object[]) => ({
  id: 'prp_0123456789abcdefghjkmnpqrs',
  incidentId: null,
  intent: 'recover',
  hostIds: ['host-1'],
  state: 'planned',
  steps,
  migrations: 0,
  lowerBound: 0,
  proof: { kind: 'trivial' },
  unplaced: [],
  obstacle: null,
  standing: null,
  reason: null,
  planDigest: digest,
  stateFingerprint: digest,
  fromInventory: true,
  createdAt: '2026-11-26T02:00:00Z',
  currentFingerprint: digest,
})

type Vms = Record<string, { host: string; running: boolean }>

/** What a look after the plan shows; a VM that is not given cannot be read. */
async function lookAfter(steps: object[], vms: Vms): Promise<Observation | null> {
  const get = async (path: string) => {
    const vm = vms[path.split('/').at(-1) ?? '']
    if (path.includes('/proposals/')) return { ok: true as const, status: 200, data: plan(steps) }
    return vm
      ? { ok: true as const, status: 200, data: vm }
      : { ok: false as const, status: 503, problem: { title: 'no', detail: 'no' } }
  }
  const { postcondition } = tools.get('execute_migration') ?? {}
  const context = { core: { get } } as unknown as ToolContext
  return (await postcondition?.check({ proposal_id: plan([]).id }, null, context)) ?? null
}

const statuses = (seen: Observation | null) => seen?.steps?.map(({ vm, status }) => `${vm} ${status}`)
const three = [step(1, 'vm-101', 'host-2'), step(2, 'vm-102', 'host-2'), step(3, 'vm-103', 'host-3')]
const up = (host: string) => ({ host, running: true })

test('each step of a plan is read and reported by itself, also if another did not hold', async () => {
  const vms = { 'vm-101': up('host-2'), 'vm-102': up('host-2'), 'vm-103': { host: 'host-1', running: false } }
  const seen = await lookAfter(three, vms)
  expect(seen).toMatchObject({ holds: false, observed: 'vm-103 is stopped on host-1, not on host-3' })
  expect(statuses(seen)).toEqual(['vm-101 held', 'vm-102 held', 'vm-103 not_held'])
})

test('a repair needs all steps, and a VM that cannot be read is unproven', async () => {
  const all = { 'vm-101': up('host-2'), 'vm-102': up('host-2'), 'vm-103': up('host-3') }
  expect(await lookAfter(three, all)).toMatchObject({ holds: true, observed: 'all 3 VMs run where the plan put them' })
  const { 'vm-102': _, ...some } = { ...all, 'vm-103': up('host-2') }
  expect(statuses(await lookAfter(three, some))).toEqual(['vm-101 held', 'vm-102 unproven', 'vm-103 not_held'])
})

test('a step on the way to another host holds if the VM came through, and is otherwise unproven', async () => {
  const way = [step(1, 'vm-101', 'host-2'), step(2, 'vm-101', 'host-3')]
  expect(statuses(await lookAfter(way, { 'vm-101': up('host-3') }))).toEqual(['vm-101 held', 'vm-101 held'])
  expect(statuses(await lookAfter(way, { 'vm-101': up('host-2') }))).toEqual(['vm-101 unproven', 'vm-101 not_held'])
})

test('the steps of a partly failed plan that held may be claimed, and nothing else', () => {
  const proof = (vm: string, status: StepVerification['status']) => ({
    step: 1,
    vm,
    to: 'host-2',
    status,
    observed: vm,
  })
  const row = verified('c2_0', 'not_held')
  const steps = [proof('vm-101', 'held'), proof('vm-103', 'not_held')]
  const rows = logOf(
    wrote('c2_0', [{ kind: 'vm', id: 'vm-101' }]),
    changedBy('c2_0', [], ['vm-101 started on host-2']),
    partOfRow('verification', { ...row.metadata, steps }),
  )
  const [write] = evidenceOf(fold(rows, 1), 'inc_00000000000000000000000001', new Map()).writes
  const isTold = (vm: string) => write !== undefined && partHeld(write, [{ kind: 'name', text: vm }] as never, '')
  expect([isTold('vm-101'), isTold('vm-103')]).toEqual([true, false])
})

test('a model reads the priorities that a certificate covers, and none of its prices, and so does the card', async () => {
  const level = { priority: 5, down: 1, scale: 1, ramUnit: 1, cpuUnit: 1, weights: {}, price: { '1/1': 1 } }
  const partial = {
    ...plan(three),
    state: 'partial',
    unplaced: [{ vm: 'vm-104', reason: 'no room', priority: 5 }],
    triage: { proof: 'certificate', levels: [level] },
  }
  const answer = async () => ({ ok: true as const, status: 200, data: { ...partial, proposal_id: partial.id } })
  const get = async (path: string) =>
    path.includes('/proposals/')
      ? { ok: true as const, status: 200, data: partial }
      : { ok: false as const, status: 503, problem: { title: 'no', detail: 'no' } }
  const context = { core: { post: answer, get }, stepKey: 'k' } as unknown as ToolContext
  const asked = { intent: 'recover', host_ids: ['host-1'], use_rack_constraints: false }
  const told = await tools.get('schedule_ha_proposal')?.run(asked, context)
  expect(told).toMatchObject({ ok: true, data: { triage: { proof: 'certificate', certified: [5] } } })
  const prepared = await tools.get('execute_migration')?.prepare?.({ proposal_id: partial.id, reason: 'r' }, context)
  expect(prepared?.dryRun.details.triage).toEqual({ proof: 'certificate', certified: [5] })
})
