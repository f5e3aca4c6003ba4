import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import { beginImport } from '../../../db/inventory/imports.ts'
import { newId } from '../../../domain/digest.ts'
import type { InventoryImport } from '../../../domain/site.ts'
import { useApi } from '../../support/api.ts'
import { anAlert, moveClock } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import { type MeshApi, newKey } from '../../support/mesh-api.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

const mesh = { keys: { root: newKey('root'), signing: newKey('k'), next: null }, variable: () => undefined }
/** A site with nothing but hosts and agents: no platform, and an empty inventory. */
const bare = useApi(() => ({ mesh })) as MeshApi
const given = useApi(() => ({ mesh, platform: scriptedPlatform() }))

const device = (ip: string) => ({
  url: `https://${ip}:7474`,
  mode: 'user',
  terms: { capabilities: [], roots: [{ path: '/srv', writable: false }] },
})
const site = {
  groups: [{ id: 'db', region: 'oslo', role: 'database' }],
  nodes: [
    { id: 'db-1', group: 'db', hostname: 'db-1.example.com', ip: '10.0.0.21' },
    { id: 'db-2', group: 'db', ip: '10.0.0.22' },
  ],
  hosts: [{ id: 'hv-1', region: 'oslo', rack: 'r1', ramMib: 65_536, cpuMc: 16_000 }],
}

test('three plain hosts with an agent each make a site: each becomes a node, and alerts find it by the names of exporters', async () => {
  for (const [name, ip] of [
    ['web-1', '10.0.0.11'],
    ['web-2', '10.0.0.12'],
    ['web-3', '10.0.0.13'],
  ] as const) {
    const made = await bare.put(`/devices/${name}`, { body: device(ip) })
    expect([made.status, made.body.resource]).toEqual([200, { kind: 'node', id: name }])
    expect((await bare.post(`/devices/${name}/enrolment`)).status).toBe(201)
  }
  expect((await bare.get('/inventory')).body.nodes).toMatchObject([
    { id: 'web-1', group: 'hosts', ip: '10.0.0.11' },
    { id: 'web-2' },
    { id: 'web-3' },
  ])
  const resources: (string | null)[] = []
  const alerts: Record<string, string>[] = [
    { instance: '10.0.0.12:9100' },
    { instance: 'web-1.example.com:9100' },
    { hostname: 'WEB-3' },
    { instance: 'http://web-2/health' },
    { instance: 'web-9:9100' },
  ]
  for (const labels of alerts) {
    const { incidentId } = await ingestAlert(bare.db, anAlert({ labels: { alertname: 'x', ...labels } }))
    const { resource } = (await bare.get(`/incidents/${incidentId}`)).body as unknown as {
      resource: { id: string } | null
    }
    resources.push(resource?.id ?? null)
  }
  expect(resources).toEqual(['web-2', 'web-1', 'web-3', 'web-2', null])
})

test('an inventory is imported after a preview, and exported unchanged', async () => {
  const put = (query: string, body: unknown) => bare.put(`/inventory${query}`, { body })
  const dry = await put('?dry_run=true', site)
  expect(dry.body).toMatchObject({ added: ['db', 'db-1', 'db-2', 'hv-1'], changed: [], removed: [], applied: false })
  expect((await bare.get('/inventory')).body.hosts).toEqual([])
  expect((await put('', site)).body).toMatchObject({ applied: true, kept: expect.arrayContaining(['web-1']) })
  expect((await put('', site)).body).toMatchObject({ added: [], changed: [] })
  const moved = { ...site, nodes: [{ ...site.nodes[0], ip: '10.0.0.99' }] }
  expect((await put('', moved)).body).toMatchObject({ added: [], changed: ['db-1'] })
  const exported = (await bare.get('/inventory')).body
  expect((await put('?prune=true', exported)).body).toMatchObject({ added: [], changed: [], removed: [] })
  const refused = await put('?prune=true', site)
  expect([refused.status, refused.body.code]).toEqual([409, 'HAS_DEVICE'])
  expect(refused.body.detail).toMatch(/^web-1, web-2, web-3: not in the file, and has a device/)
  expect((await bare.get('/inventory')).body).toEqual(exported)
})

test('a wrong file is refused as a whole, with each error, and beside a platform nothing is imported', async () => {
  const wrong = { nodes: [{ id: 'x y' }, { id: 'a' }, { id: 'a' }], hosts: [{ id: 'h', ramMib: 0, cpuMc: 1 }] }
  const answer = await bare.put('/inventory', { body: wrong })
  expect(answer.status).toBe(422)
  expect(JSON.stringify(answer.body)).toMatch(/nodes.*0.*id/)
  expect((await bare.put('/inventory', { body: site, as: bare.tokens.operator })).status).toBe(403)
  const beside = await given.put('/inventory', { body: site })
  expect([beside.status, beside.body.code]).toEqual([409, 'PLATFORM_KEEPS'])
  const unknown = await given.put('/devices/nowhere', { body: device('10.0.0.50') })
  expect([unknown.status, unknown.body.code]).toEqual([409, 'NO_RESOURCE'])
})

test('services and other resources are imported with their dependencies, and all errors of a file are reported together', async () => {
  const file = {
    nodes: [{ id: 'app-1', ip: '10.9.0.1' }],
    resources: [
      { kind: 'service_unit', id: 'app-1:nginx.service', name: 'nginx.service' },
      { kind: 'cluster', id: 'eu1' },
    ],
    relations: [{ from: 'service_unit:app-1:nginx.service', kind: 'runs_on', to: 'node:app-1' }],
  }
  const made = await bare.put('/inventory', { body: file })
  expect(made.body).toMatchObject({
    added: expect.arrayContaining(['service_unit:app-1:nginx.service', 'cluster:eu1']),
  })
  expect((await bare.put('/inventory', { body: file })).body).toMatchObject({ added: [], changed: [] })
  expect((await bare.get('/inventory')).body).toMatchObject({
    resources: file.resources.toReversed(),
    relations: file.relations,
  })

  const shown = await bare.get('/inventory/resources/node/app-1')
  expect(shown.body).toMatchObject({
    sources: ['site'],
    relations: [
      { to: 'shard:hosts' },
      { from: 'service_unit:app-1:nginx.service', kind: 'runs_on', hasAuthority: true },
    ],
  })
  expect((await bare.get('/inventory/resources/node/nobody')).status).toBe(404)
  const listed = await bare.get('/inventory/resources?kind=cluster')
  expect(listed.body.items).toMatchObject([{ id: 'eu1', sources: ['import'], isStale: false }])

  const wrong = {
    resources: [{ kind: 'vm', id: 'a' }],
    relations: [
      { from: 'vm:a', kind: 'runs_on', to: 'host:gone' },
      { from: 'vm:a', kind: 'depends_on', to: 'vm:a' },
    ],
  }
  const refused = await bare.put('/inventory', { body: wrong })
  expect(refused.status).toBe(422)
  expect(refused.body.detail).toContain('2 faults')
  expect(JSON.stringify(refused.body)).toMatch(/host:gone is not known.*depends_on itself/)
  expect((await bare.get('/inventory/resources/vm/a')).status).toBe(404)
  const kinds = {
    resources: [{ kind: 'spaceship', id: 'x' }],
    relations: [{ from: 'x', kind: 'runs_on', to: 'vm:a' }],
  }
  expect(JSON.stringify((await bare.put('/inventory', { body: kinds })).body)).toMatch(
    /resources.*0.*kind.*relations.*0.*from/,
  )
})

test('a chain with resources of an earlier import does not merge two nodes, and an old contradiction blocks no other import', async () => {
  const put = (relations: string[][]) =>
    bare.put('/inventory', {
      body: {
        nodes: [{ id: 'one-1' }, { id: 'one-2' }],
        resources: [
          { kind: 'vm', id: 'one' },
          { kind: 'host', id: 'one' },
        ],
        relations: relations.map(([from, kind, to]) => ({ from, kind, to })),
      },
    })
  const near = await put([
    ['vm:one', 'same_as', 'node:one-1'],
    ['vm:one', 'same_as', 'host:one'],
  ])
  expect(near.body.vicinity).toEqual([{ of: 'shard:hosts', neighbours: expect.any(Number) }])
  const refused = await put([['host:one', 'same_as', 'node:one-2']])
  expect([refused.status, refused.body.detail]).toEqual([
    422,
    expect.stringContaining(
      'node:one-1 and node:one-2 would be the same resource: node:one-1 same_as vm:one same_as host:one same_as node:one-2',
    ),
  ])
  const shown = async () => (await bare.get('/inventory/resources/node/one-1')).body
  expect(await shown()).toMatchObject({ sameAs: ['host:one', 'vm:one'], disagreements: [] })
  // As an older release stored it.
  await sql`insert into relation values ('host', 'one', 'same_as', 'node', 'one-2', 'import')`.execute(bare.owner)
  expect((await put([])).status).toBe(200)
})

test('the same file writes no row again, in any order of attributes, and a moved group moves its nodes', async () => {
  const file = (region: string) => ({
    groups: [{ id: 'again', region }],
    // A node of the name of its group is another thing.
    nodes: [{ id: 'again', group: 'again' }],
    resources: [{ kind: 'cluster', id: 'again', attributes: { rack: 'r1', ip: '10.0.0.1' } }],
    relations: [{ from: 'node:again', kind: 'belongs_to', to: 'cluster:again' }],
  })
  await bare.put('/inventory', { body: file('oslo') })
  const versions = async () => {
    const { rows } = await sql<{ all: string }>`
      select (select json_agg(xmin order by id) from node)::text || (select json_agg(xmin order by kind, id) from resource_source)
        || (select json_agg(xmin order by source) from registry_source) || (select json_agg(xmin order by id) from shard) as all`.execute(
      bare.owner,
    )
    return rows
  }
  const before = await versions()
  expect((await bare.put('/inventory', { body: file('oslo') })).body).toMatchObject({ added: [], changed: [] })
  expect(await versions()).toEqual(before)
  await bare.put('/inventory', { body: file('bergen') })
  const moved = await bare.db.selectFrom('node').select('region').where('id', '=', 'again').executeTakeFirst()
  expect(moved).toEqual({ region: 'bergen' })
})

test('beside a platform, services are imported, and the hosts of the file are not', async () => {
  const service = { kind: 'service_unit', id: 'shop', name: 'shop.service' }
  expect((await given.put('/inventory', { body: { resources: [service] } })).body).toMatchObject({
    added: ['service_unit:shop'],
  })
})

test('a body is explained with its type, severity, resource and the labels that were tried, and nothing is stored', async () => {
  const before = ((await bare.get('/alerts')).body.items as unknown as unknown[]).length
  const alert = (labels: Record<string, string>) => ({ status: 'firing', labels, annotations: {} })
  const body = JSON.stringify({
    groupKey: '{}:{alertname="X"}',
    alerts: [
      alert({
        alertname: 'NodeSystemdServiceFailed',
        instance: '10.9.0.1:9100',
        name: 'nginx.service',
        severity: 'critical',
      }),
      alert({ alertname: 'X', instance: 'web-99:9100' }),
      alert({ alertname: 'Watchdog' }),
    ],
  })
  const { body: answer } = await bare.post('/alerts/explain', { body: { dialect: 'alertmanager', body } })
  expect(answer.alerts).toMatchObject([
    {
      type: 'node_systemd_service_failed',
      severity: 'critical',
      resource: 'service_unit:app-1:nginx.service',
      why: 'label name names service_unit:app-1:nginx.service',
      becomes: 'opens',
      groupKey: '{}:{alertname="X"}',
    },
    {
      resource: null,
      why: expect.stringContaining('instance=web-99 is not known'),
      notes: [expect.stringContaining('warning')],
    },
    { becomes: 'heartbeat' },
  ])
  expect((await bare.get('/alerts')).body.items).toHaveLength(before)
  const broken = await bare.post('/alerts/explain', { body: { dialect: 'alertmanager', body: '{' } })
  expect([broken.status, broken.body.code]).toEqual([400, 'UNPARSABLE'])
})

/** A file with more entries than one request imports. */
const large = (count: number) => ({
  nodes: [{ id: 'big-1', ip: '10.8.0.1' }],
  resources: Array.from({ length: count }, (_, n) => ({ kind: 'service_unit', id: `big-1:unit-${n}.service` })),
  relations: Array.from({ length: count }, (_, n) => ({
    from: `service_unit:big-1:unit-${n}.service`,
    kind: 'runs_on',
    to: 'node:big-1',
  })),
})

async function ended(id: string): Promise<InventoryImport> {
  return await eventually('the end of the import', async () => {
    const job = (await bare.get(`/inventory/imports/${id}`)).body as unknown as InventoryImport
    return job.state === 'running' ? null : job
  })
}

test('a large file is imported by a job, which reports its progress and its result, and is started once', async () => {
  const body = large(3_000)
  const refused = await bare.put('/inventory', { body })
  expect([refused.status, refused.body.code]).toEqual([413, 'TOO_LARGE'])
  const dry = `/inventory/imports/${newId('imp')}`
  expect((await bare.put(`${dry}?dry_run=true`, { body })).status).toBe(202)
  expect(await ended(dry.slice(-30))).toMatchObject({ state: 'done', applied: false, change: { changed: [] } })

  const id = newId('imp')
  const begun = await bare.put(`/inventory/imports/${id}`, { body })
  expect([begun.status, begun.body]).toMatchObject([202, { id, state: 'running', entries: 6_001 }])
  const done = await ended(id)
  expect(done).toMatchObject({ state: 'done', applied: true, faults: [] })
  expect(done.change?.added).toHaveLength(6_001)
  // The same id is the same import, and not another one.
  expect((await bare.put(`/inventory/imports/${id}`, { body: large(1) })).body).toMatchObject({ id, state: 'done' })
  expect((await bare.get('/audit?what=inventory.imported')).body.items).toContainEqual(
    expect.objectContaining({ who: 'admin' }),
  )
  expect((await bare.get('/inventory/resources/service_unit/big-1:unit-2999.service')).status).toBe(200)
  expect((await bare.get(`/inventory/imports/${newId('imp')}`)).status).toBe(404)
})

test('a wrong large file stores nothing and lists each error, also errors that only the server can find', async () => {
  const body = large(2_500)
  body.resources[1_234]!.kind = 'thing'
  const id = newId('imp')
  await bare.put(`/inventory/imports/${id}`, { body })
  const failed = await ended(id)
  expect(failed).toMatchObject({ state: 'failed', applied: false, change: null })
  expect(failed.faults.map(({ field }) => field)).toContain('resources.1234.kind')
  expect(failed.reason).toMatch(/nothing was stored: resources\.1234\.kind/)
  expect((await bare.get('/inventory/resources/service_unit/big-1:unit-1.service')).body.id).not.toBeUndefined()

  const unknown = large(2_500)
  unknown.relations[7]!.to = 'node:nowhere'
  const other = newId('imp')
  await bare.put(`/inventory/imports/${other}`, { body: unknown })
  expect((await ended(other)).reason).toContain('node:nowhere is not known')
})

test('the end of an import is stored with the import or not at all, without text of a database error', async () => {
  await sql`
    create function refuse_end() returns trigger language plpgsql as $$
      begin if new.state = 'done' then raise exception 'relation 4711 broke'; end if; return new; end $$`.execute(
    bare.owner,
  )
  await sql`create trigger refuse_end before update on inventory_import for each row execute function refuse_end()`.execute(
    bare.owner,
  )
  const id = newId('imp')
  const nodes = [{ id: 'half-1', ip: '10.8.0.9' }]
  await bare.put(`/inventory/imports/${id}`, { body: { nodes } })
  const failed = await ended(id)
  await sql`drop trigger refuse_end on inventory_import`.execute(bare.owner)
  expect(failed).toMatchObject({
    state: 'failed',
    reason: expect.stringMatching(/The API's log .* Nothing was stored/),
  })
  expect(failed.reason).not.toContain('4711')
  expect((await bare.get('/inventory')).body.nodes).not.toContainEqual(expect.objectContaining({ id: 'half-1' }))
})

test('only one import runs at a time: a different one is refused meanwhile, and the same one is accepted', async () => {
  const [first, second] = [newId('imp'), newId('imp')]
  const body = large(3_000)
  expect((await bare.put(`/inventory/imports/${first}?dry_run=true`, { body })).status).toBe(202)
  const refused = await bare.put(`/inventory/imports/${second}`, { body: large(1) })
  expect([refused.status, refused.body.code]).toEqual([409, 'BUSY'])
  expect((await bare.put(`/inventory/imports/${first}?dry_run=true`, { body })).body.state).toBe('running')
  await ended(first)
  expect((await bare.get(`/inventory/imports/${second}`)).status).toBe(404)
})

test('an import whose process died is lost, and reports that nothing was stored', async () => {
  const id = newId('imp')
  await beginImport(bare.db, { id, who: 'anna', isDryRun: false, entries: 5_000 })
  await moveClock(bare.owner, '40 seconds')
  const { body } = await bare.get(`/inventory/imports/${id}`)
  await moveClock(bare.owner, '0 seconds')
  expect(body).toMatchObject({ state: 'lost', reason: expect.stringContaining('Nothing was stored') })
})
