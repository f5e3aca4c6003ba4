import { describe, expect, test } from '@jest/globals'
import { chatRequest, conversationOf } from '../../../lab/runbook/conversation.ts'
import { decide } from '../../../lab/runbook/decide.ts'
import type { RunbookCall } from '../../../lab/runbook/facts.ts'
import { type Alert, type Answer, opening, play } from './investigation.ts'

const lag: Alert = {
  type: 'replication_lag',
  labels: { shard: 'db-osl-1', node: 'node-db-osl-1b' },
  resource: { kind: 'shard', id: 'db-osl-1' },
}
const replica = {
  id: 'node-db-osl-1b',
  role: 'replica',
  status: 'critical',
  reason: 'replica is 42 s behind; process is stopped',
}
const primary = { id: 'node-db-osl-1a', role: 'primary', status: 'nominal', reason: null }
const well: Answer = { data: {} }
const alertsFiring = (firing: number): Answer => ({ data: { id: 'inc_1', alerts: { firing, unknown: 0 } } })

type World = Record<string, Answer | ((call: RunbookCall, nth: number) => Answer)>
const worldOf = (answers: World) => (call: RunbookCall, nth: number) => {
  const answer = answers[call.tool] ?? well
  return typeof answer === 'function' ? answer(call, nth) : answer
}

const laggingShard: World = {
  get_shard: { data: { id: 'db-osl-1', status: 'critical' } },
  list_nodes_by_shard: { data: { items: [primary, replica] } },
  converge_shard: { data: { status: 'done', detail: 'node-db-osl-1b: continued' } },
  node_health: { data: { node: 'node-db-osl-1b', health: 'nominal' } },
  get_node: { data: { ...replica, shard: 'db-osl-1' } },
}
const repaired = [
  'get_shard',
  'list_nodes_by_shard',
  'converge_shard',
  'node_health node-db-osl-1b',
  'resolve_incident repaired',
]
const upToWrite = repaired.slice(0, 3)

describe('replication lag', () => {
  test.each<[string, Alert, World, string[]]>([
    ['a stopped replica is converged, read and resolved', lag, laggingShard, repaired],
    [
      'a follower looks at its own shard, in fewer turns',
      { ...lag, hint: 'converge_shard repaired db-ams-1' },
      laggingShard,
      ['get_shard + list_nodes_by_shard', ...repaired.slice(2)],
    ],
    [
      'what is nominal while its alert fires is for a person, and no fault of mine to declare',
      lag,
      { ...laggingShard, list_nodes_by_shard: { data: [primary] }, get_incident: alertsFiring(1) },
      ['get_shard', 'list_nodes_by_shard', 'get_incident', 'escalate_incident no_fault_found'],
    ],
    [
      'what a check from outside does not reach is converged although it is nominal, and that is called no repair',
      { ...lag, labels: { ...lag.labels, monitor: 'edge-check' } },
      {
        ...laggingShard,
        get_shard: { data: { id: 'db-osl-1', status: 'nominal' } },
        list_nodes_by_shard: { data: [primary] },
        converge_shard: { data: { status: 'done', detail: 'nothing to change' } },
      },
      ['get_shard', 'list_nodes_by_shard', 'converge_shard', 'get_shard', 'escalate_incident alert_goes_on'],
    ],
    [
      'what is nominal when its alert has just ended is said to be over',
      lag,
      { ...laggingShard, list_nodes_by_shard: { data: [primary] }, get_incident: alertsFiring(0) },
      ['get_shard', 'list_nodes_by_shard', 'get_incident', 'resolve_incident self_resolved'],
    ],
    [
      'what has ended by itself is said so',
      { ...lag, status: 'resolved' },
      { ...laggingShard, list_nodes_by_shard: { data: [primary] } },
      ['get_shard', 'list_nodes_by_shard', 'resolve_incident self_resolved'],
    ],
    [
      'a replica that stays behind is read once more, then a person is asked',
      lag,
      { ...laggingShard, node_health: { data: { health: 'critical' } } },
      [...upToWrite, 'node_health node-db-osl-1b', 'get_node', 'escalate_incident'],
    ],
    [
      'a replica that is nominal at the second look is repaired',
      lag,
      { ...laggingShard, node_health: { data: 'degraded' }, get_node: { data: { ...replica, status: 'nominal' } } },
      [...upToWrite, 'node_health node-db-osl-1b', 'get_node', 'resolve_incident repaired'],
    ],
    [
      // The alert's name is not the cause: what the look-up says decides.
      'a full disk behind the alert is treated as a full disk, whatever the hint says',
      { ...lag, hint: 'converge_shard repaired db-ams-1' },
      {
        ...laggingShard,
        list_nodes_by_shard: { data: [{ ...replica, reason: 'disk 131 % of quota' }] },
        get_node: {
          data: {
            ...replica,
            shard: 'db-osl-1',
            diskUsedBytes: 131,
            diskQuotaBytes: 100,
            diskByDirectory: { tenants: 130, tmp: 1 },
          },
        },
      },
      [
        'get_shard + list_nodes_by_shard',
        'get_node',
        'add_incident_event + report_capability_gap remediation',
        'escalate_incident no_tool',
      ],
    ],
  ])('%s', async (_, alert, world, turns) => expect((await play('native', alert, worldOf(world))).turns).toEqual(turns))

  test('in the JSON protocol one call is sent at a time, with the same end', async () => {
    expect((await play('json', { ...lag, hint: 'h' }, worldOf(laggingShard))).turns).toEqual(repaired)
  })

  test('the cause is proposed with the write and supported with the ending, by the quoted words, without an extra turn', async () => {
    const { causes, turns } = await play('native', lag, worldOf(laggingShard))
    const detail = 'node-db-osl-1b is critical: replica is 42 s behind; process is stopped.'
    const record = { incident_id: 'inc_1', action: 'investigated', detail }
    const quotes = [
      { seq: 2, text: '"status":"critical"' },
      { seq: 2, text: '"reason":"replica is 42 s behind; process is stopped"' },
    ]
    expect(causes).toEqual([
      { ...record, hypothesis: 'proposed' },
      { ...record, hypothesis: 'supported', quotes },
    ])
    expect(turns).toEqual(repaired)
    expect((await play('json', lag, worldOf(laggingShard))).causes).toEqual([])
  })

  test('a cause whose repair did not hold is refuted with the words of the read, and an unread cause is left open', async () => {
    const read = { ...laggingShard, node_health: { data: { health: 'critical' } } }
    const converged = { data: { status: 'done', detail: 'node-db-osl-1b: continued' } }
    const failed = { ...converged, verification: { outcome: 'not_held', observed: 'still 42 s behind' } }
    const { causes, turns } = await play('native', lag, worldOf({ ...read, converge_shard: failed }))
    expect(turns.at(-1)).toBe('escalate_incident')
    expect(causes.map(({ hypothesis }) => hypothesis)).toEqual(['proposed', 'refuted'])
    // The fifth row is the look after the write.
    const quotes = [{ seq: 5, text: '"status":"critical"' }]
    expect(causes[1]).toMatchObject({ detail: causes[0]?.detail, quotes })
    const unsure = await play('native', lag, worldOf({ ...read, converge_shard: converged }))
    expect(unsure.turns.at(-1)).toBe('escalate_incident')
    expect(unsure.causes.map(({ hypothesis }) => hypothesis)).toEqual(['proposed'])
  })

  test('claims cite the finding, the write and the read after it', async () => {
    const { calls } = await play('native', lag, worldOf(laggingShard))
    expect(calls.at(-1)!.args.claims).toEqual([
      {
        kind: 'was',
        text: 'node-db-osl-1b was critical: replica is 42 s behind; process is stopped',
        quotes: [
          { seq: 2, text: '"status":"critical"' },
          { seq: 2, text: '"reason":"replica is 42 s behind; process is stopped"' },
        ],
      },
      {
        kind: 'did',
        text: 'node-db-osl-1b: continued',
        quotes: [{ seq: 3, text: '"detail":"node-db-osl-1b: continued"' }],
      },
      { kind: 'is', text: 'node-db-osl-1b nominal after the write', quotes: [{ seq: 4, text: '"health":"nominal"' }] },
    ])
  })
})

describe('after a refused call', () => {
  const refusedOnce =
    (code: string) =>
    (_: RunbookCall, nth: number): Answer =>
      nth === 1 ? { code } : (laggingShard.converge_shard as Answer)
  const always = (code: string, message = ''): Answer => ({ code, message })
  test.each<[string, World, string[]]>([
    [
      'what was not looked up is looked up',
      { converge_shard: refusedOnce('STRICT_RESOLUTION') },
      [...upToWrite, 'find_resource', ...repaired.slice(2)],
    ],
    [
      'what stays unknown is for a person',
      { converge_shard: always('STRICT_RESOLUTION') },
      [...upToWrite, 'find_resource', 'converge_shard', 'escalate_incident'],
    ],
    [
      'a resolution that waits for a verification reads its target',
      {
        resolve_incident: (_, nth) =>
          nth === 1 ? { code: 'FSM_BLOCKED', details: { target: 'shard:db-osl-1' } } : well,
      },
      [...repaired, 'get_shard', 'resolve_incident repaired'],
    ],
    [
      'a busy target is tried twice more, with a look in between',
      { converge_shard: always('TARGET_BUSY') },
      [...upToWrite, 'get_shard', 'converge_shard', 'get_incident', 'converge_shard', 'escalate_incident'],
    ],
    [
      'a pause is for a person',
      { converge_shard: always('PAUSED') },
      [...upToWrite, 'escalate_incident needs_approval'],
    ],
    [
      'a denial is for a person',
      { converge_shard: always('DENIED', 'not tonight') },
      [...upToWrite, 'escalate_incident needs_approval'],
    ],
    [
      'what fails unexpectedly twice is for a person',
      { converge_shard: always('UPSTREAM') },
      [...upToWrite, 'get_incident', 'converge_shard', 'escalate_incident'],
    ],
    [
      'an escalation that is refused is tried once more after a look, then said',
      { converge_shard: always('PAUSED'), escalate_incident: always('NO_DIAGNOSTIC') },
      [
        ...upToWrite,
        'escalate_incident needs_approval',
        'get_incident',
        'converge_shard',
        'escalate_incident needs_approval',
        'answer',
      ],
    ],
  ])('%s', async (_, world, turns) =>
    expect((await play('native', lag, worldOf({ ...laggingShard, ...world }))).turns).toEqual(turns),
  )

  test('a denial is quoted with the denied call', async () => {
    const { calls } = await play(
      'native',
      lag,
      worldOf({ ...laggingShard, converge_shard: always('DENIED', 'not tonight') }),
    )
    expect(calls.at(-1)!.args.reason).toBe('converge_shard db-osl-1 was denied: "not tonight"')
  })
})

describe('an alert that fires again after everything was nominal', () => {
  const ended: Alert = { ...lag, status: 'resolved' }
  const firesAgain: Answer = { code: 'STILL_FIRING', message: 'its alert fires' }
  const looks = ['get_shard', 'list_nodes_by_shard']

  test('is investigated from the beginning, and repaired if a new fault appeared', async () => {
    const world: World = {
      ...laggingShard,
      list_nodes_by_shard: (_, nth) => ({ data: { items: nth === 1 ? [primary] : [primary, replica] } }),
      resolve_incident: (_, nth) => (nth === 1 ? firesAgain : well),
    }
    const { turns } = await play('native', ended, worldOf(world))
    expect(turns).toEqual([...looks, 'resolve_incident self_resolved', ...repaired])
  })

  test('is for a person if everything is still nominal', async () => {
    const world: World = {
      ...laggingShard,
      list_nodes_by_shard: { data: [primary] },
      get_incident: alertsFiring(1),
      resolve_incident: firesAgain,
    }
    const { turns } = await play('native', ended, worldOf(world))
    const end = ['get_incident', 'escalate_incident no_fault_found']
    expect(turns).toEqual([...looks, 'resolve_incident self_resolved', ...looks, ...end])
  })

  test('is for a person if it comes and goes', async () => {
    const world: World = {
      ...laggingShard,
      list_nodes_by_shard: { data: [primary] },
      get_incident: alertsFiring(0),
      resolve_incident: firesAgain,
    }
    const { turns } = await play('native', ended, worldOf(world))
    expect(turns.slice(-3)).toEqual([
      'get_incident',
      'resolve_incident self_resolved',
      'escalate_incident no_fault_found',
    ])
  })
})

describe('disk pressure', () => {
  const alert: Alert = { type: 'disk_pressure', labels: { shard: 'web-osl-1', node: 'node-web-osl-1a' } }
  const node = (diskByDirectory: Record<string, number>, status = 'critical'): Answer => ({
    data: {
      id: 'node-web-osl-1a',
      role: 'web',
      shard: 'web-osl-1',
      status,
      reason: 'disk 131 % of quota',
      diskUsedBytes: 131,
      diskQuotaBytes: 100,
      diskByDirectory,
    },
  })
  const world = { node_health: { data: 'nominal' } }
  test.each<[string, Alert, World, string[]]>([
    [
      'temporary files are cleared',
      alert,
      { get_node: node({ tmp: 121, tenants: 10 }) },
      ['get_node', 'get_shard', 'converge_shard', 'node_health node-web-osl-1a', 'resolve_incident repaired'],
    ],
    [
      'a follower sees node and shard at once',
      { ...alert, hint: 'temporary files; converge_shard' },
      { get_node: node({ logs: 100, tenants: 31 }) },
      ['get_node + get_shard', 'converge_shard', 'node_health node-web-osl-1a', 'resolve_incident repaired'],
    ],
    [
      'a tenant’s bytes are for a person, whatever the hint says',
      { ...alert, hint: 'temporary files; converge_shard' },
      { get_node: node({ tmp: 11, tenants: 120 }) },
      ['get_node + get_shard', 'add_incident_event + report_capability_gap remediation', 'escalate_incident no_tool'],
    ],
    [
      'a disk with room whose alert fires is for a person',
      alert,
      { get_node: node({ tmp: 1 }, 'nominal'), get_incident: alertsFiring(1) },
      ['get_node', 'get_incident', 'escalate_incident no_fault_found'],
    ],
  ])('%s', async (_, alert, answers, turns) =>
    expect((await play('native', alert, worldOf({ ...world, ...answers }))).turns).toEqual(turns),
  )
})

describe('a host that is down', () => {
  const alert: Alert = {
    type: 'host_down',
    labels: { host: 'host-osl-1' },
    resource: { kind: 'host', id: 'host-osl-1' },
  }
  const to = { 'vm-101': 'host-osl-4', 'vm-102': 'host-ams-1' }
  const plan = (id: string, places: Record<string, string>): Answer => ({
    data: {
      proposal_id: id,
      state: 'planned',
      migrations: 0,
      steps: Object.entries(places).map(([vm, host], i) => ({
        step: i + 1,
        action: 'start',
        vm,
        from: 'host-osl-1',
        to: host,
      })),
    },
  })
  const apart = { ...to, 'vm-101': 'host-osl-2' }
  const where =
    (places: Record<string, string>) =>
    (call: RunbookCall): Answer => ({ data: { vm: call.args.vm, host: places[String(call.args.vm)], running: true } })
  const denied =
    (message: string, details?: Record<string, unknown>) =>
    (_: RunbookCall, nth: number): Answer =>
      nth === 1 ? { code: 'DENIED', message, ...(details && { details }) } : well
  const start = ['find_resource', 'schedule_ha_proposal false', 'execute_migration p1']
  const looks = 'current_vm_host vm-101 + current_vm_host vm-102'
  test.each<[string, World, string[]]>([
    [
      'its VMs are started elsewhere and looked at, and the host itself is for a person',
      { schedule_ha_proposal: plan('p1', to), current_vm_host: where(to) },
      [...start, looks, 'escalate_incident mitigated'],
    ],
    [
      'a denial that asks for racks leads to another plan',
      {
        schedule_ha_proposal: (call) => (call.args.use_rack_constraints ? plan('p2', apart) : plan('p1', to)),
        execute_migration: denied('both ledgers in one rack'),
        current_vm_host: where(apart),
      },
      [...start, 'schedule_ha_proposal true', 'execute_migration p2', looks, 'escalate_incident mitigated'],
    ],
    [
      // Another id, the same moves: it would be the same question again.
      'the same plan is never proposed again',
      {
        schedule_ha_proposal: (call) => (call.args.use_rack_constraints ? plan('p2', to) : plan('p1', to)),
        execute_migration: denied('mind the racks'),
      },
      [...start, 'schedule_ha_proposal true', 'escalate_incident needs_approval'],
    ],
    [
      'a denial for any other reason leads to another plan where there is one',
      {
        schedule_ha_proposal: (call) => (call.args.use_rack_constraints ? plan('p2', apart) : plan('p1', to)),
        execute_migration: denied('I do not like this one'),
        current_vm_host: where(apart),
      },
      [...start, 'schedule_ha_proposal true', 'execute_migration p2', looks, 'escalate_incident mitigated'],
    ],
    [
      'another plan that uses the host which the denial names is not proposed',
      {
        schedule_ha_proposal: (call) => (call.args.use_rack_constraints ? plan('p2', apart) : plan('p1', to)),
        execute_migration: denied('osl-2 is about to be serviced'),
      },
      [...start, 'schedule_ha_proposal true', 'escalate_incident needs_approval'],
    ],
    [
      'a denial of the moment is for a person, since any plan would be denied',
      { schedule_ha_proposal: plan('p1', to), execute_migration: denied('wait for the morning') },
      [...start, 'escalate_incident needs_approval'],
    ],
    [
      'so is one whose category says that the time is wrong, whatever its words are',
      {
        schedule_ha_proposal: (call) => (call.args.use_rack_constraints ? plan('p2', apart) : plan('p1', to)),
        execute_migration: denied('backups run until four', { category: 'wrong_time' }),
      },
      [...start, 'escalate_incident needs_approval'],
    ],
    [
      'a plan that does not exist is for a person',
      {
        schedule_ha_proposal: { data: { proposal_id: 'p1', state: 'infeasible', steps: [], reason: 'not enough RAM' } },
      },
      [...start.slice(0, 2), 'escalate_incident no_tool'],
    ],
    [
      'a dead host with nothing to move is still dead',
      { schedule_ha_proposal: { data: { proposal_id: 'p1', state: 'no_action', steps: [] } } },
      [...start.slice(0, 2), 'escalate_incident no_tool'],
    ],
    [
      'a VM that is not where it should be is for a person',
      { schedule_ha_proposal: plan('p1', to), current_vm_host: where({ ...to, 'vm-102': 'host-osl-1' }) },
      [...start, looks, 'escalate_incident'],
    ],
  ])('%s', async (_, world, turns) => expect((await play('native', alert, worldOf(world))).turns).toEqual(turns))
})

describe('a host whose plan has no place for all VMs, and a host to drain', () => {
  const alert = (host: string, rest: Partial<Alert> = {}): Alert => ({
    type: 'host_down',
    labels: { alertname: 'host_down', host, rack: 'osl-r1' },
    resource: { kind: 'host', id: host },
    ...rest,
  })
  const step = (vm: string, to: string, action = 'start') => ({ step: 1, action, vm, from: 'host-osl-1', to })
  const unplaced = [{ vm: 'vm-104', reason: 'host-osl-3 is short of 6144 MiB' }]
  const obstacle = {
    text: 'The RAM of host-osl-3 and host-osl-4 does not suffice.',
    core: [],
    repairs: [
      { kind: 'more_ram', text: '6144 MiB more on host-osl-3' },
      { kind: 'leave_down', text: 'vm-104 left down' },
    ],
  }
  const planned = (state: string, steps: object[], rest: object = {}): Answer => ({
    data: { proposal_id: 'p1', state, steps, unplaced: [], obstacle: null, ...rest },
  })
  const at = (call: RunbookCall): Answer => ({ data: { vm: call.args.vm, host: 'host-osl-4', running: true } })
  const reasonOf = (calls: RunbookCall[]) => String(calls.at(-1)!.args.reason)

  test('a partial plan is proposed with the VMs that stay down, and after it a person is told', async () => {
    const world = {
      schedule_ha_proposal: planned(
        'partial',
        [{ ...step('vm-108', 'host-osl-4', 'migrate'), from: 'host-osl-3' }, step('vm-101', 'host-osl-4')],
        { unplaced, obstacle },
      ),
      current_vm_host: at,
    }
    const { turns, calls } = await play('native', alert('host-osl-1'), worldOf(world))
    expect(turns.slice(1)).toEqual([
      'schedule_ha_proposal false',
      'execute_migration p1',
      'current_vm_host vm-101 + current_vm_host vm-108',
      'escalate_incident no_tool',
    ])
    expect(reasonOf(calls)).toBe(
      'host-osl-1 is down; 1 VM started elsewhere, and 1 moved to make room: vm-101 on host-osl-4, vm-108 on host-osl-4. 1 VM ' +
        'stays down: vm-104. The RAM of host-osl-3 and host-osl-4 does not suffice.',
    )
    expect(calls.at(-1)!.args.next_step).toBe('What would help: 6144 MiB more on host-osl-3.')
  })

  test('a plan that was stopped is planned and asked about again', async () => {
    const world: World = {
      schedule_ha_proposal: (_call, nth) => ({
        data: {
          proposal_id: `p${nth}`,
          state: 'planned',
          steps: [step('vm-101', `host-osl-${5 - nth}`)],
          unplaced: [],
        },
      }),
      execute_migration: (_call, nth) => ({
        data:
          nth === 1
            ? {
                steps: [{ step: 1, vm: 'vm-101', status: 'SKIPPED', detail: 'host-osl-4 is dead now' }],
                next_proposal_id: 'p9',
              }
            : { steps: [{ step: 1, vm: 'vm-101', status: 'OK', detail: 'runs' }] },
      }),
      current_vm_host: (call) => ({ data: { vm: call.args.vm, host: 'host-osl-3', running: true } }),
    }
    const { turns } = await play('native', alert('host-osl-1'), worldOf(world))
    expect(turns.slice(1)).toEqual([
      'schedule_ha_proposal false',
      'execute_migration p1',
      'schedule_ha_proposal false',
      'execute_migration p2',
      'current_vm_host vm-101',
      'escalate_incident mitigated',
    ])
  })

  test('if nothing can be placed a person is told which VMs stay down and what would help', async () => {
    const world = { schedule_ha_proposal: planned('infeasible', [], { unplaced, obstacle }) }
    const { turns, calls } = await play('native', alert('host-osl-1'), worldOf(world))
    expect(turns.slice(1)).toEqual(['schedule_ha_proposal false', 'escalate_incident no_tool'])
    expect(reasonOf(calls)).toMatch(
      /^There is no plan to recover host-osl-1 \(infeasible\)\. 1 VM stays down: vm-104\. /,
    )
    expect(calls.at(-1)!.args.next_step).toContain('6144 MiB more on host-osl-3')
  })

  test('a failed step is named to a person, also if it is none of those that were read', async () => {
    const vms = ['vm-101', 'vm-102', 'vm-103', 'vm-104']
    const world = {
      schedule_ha_proposal: planned(
        'planned',
        vms.map((vm) => step(vm, 'host-osl-4')),
      ),
      execute_migration: {
        data: {
          steps: vms.map((vm, i) => ({
            step: i + 1,
            vm,
            status: i < 3 ? 'OK' : 'FAILED',
            detail: `${vm} came up or not`,
          })),
        },
      },
      current_vm_host: at,
    }
    const { turns, calls } = await play('native', alert('host-osl-1'), worldOf(world))
    expect(turns.at(-1)).toBe('escalate_incident')
    expect(reasonOf(calls)).toBe(
      'The plan to recover host-osl-1 was carried out, but step 4 failed (vm-104 came up or not).',
    )
  })

  test('hosts of one rack that died together are recovered by one plan, and others by their own', async () => {
    const neighbours = ['vm-101', 'host-osl-2', 'host-osl-3', 'host-ams-1'].map((id) => ({
      kind: id.startsWith('vm') ? 'vm' : 'host',
      id,
    }))
    const firing = (host: string, rack: string, status = 'firing') => ({
      data: { items: [{ name: 'host_down', status, labels: { host, rack } }] },
    })
    const alerts: Record<string, Answer> = {
      'host-osl-2': firing('host-osl-2', 'osl-r1'),
      'host-osl-3': firing('host-osl-3', 'osl-r2'),
      'host-ams-1': { data: { items: [] } },
    }
    const world = {
      active_alerts: (call: RunbookCall) => alerts[String(call.args.resource)]!,
      schedule_ha_proposal: planned('no_action', []),
    }
    for (const protocol of ['native', 'json'] as const) {
      const { calls } = await play(protocol, alert('host-osl-1', { neighbours }), worldOf(world))
      const plans = calls.filter(({ tool }) => tool === 'schedule_ha_proposal')
      expect(plans.map(({ args }) => args.host_ids)).toEqual([['host-osl-1', 'host-osl-2']])
      expect(calls.at(-1)!.args).toMatchObject({
        category: 'no_tool',
        reason: 'Nothing on host-osl-1 and host-osl-2 needs a new place.',
        next_step: 'Repair host-osl-1 and host-osl-2: their alerts fire until then.',
      })
    }
    alerts['host-osl-2'] = firing('host-osl-2', 'osl-r1', 'resolved')
    const { calls } = await play('native', alert('host-osl-1', { neighbours }), worldOf(world))
    expect(calls.find(({ tool }) => tool === 'schedule_ha_proposal')!.args.host_ids).toEqual(['host-osl-1'])
  })

  test('a host to drain has its VMs migrated live', async () => {
    const world = {
      schedule_ha_proposal: planned('planned', [{ ...step('vm-107', 'host-osl-4', 'migrate'), from: 'host-osl-3' }]),
      current_vm_host: at,
    }
    const { turns, calls } = await play('native', alert('host-osl-3', { type: 'host_draining' }), worldOf(world))
    expect(turns).toEqual([
      'find_resource',
      'schedule_ha_proposal false',
      'execute_migration p1',
      'current_vm_host vm-107',
      'resolve_incident repaired',
    ])
    expect(calls[1]!.args).toMatchObject({ intent: 'drain', host_ids: ['host-osl-3'] })
    expect(calls.at(-1)!.args.resolution).toBe(
      'host-osl-3 is to be emptied; 1 VM moved elsewhere while running: vm-107 on host-osl-4.',
    )
  })
})

describe('everything else', () => {
  test('a question is answered in prose, with its evidence', async () => {
    const { turns, last } = await play(
      'native',
      { type: 'question', title: 'How is node-db-osl-1b?' },
      worldOf({ get_node: { data: replica } }),
    )
    expect(turns).toEqual(['find_resource', 'get_node', 'answer'])
    expect(last).toMatchObject({
      answer: {
        summary: 'node-db-osl-1b: critical, replica is 42 s behind; process is stopped (evidence: 2).',
        confidence: 'high',
      },
    })
  })

  test('a type without a runbook is read and escalated', async () => {
    const { turns } = await play('native', { type: 'fan_noise' }, worldOf({}))
    expect(turns).toEqual(['get_incident', 'escalate_incident no_tool'])
  })

  test('a rule table that is corrected twice escalates', async () => {
    const corrections = [1, 2].map(() => ({ role: 'user', content: 'CORRECTION: that is not a tool' }))
    const request = chatRequest.parse({ model: 'runbook-rules', messages: [...opening(lag), ...corrections] })
    expect(decide(conversationOf(request))).toMatchObject({ calls: [{ tool: 'escalate_incident' }] })
  })

  test('without a context there is nothing to decide', async () => {
    const request = chatRequest.parse({ model: 'runbook-rules', messages: [{ role: 'user', content: 'hello' }] })
    expect(decide(conversationOf(request))).toMatchObject({ answer: { confidence: 'low' } })
  })
})

test('the table first reads the resource that a person named in a message, once', () => {
  const content = 'anna writes.\n<<<DATA person_message\nLook at node-db-osl-1a and vm-7 first.\nDATA>>>'
  const told = chatRequest.parse({ model: 'runbook-rules', messages: [...opening(lag), { role: 'user', content }] })
  const first = decide(conversationOf(told))
  expect(first).toMatchObject({ calls: [{ tool: 'get_node', args: { id: 'node-db-osl-1a' } }] })
  const looked = { turn: 1, tool: 'get_node', args: { id: 'node-db-osl-1a' }, result: null }
  const next = decide({ ...conversationOf(told), steps: [looked] })
  expect(next).toMatchObject({ calls: [{ tool: 'current_vm_host', args: { vm: 'vm-7' } }] })
})
