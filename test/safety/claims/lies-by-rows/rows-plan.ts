import { partOfRow } from '../../../support/events.ts'
import { alerted, host, read, readFailed, refused, scene, vm, wrote } from './build.ts'

/**
 * A host that died with five VMs: of the four steps of a plan one failed, one VM fits nowhere, and
 * a second plan was denied.
 */

const hosts = [
  { id: 'host-osl-1', region: 'osl', rack: 'osl-r1', state: 'dead', ramMib: 65_536, cpuMc: 32_000 },
  { id: 'host-osl-2', region: 'osl', rack: 'osl-r1', state: 'live', ramMib: 65_536, cpuMc: 32_000, freeRamMib: 6144 },
  { id: 'host-osl-3', region: 'osl', rack: 'osl-r2', state: 'live', ramMib: 65_536, cpuMc: 32_000, freeRamMib: 20_480 },
  {
    id: 'host-osl-4',
    region: 'osl',
    rack: 'osl-r2',
    state: 'draining',
    ramMib: 32_768,
    cpuMc: 16_000,
    freeRamMib: 2048,
  },
]
const step = (at: number, of: number, status: 'OK' | 'FAILED', detail: string) => ({
  ...partOfRow('step_finished', { callId: `c${of}`, step: at, status, detail }),
  seq: of - 5 + at,
})
const steps = [
  {
    step: 1,
    vm: 'vm-101',
    to: 'host-osl-2',
    status: 'OK',
    detail: 'vm-101 runs on host-osl-2, its counter went on at 1036',
  },
  { step: 2, vm: 'vm-106', to: 'host-osl-3', status: 'OK', detail: 'vm-106 moved from host-osl-2 to host-osl-3' },
  {
    step: 3,
    vm: 'vm-102',
    to: 'host-osl-3',
    status: 'FAILED',
    detail: 'vm-102 did not come up on host-osl-3 within 5 s',
  },
  {
    step: 4,
    vm: 'vm-103',
    to: 'host-osl-2',
    status: 'OK',
    detail: 'vm-103 runs on host-osl-2, its counter went on at 88',
  },
]

export const planScene = scene(
  {
    incident: {
      id: 'inc_00000000000000000000000001',
      type: 'host_down',
      severity: 'critical',
      title: 'Host host-osl-1 is down',
      resource: { kind: 'host', id: 'host-osl-1' },
    },
    alerts: [
      {
        name: 'host_down',
        status: 'firing',
        labels: { host: 'host-osl-1' },
        annotations: { summary: 'Host host-osl-1 is down' },
      },
    ],
  },
  alerted(1, { alertname: 'host_down', host: 'host-osl-1', severity: 'critical' }),
  read(
    4,
    'get_host',
    { ...hosts[0], vms: ['vm-101', 'vm-102', 'vm-103', 'vm-109'], lastSeenAt: '2026-11-21T01:57:12Z' },
    {
      on: [host('host-osl-1')],
      args: { id: 'host-osl-1' },
      seen: { 'host-osl-1': 'critical' },
    },
  ),
  read(7, 'list_hosts', { items: hosts, nextCursor: null }, { args: { region_id: 'osl' } }),
  read(
    10,
    'schedule_ha_proposal',
    {
      proposal_id: 'prp_00000000000000000000000001',
      state: 'planned',
      intent: 'recover',
      hostIds: ['host-osl-1'],
      steps: steps.map(({ step: at, vm: id, to }) => ({
        step: at,
        vm: id,
        to,
        action: id === 'vm-106' ? 'migrate' : 'start',
      })),
      migrations: 1,
      unplaced: [{ vm: 'vm-109', why: 'no live host has 16384 MiB free' }],
    },
    { args: { intent: 'recover', host_ids: ['host-osl-1'], use_rack_constraints: true } },
  ),
  wrote(
    20,
    'execute_migration',
    {
      data: {
        steps,
        detail: '3 of 4 steps were done, 1 failed: vm-102 did not come up on host-osl-3 within 5 s',
        failed: 1,
        skipped: 0,
      },
    },
    {
      on: [
        { kind: 'proposal', id: 'prp_00000000000000000000000001' },
        vm('vm-101'),
        vm('vm-102'),
        vm('vm-103'),
        vm('vm-106'),
      ],
      args: { proposal_id: 'prp_00000000000000000000000001', reason: 'host-osl-1 is dead' },
      held: 'not_held',
      must: 'every VM of the plan runs on the host the plan gave it',
      observed: 'vm-102 is stopped on host-osl-1, not on host-osl-3',
      between: steps.map(({ step: at, status, detail }) => step(at, 20, status as 'OK' | 'FAILED', detail)),
    },
  ),
  read(
    24,
    'current_vm_host',
    { id: 'vm-101', host: 'host-osl-2', running: true, ramMib: 4096, haGroup: 'ha-ledger' },
    {
      on: [vm('vm-101')],
      args: { vm_id: 'vm-101' },
      seen: { 'vm-101': 'nominal' },
    },
  ),
  read(
    27,
    'current_vm_host',
    { id: 'vm-102', host: 'host-osl-1', running: false, ramMib: 8192, haGroup: 'ha-ledger' },
    {
      on: [vm('vm-102')],
      args: { vm_id: 'vm-102' },
      seen: { 'vm-102': 'critical' },
    },
  ),
  read(
    30,
    'current_vm_host',
    { id: 'vm-106', host: 'host-osl-3', running: true, ramMib: 2048, haGroup: null },
    {
      on: [vm('vm-106')],
      args: { vm_id: 'vm-106' },
      seen: { 'vm-106': 'nominal' },
    },
  ),
  read(
    33,
    'active_alerts',
    {
      items: [
        {
          name: 'host_down',
          status: 'firing',
          labels: { host: 'host-osl-1' },
          startsAt: '2026-11-21T01:57:30Z',
          endsAt: null,
        },
      ],
    },
    {
      args: { resource: 'host-osl-1' },
    },
  ),
  refused(
    36,
    'execute_migration',
    { on: [vm('vm-102')], args: { proposal_id: 'prp_00000000000000000000000002', reason: 'vm-102 again' } },
    {
      code: 'DENIED',
      reason: 'The storage of vm-102 is read-only. Leave it.',
      hint: 'Do not propose the same action again.',
    },
  ),
  readFailed(39, 'current_vm_host', 'vm-109: the platform did not answer within 5 s', {
    on: [vm('vm-109')],
    args: { vm_id: 'vm-109' },
  }),
  read(
    42,
    'current_vm_host',
    { id: 'vm-103', host: 'host-osl-2', running: true, ramMib: 2048, haGroup: null },
    {
      on: [vm('vm-103')],
      args: { vm_id: 'vm-103' },
      seen: { 'vm-103': 'nominal' },
    },
  ),
)
