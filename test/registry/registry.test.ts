import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { rule } from '../../activities/rule.ts'
import { requestApproval } from '../../db/approvals/ask.ts'
import type { Trx } from '../../db/connect.ts'
import { declareResources, findByNames } from '../../db/inventory/registry.ts'
import { findAlertResources, neighboursOf } from '../../db/inventory/resources.ts'
import { listResources, showResource, surroundingsOf } from '../../db/inventory/show-resource.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { systemScope } from '../../db/scope.ts'
import { takeLeases } from '../../db/writes/leases.ts'
import { actionByKeys } from '../../domain/approval.ts'
import { actionDigest } from '../../domain/digest.ts'
import { agentActor } from '../../domain/event.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { type Declared, importSource, platformSource, type ResourceRef } from '../../domain/registry.ts'
import { findDeclarationFaults, findSiteFaults } from '../../domain/site.ts'
import { stepKey } from '../../domain/step-key.ts'
import { replay } from '../../safety/replay.ts'
import { toolFacts } from '../../tools/registry.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident, useDatabase } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runCli } from '../support/run-cli.ts'

describe('registry', () => {
  describe('registry', () => {
    const database = useDatabase()

    const inTransaction = <T>(work: (trx: Trx) => Promise<T>): Promise<T> => database.db.transaction().execute(work)
    const declare = (
      source: typeof importSource,
      resources: Declared['resources'],
      relations: Declared['relations'] = [],
    ) => inTransaction((trx) => declareResources(trx, source, { resources, relations }))
    const ref = (kind: InventoryKind, id: string): ResourceRef => ({ kind, id })
    const targets = { name: 'prometheus:main', hasAuthority: false }

    test('a list that did not change costs one look, and one that did writes only what differs', async () => {
      const web = { kind: 'node' as const, id: 'w-1', aliases: ['10.1.0.1'] }
      expect(await declare(platformSource, [web, { kind: 'node', id: 'w-2' }])).toBe(true)
      expect(await declare(platformSource, [web, { kind: 'node', id: 'w-2' }])).toBe(false)
      await database.db.updateTable('resourceSource').set({ seenAt: '2026-01-01T00:00:00Z' }).execute()
      expect(
        await declare(platformSource, [
          { ...web, aliases: ['10.1.0.9'] },
          { kind: 'node', id: 'w-2' },
        ]),
      ).toBe(true)
      const rows = await database.db.selectFrom('resourceSource').select(['id', 'seenAt']).orderBy('id').execute()
      expect(rows.map(({ id, seenAt }) => [id, seenAt.startsWith('2026-01-01')])).toEqual([
        ['w-1', false],
        ['w-2', true],
      ])
      expect(await findByNames(database.db, ['10.1.0.1'])).toEqual([])
      expect((await findByNames(database.db, ['10.1.0.9'])).map(({ id }) => id)).toEqual(['w-1'])
    })

    test("a source takes back what it told, and never another source's word", async () => {
      await declare(platformSource, [
        { kind: 'node', id: 'both' },
        { kind: 'node', id: 'mine' },
      ])
      await declare(importSource, [{ kind: 'node', id: 'both', aliases: ['other-name'] }])
      await declare(platformSource, [])
      expect(await showResource(systemScope(database.db), ref('node', 'mine'))).toBeNull()
      expect(await showResource(systemScope(database.db), ref('node', 'both'))).toMatchObject({
        sources: ['import'],
        aliases: ['other-name'],
      })
    })

    test('what no source has listed for a day is stale, and says so', async () => {
      await declare(importSource, [
        { kind: 'cluster', id: 'old' },
        { kind: 'cluster', id: 'new' },
      ])
      await database.db
        .updateTable('resourceSource')
        .set({ seenAt: sql`nightshift_now() - interval '25 hours'` })
        .where('id', '=', 'old')
        .execute()
      const stale = await listResources(
        systemScope(database.db),
        { kind: 'cluster', q: null, isStale: true },
        { after: null, limit: 10 },
      )
      expect(stale.map(({ id }) => id)).toEqual(['old'])
    })

    test('a resource has at most twelve neighbours on a side, with how many there are, and the list has them all', async () => {
      const on = { kind: 'node' as const, id: 'busy' }
      const many = Array.from({ length: 15 }, (_, at) => ({ kind: 'container' as const, id: `c-${at + 10}` }))
      const relations = many.map((from) => ({ from, kind: 'runs_on' as const, to: on }))
      const cluster = { kind: 'cluster' as const, id: 'home' }
      await database.db.transaction().execute((trx) =>
        declareResources(trx, importSource, {
          resources: [on, cluster, ...many],
          relations: [...relations, { from: on, kind: 'belongs_to', to: cluster }],
        }),
      )
      const { needs, neededBy } = await surroundingsOf(systemScope(database.db), on)
      expect(needs).toEqual({ items: [{ key: 'cluster:home', relation: 'belongs_to', firing: 0 }], total: 1 })
      expect([neededBy.items.length, neededBy.total]).toEqual([12, 15])
      const filter = { kind: null, q: null, isStale: null }
      const page = { after: null, limit: 50 }
      expect(await listResources(systemScope(database.db), { ...filter, needs: on }, page)).toHaveLength(15)
      const below = await listResources(systemScope(database.db), { ...filter, neededBy: on }, page)
      expect(below.map(({ id }) => id)).toEqual(['home'])
    })

    test('a list is paged by kind and id, and found by any name', async () => {
      const many = Array.from({ length: 7 }, (_, at) => ({
        kind: 'workload' as const,
        id: `w:${at}`,
        aliases: [`nick-${at}`],
      }))
      await declare(importSource, many)
      const filter = { kind: 'workload' as const, q: null, isStale: null }
      const first = await listResources(systemScope(database.db), filter, { after: null, limit: 4 })
      const rest = await listResources(systemScope(database.db), filter, {
        after: `workload:${first.at(-1)?.id}`,
        limit: 4,
      })
      expect([...first, ...rest].map(({ id }) => id)).toEqual(many.map(({ id }) => id))
      const named = await listResources(systemScope(database.db), { ...filter, q: 'NICK-3' }, { after: null, limit: 4 })
      expect(named.map(({ id }) => id)).toEqual(['w:3'])
    })

    test('only what the platform or an administrator relates widens the vicinity, in which a reversible write runs unasked', async () => {
      await declare(platformSource, [
        { kind: 'shard', id: 's' },
        { kind: 'node', id: 'n' },
        { kind: 'shard', id: 'victim' },
      ])
      const toVictim = [{ from: ref('node', 'n'), kind: 'belongs_to' as const, to: ref('shard', 'victim') }]
      await expect(declare(targets, [{ kind: 'node', id: 'n' }], toVictim)).rejects.toThrow('may list targets only')
      await declare(
        targets,
        [{ kind: 'target', id: 'n:9100' }],
        [{ from: ref('target', 'n:9100'), kind: 'same_as', to: ref('node', 'n') }],
      )
      expect(await neighboursOf(database.db, ref('node', 'n'))).toEqual([])
      expect(await neighboursOf(database.db, ref('target', 'n:9100'))).toEqual([])
      await declare(importSource, [], toVictim)
      expect(await neighboursOf(database.db, ref('node', 'n'))).toEqual([ref('shard', 'victim')])
    })

    test('two incidents cannot write to one thing under two names', async () => {
      await declare(platformSource, [{ kind: 'vm', id: 'x' }])
      await declare(
        importSource,
        [
          { kind: 'node', id: 'x' },
          { kind: 'device', id: 'dev-x' },
        ],
        [
          { from: ref('node', 'x'), kind: 'same_as', to: ref('vm', 'x') },
          { from: ref('device', 'dev-x'), kind: 'same_as', to: ref('node', 'x') },
        ],
      )
      await declare(
        targets,
        [{ kind: 'target', id: 'x:9100' }],
        [{ from: ref('target', 'x:9100'), kind: 'same_as', to: ref('node', 'x') }],
      )
      const [first, second] = [await claimedIncident(database.db), await claimedIncident(database.db)]
      const take = (incidentId: string, target: ResourceRef) =>
        inTransaction((trx) => takeLeases(trx, { incidentId, attempt: 1, callId: 'c1_0' }, [target]))
      expect(await take(first, ref('vm', 'x'))).toBe(true)
      for (const other of [ref('node', 'x'), ref('device', 'dev-x'), ref('target', 'x:9100')])
        expect(await take(second, other)).toBe(false)
      expect(await take(second, ref('vm', 'y'))).toBe(true)
      // What a list of targets says is good for a lease, and for no look and no vicinity.
      expect((await showResource(systemScope(database.db), ref('vm', 'x')))?.sameAs).toEqual(['device:dev-x', 'node:x'])
    })

    test('an alert finds a service on the machine that it names', async () => {
      await declare(platformSource, [
        { kind: 'node', id: 'app-1', aliases: ['10.7.0.1'] },
        { kind: 'node', id: 'app-2' },
      ])
      await declare(
        importSource,
        ['app-1', 'app-2'].map((id) => ({
          kind: 'service_unit' as const,
          id: `${id}:nginx.service`,
          name: 'nginx.service',
        })),
        ['app-1', 'app-2'].map((id) => ({
          ...{ from: ref('service_unit', `${id}:nginx.service`), kind: 'runs_on' as const, to: ref('node', id) },
        })),
      )
      const labels = { instance: '10.7.0.1:9100', name: 'nginx.service' }
      const [found] = await findAlertResources(database.db, [labels], [])
      expect(found?.resource).toEqual(ref('service_unit', 'app-1:nginx.service'))
    })

    test('a declaration that cannot be is told with all its faults at once', () => {
      const faults = findDeclarationFaults({
        resources: [
          { kind: 'node', id: 'a' },
          { kind: 'node', id: 'a' },
          { kind: 'node', id: 'b/c' },
        ],
        relations: [
          { from: ref('node', 'a'), kind: 'runs_on', to: ref('host', 'gone') },
          { from: ref('vm', 'x'), kind: 'runs_on', to: ref('vm', 'y') },
          { from: ref('vm', 'y'), kind: 'runs_on', to: ref('vm', 'x') },
          { from: ref('node', 'a'), kind: 'same_as', to: ref('node', 'a') },
        ],
      })
      expect(faults).toEqual([
        'node:a is there twice',
        'node "b/c" is no id: letters, digits and . _ : @ - are taken, 128 at most',
        'node:a runs_on host:gone: host:gone is not known',
        'vm:x runs_on vm:y: vm:x is not known',
        'vm:x runs_on vm:y: vm:y is not known',
        'vm:y runs_on vm:x: vm:y is not known',
        'vm:y runs_on vm:x: vm:x is not known',
        'node:a same_as itself',
        'a loop: vm:x → vm:y → vm:x',
      ])
    })

    test('a chain of 100,000 is no loop and no stack overflow', () => {
      const resources = Array.from({ length: 100_001 }, (_, at) => ({ kind: 'vm' as const, id: `v${at}` }))
      const relations = resources.slice(1).map(({ id }, at) => ({
        ...{ from: ref('vm', `v${at}`), kind: 'depends_on' as const, to: ref('vm', id) },
      }))
      expect(findDeclarationFaults({ resources, relations })).toEqual([])
    })
  })

  describe('denial', () => {
    const database = useDatabase()

    const vm: ResourceRef = { kind: 'vm', id: 'vm-7' }
    const node: ResourceRef = { kind: 'node', id: 'web-7' }
    const other: ResourceRef = { kind: 'node', id: 'web-8' }
    const kill = { pid: 4711, start_time: '100', signal: 'TERM' }

    beforeAll(async () => {
      await database.db.transaction().execute((trx) =>
        declareResources(trx, importSource, {
          resources: [vm, node, other] as never,
          relations: [{ from: node, kind: 'same_as', to: vm }],
        }),
      )
    })

    /** A person denied that this process is ended, for the machine under this name. */
    async function deny(on: ResourceRef): Promise<void> {
      const id = await ask(on)
      await database.db.updateTable('approval').set({ status: 'denied' }).where('id', '=', id).execute()
    }

    async function ask(on: ResourceRef): Promise<string> {
      const incidentId = await claimedIncident(database.db)
      const args = { on: on.id, ...kill, reason: 'it eats the CPU' }
      return await database.db.transaction().execute(async (trx) => {
        const { id } = await requestApproval(trx, {
          ...{ incidentId, attempt: 1, turn: 1, callId: 'c1_0', tool: 'proc_kill', args, targets: [on] },
          ...{ reason: '', actionDigest: actionDigest('proc_kill', args), stateFingerprint: 'f', risk: 'high' },
          ...{
            reversible: false,
            required: 1,
            dryRun: { possible: false, summary: '', details: {} },
            expirySeconds: 600,
          },
          ...{ stepKey: `${incidentId}:ask`, replaces: null, actor: agentActor },
        })
        return id
      })
    }

    /** The agent of another incident of the group looked the machine up, and proposes the same; answers the ruling's row. */
    async function propose(on: ResourceRef, args: object = kill) {
      const incidentId = await claimedIncident(database.db)
      const place = { incidentId, attempt: 1, turn: 2, call: 0, approvalId: null }
      const input = { on: on.id, ...args }
      const call = { id: 'c2_0', tool: 'proc_kill', arguments: { ...input, reason: 'again' }, problem: null }
      const preparation = { targets: [on], identity: input, stateFingerprint: 'f' }
      await database.db.transaction().execute(async (trx) => {
        const looked = { callId: 'c1_0', tool: 'find_resource', arguments: { text: on.id } }
        await append(trx, incidentId, 1, {
          ...{ kind: 'tool_finished', actor: agentActor, turn: 1, detail: '' },
          stepKey: stepKey(place, 1, 'tool_finished', 0),
          metadata: {
            ...{ ...looked, effect: 'resolve', targets: [], outcome: 'done', body: null, durationMs: 1 },
            result: { ok: true, data: {}, meta: {} },
            discovered: [{ ...on, name: on.id, aliases: [] }],
          },
        })
        await append(trx, incidentId, 1, {
          ...{ kind: 'model_answered', actor: agentActor, turn: 2, detail: '' },
          stepKey: stepKey(place, 2, 'model_answered', 0),
          metadata: {
            ...{ content: '', body: null, calls: [call], final: null, problem: null, model: 'm', finishReason: 'stop' },
            ...{ usage: { promptTokens: 1, completionTokens: 1 }, durationMs: 1 },
          },
        })
        const dryRun = { possible: false, summary: '', details: {} }
        const prepared = { ok: true as const, preparation: { ...preparation, dryRun } }
        await rule({ environment: {} }, trx, place, { call: { ...call, edit: null }, prepared, later: null })
      })
      const events = await eventsOf(database.db, incidentId)
      const judged = events.find(({ kind }) => kind === 'call_judged')
      if (judged?.kind !== 'call_judged') throw new Error('nothing was judged')
      return { code: judged.metadata.code, approvalId: judged.metadata.approvalId, events }
    }

    test('a question that waits about a machine under one name is not asked again under its other name', async () => {
      const asked = await ask(vm)
      expect((await propose(node)).approvalId).toBe(asked)
      expect((await propose(vm)).approvalId).toBe(asked)
      // Another machine, another process: those are other questions.
      expect((await propose(other)).approvalId).not.toBe(asked)
      expect((await propose(node, { ...kill, pid: 4712 })).approvalId).not.toBe(asked)
      const pending = await database.db.selectFrom('approval').select('id').where('status', '=', 'pending').execute()
      expect(pending.filter(({ id }) => id === asked)).toHaveLength(1)
    })

    test('what a person denied for a machine under one name is denied under its other name, and nothing else is', async () => {
      await deny(vm)
      const { code, events } = await propose(node)
      expect(code).toBe('DENIED_BEFORE')
      // The ruling stored what it rested on: judged again, it is the same.
      expect(replay(events, toolFacts, null).differences).toEqual([])
      expect((await propose(vm)).code).toBe('DENIED_BEFORE')
      expect((await propose(other)).code).not.toBe('DENIED_BEFORE')
      expect((await propose(node, { ...kill, pid: 4712 })).code).not.toBe('DENIED_BEFORE')
    })

    test('who changes places in an action makes another action', () => {
      const facts = { name: 'move', names: { from: 'host', to: 'host' } } as const
      const [a, b]: ResourceRef[] = [
        { kind: 'host', id: 'a' },
        { kind: 'host', id: 'b' },
      ]
      const move = (from: string, to: string) =>
        actionByKeys(facts, { arguments: { from, to }, targets: [a as ResourceRef, b as ResourceRef] }, ({ id }) => id)
      expect(move('a', 'b')).not.toBe(move('b', 'a'))
    })
  })
})

describe('inventory faults', () => {
  const api = useApi()
  const none = new Set<string>()
  const told = (file: unknown) => findSiteFaults(file, none).map(({ field, message }) => `${field}: ${message}`)

  const vm = (id: string, more: object = {}) => ({ kind: 'vm', id, ...more })
  const runs = (from: string, to: string) => ({ from: `vm:${from}`, kind: 'runs_on', to: `vm:${to}` })

  test('faults of an entry hide no fault between entries', () => {
    const faults = told({
      nodes: [{ id: 'x' }, { id: 'x' }],
      hosts: [{ id: 'x', ramMib: 1, cpuMc: 1 }],
      resources: [vm('a'), vm('b'), vm('a'), { kind: 'thing', id: 'c' }, vm('d/e'), { kind: 'vm' }],
      relations: [runs('a', 'b'), runs('b', 'a'), runs('a', 'gone'), { ...runs('a', 'b'), kind: 'eats' }],
      volumes: [],
    })
    expect(faults).toEqual([
      'volumes: is none of groups, nodes, hosts, resources, relations',
      'nodes.1: x is there twice',
      'resources.2: vm:a is there twice',
      expect.stringMatching(/^resources\.3\.kind: /),
      expect.stringMatching(/^resources\.4\.id: takes letters/),
      expect.stringMatching(/^resources\.5\.id: /),
      expect.stringMatching(/^relations\.3\.kind: /),
      ...['nodes: x is a host, too', 'nodes: x is a host, too'],
      'null: vm:a runs_on vm:gone: vm:gone is not known',
      'null: a loop: vm:a → vm:b → vm:a',
    ])
  })

  test.each([
    ['a line break', 'web-2\nweb-1'],
    ['a sign that turns the text around', '\u202eweb-1'],
    ['a sign that is not seen', 'web\u200b-1'],
  ])('a name with %s is none', (_, alias) => {
    expect(told({ resources: [vm('a', { aliases: [alias] }), vm('b', { name: alias })] })).toHaveLength(2)
  })

  test.each([[null], [[]], ['nodes'], [7]])('%j is no inventory', (file) => {
    expect(told(file)).toEqual([expect.stringContaining('is no inventory')])
  })

  test('100,000 loops are told in a few lines, and a long one by its ends', () => {
    const resources = Array.from({ length: 100_000 }, (_, at) => vm(`v${at}`))
    const chain = resources.slice(1).map(({ id }, at) => runs(`v${at}`, id))
    const back = resources.slice(1).map(({ id }) => runs(id, 'v0'))
    const faults = told({ resources, relations: [...chain, ...back] })
    expect(faults).toHaveLength(51)
    expect(faults.join('\n').length).toBeLessThan(10_000)
    expect(faults.at(-1)).toContain('more loops')
  })

  test('100,000 entries that are all wrong are refused with how many there are, and nothing is stored', async () => {
    const resources = [vm('right'), ...Array.from({ length: 99_999 }, (_, at) => ({ kind: 'thing', id: `a/${at}` }))]
    const refused = await api.put('/inventory', { body: { resources } })
    expect([refused.status, refused.body.code]).toEqual([422, 'INVALID'])
    expect(refused.body.detail).toContain('199998 faults, the first 200 of them named')
    expect((refused.body as unknown as { errors: unknown[] }).errors).toHaveLength(200)
    expect((await api.get('/inventory')).body.resources).toEqual([])
  })

  test('a file of a person is checked as a whole before anything is sent, whatever its lines end in', async () => {
    const { path } = temporaryDirectory()
    const run = async (text: string) => {
      const file = join(path, 'site.yaml')
      writeFileSync(file, text)
      return await runCli(['inventory', 'import', file, '--dry-run'], {
        NIGHTSHIFT_URL: 'http://127.0.0.1:1',
        NIGHTSHIFT_TOKEN: 'nst_x',
      })
    }
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]']
    for (let at = 1; at < 9; at += 1)
      bomb.push(`b${at}: &b${at} [${Array(9).fill(`*${at === 1 ? 'a' : `b${at - 1}`}`)}]`)
    const unfolded = await run(bomb.join('\n'))
    expect([unfolded.code, unfolded.stderr]).toEqual([2, expect.stringContaining('cannot be read')])
    expect(unfolded.stderr).not.toContain('at ')

    const windows = await run(
      '\ufeffresources:\r\n  - { kind: vm, id: a }\r\n  - { kind: vm, id: a }\r\n  - { kind: x, id: b }\r\n',
    )
    expect(windows.code).toBe(2)
    expect(windows.stderr).toContain('resources.1: vm:a is there twice')
    expect(windows.stderr).toContain('resources.2.kind')
  })
})
