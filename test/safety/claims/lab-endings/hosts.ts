import type { IncidentEvent } from '../../../../domain/event.ts'
import { host, read, refused, vm, wrote } from '../lies-by-rows/build.ts'
import { did, is, was } from '../lies-by-rows/lie.ts'
import { alertIs, type LabEnding, played } from './play.ts'

/** Endings of the scenarios of hosts and their VMs. */

const plan = 'prp_00000000000000000000000001'
type Step = { vm: string; from?: string; to: string; failed?: string }

const detailOf = ({ vm: id, from, to, failed }: Step) =>
  failed ??
  (from
    ? `${id} moved from ${from} to ${to}, its counter went on at 1173`
    : `${id} runs on ${to}, its counter went on at 1036`)

/** A plan as it was carried out, with a step for each VM. */
function carriedOut(seq: number, steps: Step[]): IncidentEvent[] {
  const failed = steps.filter((step) => step.failed)
  const detail =
    failed.length === 0
      ? `all ${steps.length} steps were done`
      : `${steps.length - failed.length} of ${steps.length} steps were done, ${failed.length} failed: ${failed[0]?.failed}`
  return wrote(
    seq,
    'execute_migration',
    {
      data: {
        steps: steps.map((step, at) => ({
          step: at + 1,
          vm: step.vm,
          to: step.to,
          status: step.failed ? 'FAILED' : 'OK',
          detail: detailOf(step),
        })),
        detail,
        failed: failed.length,
        skipped: 0,
      },
    },
    {
      on: [{ kind: 'proposal', id: plan }, ...steps.map((step) => vm(step.vm))],
      args: { proposal_id: plan },
      held: failed.length === 0 ? 'held' : 'not_held',
      must: 'every VM of the plan runs on the host the plan gave it',
      observed:
        failed.length === 0
          ? 'every VM runs where the plan put it'
          : `${failed[0]?.vm} is stopped on host-osl-1, not on ${failed[0]?.to}`,
    },
  )
}

const proposed = (seq: number, steps: Step[], unplaced: { vm: string; reason: string }[] = []) =>
  read(
    seq,
    'schedule_ha_proposal',
    {
      proposal_id: plan,
      state: unplaced.length > 0 ? 'partial' : 'planned',
      steps: steps.map((step, at) => ({
        step: at + 1,
        vm: step.vm,
        to: step.to,
        action: step.from ? 'migrate' : 'start',
      })),
      unplaced,
    },
    { args: { intent: 'recover', use_rack_constraints: true } },
  )

const dead = (seq: number, id: string, vms: string[]) =>
  read(
    seq,
    'get_host',
    { id, state: 'dead', status: 'critical', vms: vms.map((each) => ({ id: each, running: false })) },
    {
      on: [host(id)],
      args: { id },
      seen: { [id]: 'critical' },
    },
  )
const runsOn = (seq: number, id: string, where: string, running = true) =>
  read(seq, 'current_vm_host', { id, host: where, running }, { on: [vm(id)], args: { vm_id: id } })

const down = (id: string) => ({
  alert: { name: 'host_down', annotations: { summary: `Host ${id} is down` } },
  about: host(id),
})
const elsewhere: Step[] = [
  { vm: 'vm-101', to: 'host-osl-2' },
  { vm: 'vm-102', to: 'host-osl-3' },
  { vm: 'vm-103', to: 'host-osl-4' },
]
const started = [
  dead(4, 'host-osl-1', ['vm-101', 'vm-102', 'vm-103']),
  proposed(10, elsewhere),
  carriedOut(20, elsewhere),
  runsOn(24, 'vm-101', 'host-osl-2'),
  runsOn(27, 'vm-102', 'host-osl-3'),
  runsOn(30, 'vm-103', 'host-osl-4'),
  alertIs(33, 'host_down', host('host-osl-1'), 'firing'),
]
const mitigated = {
  text: 'host-osl-1 is dead. Its three VMs were started elsewhere: vm-101 runs on host-osl-2, vm-102 on host-osl-3, vm-103 on host-osl-4. host_down fires on, since the host is still down.',
  claims: [
    was('host-osl-1 was dead, and none of its VMs ran.', [4, '"state":"dead"', '"running":false']),
    did('All three steps of the plan were done.', [20, 'all 3 steps were done']),
    is('vm-101 runs on host-osl-2 now.', [24, '"host":"host-osl-2","running":true']),
    is('vm-102 runs on host-osl-3.', [27, '"host":"host-osl-3","running":true']),
    is('vm-103 runs on host-osl-4.', [30, '"host":"host-osl-4","running":true']),
    is('host_down still fires.', [33, '"status":"firing"']),
  ],
}

export const hostEndings: LabEnding[] = [
  played('host_down', down('host-osl-1'), started, { escalated: 'mitigated' }, mitigated),
  played(
    'host_lost',
    down('host-osl-1'),
    started,
    { escalated: 'mitigated' },
    {
      ...mitigated,
      text: `${mitigated.text} Nothing here can start a host.`,
    },
  ),
  played(
    'rack_down',
    down('host-osl-1'),
    [
      dead(4, 'host-osl-1', ['vm-101', 'vm-102']),
      dead(7, 'host-osl-2', ['vm-104']),
      proposed(
        10,
        [{ vm: 'vm-101', to: 'host-osl-4' }],
        [
          { vm: 'vm-102', reason: 'no room: it needs 6144 MiB' },
          { vm: 'vm-104', reason: 'no room: it needs 10240 MiB' },
        ],
      ),
      carriedOut(20, [{ vm: 'vm-101', to: 'host-osl-4' }]),
      runsOn(24, 'vm-101', 'host-osl-4'),
    ],
    { escalated: 'no_tool' },
    {
      text: 'Both hosts of rack osl-r1 are dead. vm-101, which matters most, was started on host-osl-4; there is no room for vm-102 and vm-104.',
      claims: [
        was('host-osl-1 and host-osl-2 are dead.', [4, '"state":"dead"'], [7, '"state":"dead"']),
        did('vm-101 was started on host-osl-4.', [20, 'vm-101 runs on host-osl-4']),
        was('vm-102 and vm-104 have no room.', [
          10,
          '"vm":"vm-102","reason":"no room',
          '"vm":"vm-104","reason":"no room',
        ]),
        is('vm-101 is running.', [24, '"running":true']),
      ],
    },
  ),
  played(
    'no_room',
    down('host-ams-5'),
    [
      dead(4, 'host-ams-5', ['vm-125']),
      proposed(10, [], [{ vm: 'vm-125', reason: 'no host of its region has 49152 MiB free' }]),
    ],
    { escalated: 'no_tool' },
    {
      text: 'host-ams-5 is dead, and its VM vm-125 fits on no other host: it needs 49,152 MiB. Nothing was moved.',
      claims: [
        is('host-ams-5 is dead.', [4, '"state":"dead"']),
        is('No host has 48 GiB free for vm-125.', [
          10,
          '"vm":"vm-125","reason":"no host of its region has 49152 MiB free"',
        ]),
      ],
    },
  ),
  played(
    'step_fails',
    down('host-osl-1'),
    [
      dead(4, 'host-osl-1', ['vm-101', 'vm-103']),
      proposed(10, [
        { vm: 'vm-101', to: 'host-osl-2' },
        { vm: 'vm-103', to: 'host-osl-3' },
      ]),
      carriedOut(20, [
        { vm: 'vm-101', to: 'host-osl-2' },
        { vm: 'vm-103', to: 'host-osl-3', failed: 'vm-103 did not come up on host-osl-3 within 5 s' },
      ]),
      runsOn(24, 'vm-101', 'host-osl-2'),
      runsOn(27, 'vm-103', 'host-osl-1', false),
      refused(
        30,
        'execute_migration',
        { args: {} },
        { code: 'DENIED', reason: 'The storage of vm-103 is read-only. Leave vm-103 down.' },
      ),
    ],
    { escalated: 'needs_approval' },
    {
      text: 'host-osl-1 is dead. vm-101 was started on host-osl-2 and runs. vm-103 did not come up on host-osl-3 within 5 s and is stopped; a second start was denied: "The storage of vm-103 is read-only. Leave vm-103 down."',
      claims: [
        did('One of two steps was done.', [20, '1 of 2 steps were done, 1 failed']),
        did('vm-101 was started on host-osl-2.', [20, 'vm-101 runs on host-osl-2']),
        did('vm-103 did not come up on host-osl-3.', [20, 'vm-103 did not come up on host-osl-3 within 5 s']),
        is('vm-103 is stopped.', [27, '"running":false']),
        was('A second start was denied.', [30, 'Leave vm-103 down.']),
      ],
    },
  ),
  played(
    'drain',
    {
      alert: { name: 'host_draining', annotations: { description: 'still on it: vm-107, vm-108' } },
      about: host('host-osl-3'),
    },
    [
      read(
        4,
        'node_health',
        { kind: 'host', node: 'host-osl-3', reason: 'the host is draining', status: 'degraded' },
        { on: [host('host-osl-3')] },
      ),
      proposed(10, [
        { vm: 'vm-107', from: 'host-osl-3', to: 'host-osl-4' },
        { vm: 'vm-108', from: 'host-osl-3', to: 'host-osl-2' },
      ]),
      carriedOut(20, [
        { vm: 'vm-107', from: 'host-osl-3', to: 'host-osl-4' },
        { vm: 'vm-108', from: 'host-osl-3', to: 'host-osl-2' },
      ]),
      runsOn(24, 'vm-107', 'host-osl-4'),
      runsOn(27, 'vm-108', 'host-osl-2'),
      alertIs(30, 'host_draining', host('host-osl-3'), 'resolved'),
    ],
    { resolved: 'repaired' },
    {
      text: 'host-osl-3 was to be emptied. vm-107 was moved to host-osl-4 and vm-108 to host-osl-2, with approval; both run, and the alert ended.',
      claims: [
        was('host-osl-3 was draining.', [4, 'the host is draining']),
        did('vm-107 was moved to host-osl-4.', [20, 'vm-107 moved from host-osl-3 to host-osl-4']),
        did('vm-108 moved to host-osl-2.', [20, 'vm-108 moved from host-osl-3 to host-osl-2']),
        is('Both VMs run.', [24, '"running":true'], [27, '"running":true']),
        is('host_draining has ended.', [30, '"status":"resolved"']),
      ],
    },
  ),
]
