import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { plainApproval } from '../../api/routes/approval-html.ts'
import { formatApproval } from '../../cli/approvals/card.ts'
import { type Approval, approval as schema } from '../../domain/approval.ts'
import { type Proof, verificationOutcomes } from '../../domain/envelope.ts'
import { formatVerification } from '../../domain/format-approval.ts'
import type { Incident } from '../../domain/incident.ts'
import { type InventoryKind, inventoryKinds } from '../../domain/kinds.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import { mostSaidCharacters, sayResult } from '../../domain/say.ts'
import type { CorePort, Envelope } from '../../domain/tool.ts'
import { validArguments } from '../../domain/valid-call.ts'
import { describeTools } from '../../model/describe-tools.ts'
import { renderCard } from '../../notify/slack/card.ts'
import { keepTopics, noFacts, readPrompts, renderSystemPrompt, topicsOf } from '../../prompts/render.ts'
import { fold } from '../../safety/fold.ts'
import { judge } from '../../safety/judge.ts'
import { sourceKinds } from '../../sources/kinds.ts'
import { describedTools, describeTool, splitTools, toolFacts, tools, unfoldNames } from '../../tools/registry.ts'

describe('tools', () => {
  const everyDevice = { mode: 'all' as const, toolsAllowed: [], terms: { capabilities: [] }, health: null }

  describe('converge', () => {
    const node = (id: string, more = {}) => ({
      id,
      hostname: id,
      ip: '10.0.0.1',
      shard: 's',
      status: 'degraded',
      ...more,
    })

    /** What an approval of a converge is bound to while the shard has these nodes. */
    async function boundTo(items: object[]): Promise<string | undefined> {
      const core: CorePort = {
        get: async () => ({ ok: true, status: 200, data: { items } }),
        post: async () => ({ ok: false, status: 503, problem: { title: 'no', detail: 'no' } }),
      }
      const prepared = await tools.get('converge_shard')?.prepare?.({ id: 's', reason: 'x' }, { core } as never)
      return prepared?.stateFingerprint
    }

    test('a converge that was approved for nodes is not approved for others under the name of the shard or of a node', async () => {
      const approved = await boundTo([node('a'), node('b')])
      expect(await boundTo([node('b', { status: 'nominal' }), node('a')])).toBe(approved)
      for (const now of [[node('a')], [node('a'), node('b'), node('c')], [node('a'), node('b', { ip: '10.0.0.9' })]]) {
        expect(await boundTo(now)).not.toBe(approved)
      }
    })
  })

  describe('parameters', () => {
    test.each([...tools.values()].map((tool) => [tool.name, tool] as const))(
      '%s says of each what it is, and a call can be made up by its schema',
      (_name, tool) => {
        const { properties } = describeTool(tool).inputSchema
        const silent = Object.entries(properties ?? {}).filter(([, about]) => !('description' in about))
        expect(silent.map(([field]) => field)).toEqual([])
        expect(tool.input.safeParse(validArguments(tool.input, null)).error?.issues).toBeUndefined()
      },
    )

    test('a call that does not fit is answered with one that does, and keeps what fits of it', () => {
      const asked = { callId: 'c1_0', tool: 'proc_kill', arguments: { pid: 7110, on: 'web-7', sig: 'TERM' } }
      const call = { ...asked, problem: null, prepared: null }
      const { code, hint } = judge(call, toolFacts, fold([], 1), plainPolicy('inc_1', null), 0)
      expect(code).toBe('INVALID_ARGUMENTS')
      const shown = JSON.parse(/as proc_kill (\{.*\})\.$/.exec(hint ?? '')?.[1] ?? '{}')
      expect(shown).toMatchObject({ pid: 7110, on: 'web-7', start_time: '236692' })
      expect(tools.get('proc_kill')?.input.safeParse(shown).success).toBe(true)
    })
  })

  describe('first turn', () => {
    const device = everyDevice
    const everything = describedTools(null, [device], [...sourceKinds.keys()], { changes: true, jobs: true })
    const prompts = readPrompts()
    const names = (list: { name: string }[]) => list.map(({ name }) => name)

    describe('the first turn', () => {
      test.each([...inventoryKinds, null])('every tool is offered or named by more_tools, for %s', (kind) => {
        const { first, more } = splitTools(everything, kind)
        expect([...names(first), ...names(more)].sort()).toEqual([...names(everything), 'more_tools'].sort())
        const listed = first.find(({ name }) => name === 'more_tools')?.description ?? ''
        const told = /There are: (.*)\.$/.exec(listed)?.[1]?.split(', ') ?? []
        expect(unfoldNames(told).sort()).toEqual(names(more).sort())
      })

      test.each([...inventoryKinds, null])('an incident about %s can be ended, and its resource found', (kind) => {
        const first = names(splitTools(everything, kind).first)
        for (const name of ['resolve_incident', 'escalate_incident', 'find_resource', 'query_metrics', 'search_logs'])
          expect(first).toContain(name)
        const own: Partial<Record<string, string>> = { node: 'get_node', host: 'get_host', vm: 'current_vm_host' }
        const read = kind === 'shard' || kind === 'tenant' ? 'get_shard' : (own[kind ?? ''] ?? 'get_resource')
        expect(first).toContain(read)
      })

      test.each([...inventoryKinds, null])(
        'prompt and tools are 12 kB at most with everything connected, for %s',
        (kind) => {
          const { first } = splitTools(everything, kind)
          const topics = topicsOf(kind)
          const system = renderSystemPrompt(prompts, { override: null, protocol: 'native', toolsText: '', topics })
          const bytes = Buffer.byteLength(system) + Buffer.byteLength(JSON.stringify(describeTools(first)))
          expect(bytes).toBeLessThanOrEqual(12_288)
        },
      )

      test('a job is offered first where one is declared for the resource', () => {
        expect(names(splitTools(everything, 'node').first)).toContain('run_job')
        const { first, more } = splitTools(everything, 'node', { lacks: ['jobs'] })
        expect([names(first).includes('run_job'), names(more).includes('run_job')]).toEqual([false, true])
      })

      test('logs are one tool: of sources, of devices, or of both, with the fields that mean something there', () => {
        const fieldsOf = (devices: (typeof device)[], sources: string[]) =>
          Object.keys(
            describedTools(null, devices, sources).find(({ name }) => name === 'search_logs')?.inputSchema.properties ??
              {},
          )
        expect(fieldsOf([device], [])).toEqual(['on', 'unit', 'path', 'contains', 'window'])
        expect(fieldsOf([], ['loki'])).toEqual(['labels', 'contains', 'excludes', 'pattern', 'window', 'until'])
        expect(fieldsOf([device], ['loki', 'victorialogs'])).toEqual(
          expect.arrayContaining(['source', 'labels', 'on', 'unit']),
        )
        expect(fieldsOf([], ['prometheus'])).toEqual([])
        expect(names(everything)).not.toContain('device_logs')
        expect(tools.get('device_logs')?.effect).toBe('read')
      })

      test('plans are offered for hosts and VMs, shards for what belongs to one', () => {
        const plans = inventoryKinds.filter((kind) =>
          names(splitTools(everything, kind).first).includes('execute_migration'),
        )
        expect(plans).toEqual(['region', 'host', 'vm'])
        const shards = inventoryKinds.filter((kind) =>
          names(splitTools(everything, kind).first).includes('converge_shard'),
        )
        expect(shards).toEqual(['shard', 'node', 'tenant'])
      })

      test('what is looked at first is offered where it matters, and what is rare on request', () => {
        const offering = (name: string) =>
          inventoryKinds.filter((kind) => names(splitTools(everything, kind).first).includes(name))
        expect(offering('get_host')).toEqual(['region', 'host', 'vm'])
        for (const name of ['vm_start', 'vm_restart']) expect(offering(name)).toEqual(['vm'])
        expect(offering('disk_usage')).toEqual(expect.arrayContaining(['node', 'service_unit', 'database']))
        for (const name of ['vm_stop', 'git_log', 'git_show', 'git_revert', 'http_read', 'recent_changes'])
          expect(offering(name)).toEqual([])
      })

      test('where a runbook fits, what it does not name of the situational tools is left for more_tools, and nothing is lost', () => {
        const { first, more } = splitTools(everything, 'node', { runbook: 'Look: `proc_list`, then `proc_kill`.' })
        expect(names(first)).toEqual(
          expect.arrayContaining(['proc_list', 'exec', 'search_logs', 'get_node', 'more_tools']),
        )
        for (const name of ['disk_usage', 'fs_read', 'service_status', 'active_alerts', 'describe_metrics'])
          expect([names(first).includes(name), names(more).includes(name)]).toEqual([false, true])
        expect([...names(first), ...names(more)].filter((name) => name !== 'more_tools').sort()).toEqual(
          names(everything).sort(),
        )
      })

      test('a site with few tools has no more_tools', () => {
        const few = everything.filter(({ name }) => tools.get(name)?.firstFor === undefined)
        expect(names(splitTools(few, 'node').first)).toEqual(names(few))
      })

      test('half of what a model would read of all tools is left out, and no sentence of them is lost', () => {
        const size = (list: typeof everything) => JSON.stringify(describeTools(list)).length
        expect(size(splitTools(everything, 'node').first)).toBeLessThan(size(everything) / 2)
      })
    })

    describe('the prompt', () => {
      const { system } = prompts

      const facts = { ...noFacts, counts: { shard: 2, node: 4, tenant: 3 }, databaseShards: 1 }
      const readAbout = (kind: InventoryKind | null, site = facts) =>
        renderSystemPrompt(prompts, { override: null, protocol: 'native', toolsText: '', topics: topicsOf(kind), site })

      test('an incident of a shard reads the lines of shards, one of a host does not, and no line shows its mark', () => {
        expect(readAbout('shard')).toContain('- Replication broken or lagging: check the shard')
        expect(readAbout('shard')).toContain('A database shard is a MySQL replication pair')
        expect(readAbout('host')).not.toMatch(/MySQL|converge/i)
        for (const kind of [...inventoryKinds, null]) expect(readAbout(kind)).not.toMatch(/[{]\w+[ }]|[{][{]/)
      })

      test('what is about everything stays, and without a topic all of it', () => {
        const plain = keepTopics(system, new Set())
        for (const line of [
          '## Responsibilities',
          '- Unknown: gather context',
          '- A person denied an action',
          '## Endings',
        ])
          expect(plain).toContain(line)
        expect(keepTopics(system, null)).toMatch(/Replication broken[\s\S]*Shard degraded/)
      })
    })
  })

  describe('proof', () => {
    const writes = [...tools.values()].filter(({ effect }) => effect === 'write')

    test('there are writes that prove themselves and writes that nothing proves', () => {
      expect(new Set(writes.map(({ proof }) => proof?.by))).toEqual(new Set(['state', 'nothing']))
    })

    test.each(writes.map((tool) => [tool.name, tool] as const))(
      '%s states what proves it, or that nothing does',
      (_, tool) => {
        expect(tool.proof).toEqual({
          by: expect.stringMatching(/^(state|nothing)$/),
          text: expect.stringMatching(/^.{10,}[^.]$/),
        })
        // Both are told by the same look: that nothing proves it is an answer, too.
        expect(tool.postcondition?.withinSeconds).toBeGreaterThan(0)
        // Where nothing proves it, a person is told where to look.
        if (tool.proof?.by === 'nothing') expect(tool.proof.text).toContain('afterwards')
      },
    )

    test('a command promises nothing, whatever carries it', () => {
      const carrying = writes.filter(({ command }) => command)
      expect(carrying.map(({ name, proof }) => [name, proof?.by])).toEqual([
        ['exec', 'nothing'],
        ['shell_eval', 'nothing'],
        ['docker_exec', 'nothing'],
      ])
    })

    test('each outcome has a word of its own, and one of another version is told as it stands', () => {
      expect(new Set(verificationOutcomes.map(formatVerification)).size).toBe(4)
      expect(formatVerification('held_for_now')).toBe('held for now')
    })

    describe('a card says before anybody decides', () => {
      const doors: [string, (proof: Proof | undefined) => string][] = [
        ['in the terminal', (proof) => formatApproval(asked(proof) as never)],
        [
          'without JavaScript',
          (proof) =>
            String(
              plainApproval(
                { ...asked(proof), evidence: [], run: null, next: [], together: [] },
                { name: 'a', may: true, said: null },
              ),
            ),
        ],
        [
          'in Slack',
          (proof) => JSON.stringify(renderCard(asked(proof), { type: 't' } as Incident, 'https://x.example', 'b')),
        ],
      ]
      // Lines are broken where the door has no room.
      const told = (text: string) => text.replace(/\s+/g, ' ')

      test.each(doors)('%s, what will prove that it worked', (_, show) => {
        expect(told(show({ by: 'state', text: 'the process is gone' }))).toContain(
          'Code will prove whether this worked: the process is gone.',
        )
      })

      test.each(doors)('%s, that nothing will', (_, show) => {
        expect(told(show({ by: 'nothing', text: 'look at it yourself afterwards' }))).toContain(
          'Nothing will prove that this worked: look at it yourself afterwards.',
        )
      })

      test.each(doors)('%s, that an approval of an earlier version does not tell', (_, show) => {
        expect(told(show(undefined))).toContain('was not stored with this approval')
      })
    })

    function asked(proof: Proof | undefined): Approval {
      return schema.parse({
        ...{ id: 'apr_1', incidentId: 'inc_1', attempt: 1, callId: 'c1_0', tool: 'exec', arguments: { argv: ['id'] } },
        ...{ targets: [{ kind: 'node', id: 'node-osl-1' }], reason: 'because', risk: 'medium', reversible: false },
        ...{ required: 1, approvals: 0, actionDigest: 'd', stateFingerprint: 's', status: 'pending', useBy: null },
        ...{ requestedAt: '2026-11-21T02:00:00Z', expiresAt: '2026-11-21T02:10:00Z', decisions: [] },
        dryRun: { possible: false, summary: 'Run it', details: {}, ...(proof && { proof }) },
      })
    }
  })
})

describe('say', () => {
  type Told = { tool: string; input: Record<string, unknown>; envelope: Envelope }

  /** Results of the lab, as eight played investigations had them: what `test/data/played` holds of each call. */
  function playedResults(): Told[] {
    const folder = join(import.meta.dirname, '../data/played')
    type Message = { role: string; content: string }
    type Request = { new: Message[]; answer: { tool_calls?: { name: string; arguments: Record<string, unknown> }[] } }
    return readdirSync(folder)
      .filter((file) => file.endsWith('.json'))
      .flatMap((file) => {
        const requests = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Request[]
        return requests.flatMap(({ new: messages }, at) => {
          const calls = requests[at - 1]?.answer.tool_calls ?? []
          const results = messages.filter(({ role }) => role === 'tool')
          return results.flatMap(({ content }, index): Told[] => {
            const call = calls[index]
            // Long results were cut for the model, and are no JSON any more.
            if (!call || !tools.has(call.name) || /"truncated":true,"bytes"/.test(content)) return []
            return [{ tool: call.name, input: call.arguments, envelope: JSON.parse(content) }]
          })
        })
      })
  }

  const on = { id: 'web-7', kind: 'node' }
  const reading = (summary: object) => ({ source: 'prom', isEmpty: false, summary, digest: null, about: [] })
  const item = { kind: 'node', id: 'web-7', name: 'web-7', aliases: [] }
  const written = (detail: string) => ({ detail, key: 'k' })

  /** One answer of each tool, and the sentence that a person reads. */
  const samples: Record<string, [input: object, data: object, said: string]> = {
    get_incident: [{ id: 'inc_1' }, { id: 'inc_1', status: 'open' }, 'inc_1 is open'],
    list_incident_events: [{ incident_id: 'inc_1' }, { items: [1, 2] }, '2 rows of inc_1'],
    add_incident_event: [
      { detail: 'The disk fills', hypothesis: 'supported' },
      {},
      'Recorded (cause supported): The disk fills',
    ],
    get_shard: [{ id: 's-1' }, { id: 's-1', status: 'critical', role: 'web' }, 's-1 is critical (web)'],
    list_nodes_by_shard: [
      { shard_id: 's-1' },
      {
        items: [
          { id: 'a', status: 'nominal' },
          { id: 'b', status: 'critical', reason: 'disk 131 % of quota' },
        ],
      },
      's-1: 1 of 2 nodes is not nominal: b is critical (disk 131 % of quota)',
    ],
    get_node: [
      { id: 'a' },
      { id: 'a', role: 'replica', status: 'degraded', reason: '42 s behind' },
      'a (replica) is degraded: 42 s behind',
    ],
    get_tenant: [
      { id: 't' },
      { id: 't', name: 'Ember', shard: 's-1', status: 'degraded' },
      'Ember (t) is degraded, on shard s-1',
    ],
    converge_shard: [{ id: 's-1' }, written('a: restarted'), 's-1 converged: a: restarted'],
    resolve_incident: [{ id: 'inc_1', outcome: 'self_resolved' }, {}, 'inc_1 is resolved: self resolved'],
    escalate_incident: [{ id: 'inc_1' }, {}, 'inc_1 is escalated'],
    report_capability_gap: [{ description: 'resize a disk' }, {}, 'A missing tool is reported: resize a disk'],
    find_resource: [{ text: 'web' }, { items: [item] }, '"web" is in the name of 1 resource: node web-7'],
    get_resource: [
      { kind: 'node', id: 'web-7' },
      { ...item, state: { health: 'degraded', observed: 'no answer' }, alerts: [{ status: 'firing' }] },
      'Node web-7 is degraded (no answer), 1 alert firing',
    ],
    get_host: [
      { id: 'h' },
      { id: 'h', state: 'dead', status: 'critical', vms: [{ running: false }] },
      'h is down (critical): 0 of 1 VM run',
    ],
    list_hosts: [
      { rack: 'r1' },
      {
        items: [
          { id: 'h', state: 'live' },
          { id: 'i', state: 'dead' },
        ],
      },
      'Rack r1: 1 of 2 hosts live; 1 other: i is down',
    ],
    node_health: [
      { node: 'h' },
      { node: 'h', status: 'critical', reason: 'the host is dead' },
      'h is critical (the host is dead)',
    ],
    live_link: [{ a: 'h', b: 'i' }, { status: 'live', cost: 3 }, 'The link between h and i is live, cost 3'],
    can_reach: [{ from: 'h', to: 'i' }, { status: 'unreachable', cost: null }, 'i is unreachable from h'],
    active_alerts: [
      { resource: 'h' },
      { items: [{ name: 'host_down', status: 'firing' }] },
      'h: 1 alert: host_down firing',
    ],
    current_vm_host: [{ vm: 'vm-1' }, { id: 'vm-1', host: 'h', running: false }, 'vm-1 is stopped on h'],
    recent_changes: [
      { resource: 'node:web-7', window: '6h' },
      { resource: 'node:web-7', found: 1, changes: [{ title: 'Deploy 42', when: '4 min before' }] },
      'node:web-7, 6h before: 1 change: Deploy 42 (4 min before)',
    ],
    schedule_ha_proposal: [
      { intent: 'recover', host_ids: ['h'] },
      { steps: [{ action: 'start' }, { action: 'migrate' }], unplaced: [{}] },
      'Plan to recover h: start 1 VM and migrate 1 VM; 1 VM stays down',
    ],
    execute_migration: [
      { proposal_id: 'prp_1' },
      written('all 3 steps were done'),
      'Plan prp_1 is carried out: all 3 steps were done',
    ],
    vm_start: [{ id: 'vm-1' }, written('started on h'), 'vm-1: start: started on h'],
    vm_stop: [{ id: 'vm-1' }, written('stopped'), 'vm-1: stop: stopped'],
    vm_restart: [{ id: 'vm-1' }, written('restarted'), 'vm-1: restart: restarted'],
    run_job: [{ job: 'restart-web', id: 'web-7' }, written('changed 1'), 'restart-web on web-7: changed 1'],
    query_metrics: [
      { promql: 'node_load1' },
      reading({
        seriesFound: 2,
        sharedLabels: { instance: 'web-7' },
        series: [{ labels: {}, last: 9, min: 1, max: 9, changedAt: 'T', before: 1, after: 9 }],
      }),
      'prom: node_load1: web-7 is 9, was 1 to 9; it changed at T from 1 to 9 (2 series)',
    ],
    describe_metrics: [
      { labels: { job: 'web' } },
      reading({ metricsFound: 2, metrics: ['up (gauge)', 'x'] }),
      'prom: 2 metrics: up (gauge) and x of web',
    ],
    list_alerts: [
      { labels: { node: 'web-7' } },
      reading({ alertsFound: 1, alerts: [{ name: 'Down', state: 'active' }] }),
      'prom: web-7: 1 alert: Down (active)',
    ],
    list_silences: [
      { labels: {} },
      reading({ silencesFound: 1, silences: [{ by: 'anna', until: 'T', why: 'backup' }] }),
      'prom: 1 silence: by anna until T (backup)',
    ],
    search_logs: [
      { labels: { app: 'web' }, window: '1h' },
      {
        ...reading({
          lines: 40,
          templatesFound: 2,
          templates: [{ template: 'refused by <*>', count: 9, isNew: true }],
        }),
        isPartial: true,
      },
      'prom: web: 40 lines of 2 kinds; new, 9 times: refused by <*> (partial)',
    ],
    http_read: [
      { path: '/health', select: 'state' },
      reading({ status: 200, value: 'ill' }),
      'prom: state of /health is answered with 200: ill',
    ],
    read_result: [{ digest: 'a'.repeat(64) }, { lines: ['one'] }, `1 line of the answer ${'a'.repeat(12)}: one`],
    exec: [{ argv: ['df', '-h'] }, { on, exit_code: 0, stdout: '/ 97 %\n' }, 'web-7: df -h: / 97 %'],
    shell_eval: [
      { command: 'ls | wc' },
      { on, exit_code: 2, stderr: 'no such file' },
      'web-7: ls | wc: it ended with 2: no such file',
    ],
    fs_read: [{ path: '/etc/app.json' }, { on, content: '{\n  "a": 1\n}' }, 'web-7: /etc/app.json: a: 1'],
    fs_write: [{ path: '/x', content: 'abc', reason: 'r' }, { on }, 'web-7: Write 3 characters as /x: done'],
    fs_list: [{ path: '/x' }, { on, entries: [{ name: 'a' }], total: 9 }, 'web-7: /x: 9 entries: a and 8 more'],
    fs_stat: [{ path: '/x' }, { on, type: 'file', size: 4, mtime: 'T' }, 'web-7: /x: file, 4 bytes, changed T'],
    disk_usage: [
      {},
      { on, file_systems: [{ mount: '/', used_percent: 97, inodes_used_percent: 3 }] },
      'web-7: / is 97 % full',
    ],
    git_clone: [{ url: 'https://x/y', path: '/y' }, { on }, 'web-7: Clone https://x/y into /y: done'],
    git_commit: [{ path: '/y', message: 'Fix' }, { on }, 'web-7: Commit in /y: Fix: done'],
    git_push: [{ path: '/y' }, { on }, 'web-7: Push the branch of /y to its remote: done'],
    git_log: [
      { path: '/y' },
      { on, commits: [{ subject: 'Deploy 42' }], uncommitted_total: 2 },
      'web-7: /y: 1 commit: Deploy 42; 2 uncommitted files',
    ],
    git_show: [
      { path: '/y', revision: 'HEAD' },
      { on, commit: 'abcdef1234567', author: 'Anna', subject: 'Fix' },
      'web-7: HEAD is abcdef123456 by Anna: Fix',
    ],
    git_revert: [{ path: '/y', revision: 'abcdef1' }, { on }, 'web-7: Revert abcdef1 in /y: done'],
    pkg_install: [{ packages: ['nginx'] }, { on }, 'web-7: Install nginx: done'],
    pkg_search: [{ text: 'nginx' }, { on, packages: [{ name: 'nginx' }], total: 1 }, 'web-7: nginx: 1 package: nginx'],
    proc_list: [
      { port: 80 },
      { on, processes: [{ name: 'httpd', pid: 7, cpu_percent: 99 }], total: 1 },
      'web-7: on port 80: 1 process: httpd (pid 7, 99 % CPU)',
    ],
    proc_kill: [
      { pid: 7, start_time: '9', signal: 'TERM' },
      { on },
      'web-7: Send TERM to process 7 (started at 9): done',
    ],
    docker_list: [
      {},
      { on, containers: [{ name: 'web', status: 'Up 2 hours' }], total: 1 },
      'web-7: 1 container: web Up 2 hours',
    ],
    docker_exec: [{ container: 'web', argv: ['id'] }, { on, exit_code: 0, output: 'uid=0' }, 'web-7: id in web: uid=0'],
    docker_logs: [{ container: 'web' }, { on, output: 'a\nb\nc\nd' }, 'web-7: log of web: 4 lines, the first: a'],
    container_restart: [{ container: 'web' }, { on }, 'web-7: Restart the container web: done'],
    service_status: [
      { unit: 'nginx' },
      { on, active: 'failed', sub: 'failed', result: 'exit-code', restarts: 5 },
      'web-7: nginx is failed (failed), ended with exit-code, 5 restarts',
    ],
    service_restart: [{ unit: 'nginx' }, { on }, 'web-7: Restart nginx.service: done'],
    service_start: [{ unit: 'nginx' }, { on }, 'web-7: Start nginx.service: done'],
    service_stop: [{ unit: 'nginx' }, { on }, 'web-7: Stop nginx.service: done'],
    device_logs: [{ unit: 'nginx' }, { on, lines: [[1, 'a']] }, 'web-7: log of nginx: 1 line'],
    read_runbook: [{ name: 'disk-full' }, { name: 'disk-full' }, 'Read the runbook disk-full'],
    more_tools: [{ names: ['exec'] }, { added: ['exec'] }, '1 more tool: exec'],
  }

  const say = (tool: string, envelope: Envelope, input: object) => {
    const found = tools.get(tool)
    if (!found) throw new Error(`there is no tool ${tool}`)
    return sayResult(found, envelope, input as Record<string, unknown>)
  }

  describe('a result is said in one sentence', () => {
    test('for each tool there is', () => {
      expect(Object.keys(samples).sort()).toEqual([...tools.keys()].sort())
    })

    test.each(Object.entries(samples))('%s', (tool, [input, data, said]) => {
      expect(say(tool, { ok: true, data, meta: {} }, input)).toBe(said)
    })

    test('all results of the lab: one bounded line without data that names what was asked about', () => {
      const wrong: string[] = []
      const told = playedResults()
      for (const { tool, input, envelope } of told) {
        const said = say(tool, envelope, input)
        const names = Object.values(input)
          .flat()
          .filter((value): value is string => typeof value === 'string' && value.length > 2)
        const isNamed =
          said !== null && names.some((name) => said.toLowerCase().includes(name.toLowerCase().slice(0, 40)))
        if (said === null || /[\n{}]|\[\s*"/.test(said) || said.length > mostSaidCharacters || !isNamed)
          wrong.push(`${tool}: ${said}`)
      }
      expect(wrong).toEqual([])
      expect(told.length).toBeGreaterThan(100)
    })

    test.each([null, {}, [], 'x', { items: 7 }, { on: null, stdout: { a: 1 } }])(
      'an odd answer (%j) stops no call',
      (data) => {
        for (const tool of tools.keys()) {
          const said = say(tool, { ok: true, data, meta: {} }, {})
          expect(said === null || !said.includes('\n')).toBe(true)
        }
      },
    )

    test.each([
      ['query_metrics', { promql: 'up{job="x"} == 0' }, { seriesFound: 0, series: [] }, 'up{job="x"} == 0'],
      [
        'query_metrics',
        { promql: 'sum by (job) (rate(http_requests_total{job=~"web|api", code!~"2.."}[5m]))' },
        { seriesFound: 0, series: [] },
        'http_requests_total{job=~"web|api", code!~"2.."}[5m]',
      ],
      [
        'search_logs',
        { labels: { app: 'web' } },
        { lines: 4, templatesFound: 1, templates: [{ template: 'ran {app="web"} |= "err"', count: 4 }] },
        '{app="web"} |= "err"',
      ],
    ])('a sentence about a query of %s has the query as it was asked: %j', (tool, input, summary, query) => {
      expect(say(tool, { ok: true, data: reading(summary), meta: {} }, input)).toContain(query)
    })

    test('a command in a sentence keeps its braces', () => {
      const argv = ['docker', 'inspect', '--format', '{{.State.Status}}', 'web']
      const said = say('exec', { ok: true, data: { on, exit_code: 0, stdout: 'running' }, meta: {} }, { argv })
      expect(said).toBe('web-7: docker inspect --format {{.State.Status}} web: running')
    })

    test.each([
      ['web', 'web is degraded'],
      ['vm-101', 'vm-101 is degraded'],
      ['db.example', 'db.example is degraded'],
    ])('a sentence that begins with the name %s leaves the name as it is spelt', (id, said) => {
      expect(say('get_node', { ok: true, data: { id, status: 'degraded' }, meta: {} }, { id })).toBe(said)
    })

    test('a failure says what failed, of what, and why', () => {
      const error = {
        code: 'X',
        message: 'no answer in {"ms":5}',
        blocked: false,
        failed: true,
        retryable: false,
        details: {},
      }
      expect(say('get_node', { ok: false, error, meta: {} }, { id: 'web-7' })).toBe(
        'get_node of web-7 failed: no answer in',
      )
    })

    test('what a stranger writes into an answer is cut, and brings no second line and no data', () => {
      const data = { on, exit_code: 0, stdout: `${'x'.repeat(5_000)}\n{"a":{"b":1}}\n\u2028more` }
      const said = say('exec', { ok: true, data, meta: {} }, { argv: ['cat', 'f'] })
      expect(said?.length).toBeLessThanOrEqual(mostSaidCharacters)
      expect(said).not.toMatch(/[\n{}]/)
    })
  })
})
