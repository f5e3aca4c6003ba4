import { describe, expect, test } from '@jest/globals'
import { plainApproval } from '../../api/routes/approval-html.ts'
import { formatApproval } from '../../cli/approvals/card.ts'
import { type Approval, approval as schema } from '../../domain/approval.ts'
import { type Proof, verificationOutcomes } from '../../domain/envelope.ts'
import { formatVerification } from '../../domain/format-approval.ts'
import type { Incident } from '../../domain/incident.ts'
import { type InventoryKind, inventoryKinds } from '../../domain/kinds.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import type { CorePort } from '../../domain/tool.ts'
import { validArguments } from '../../domain/valid-call.ts'
import { describeTools } from '../../model/describe-tools.ts'
import { noFacts } from '../../prompts/platform.ts'
import { keepTopics, readPrompts, renderSystemPrompt, topicsOf } from '../../prompts/render.ts'
import { fold } from '../../safety/fold.ts'
import { judge } from '../../safety/judge.ts'
import { renderCard } from '../../slack/card.ts'
import { sourceKinds } from '../../sources/kinds.ts'
import { describedTools, describeTool, splitTools, toolFacts, tools, unfoldNames } from '../../tools/registry.ts'

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
