import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ownAmong } from '../../../db/inventory/footprint.ts'
import { noteWorkerEnvironment } from '../../../db/settings.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import { useDatabase } from '../../support/database.ts'

const database = useDatabase()
const variable = (name: string, value: string) =>
  ({ name, value, group: 'g', description: '', secret: false, state: 'set' }) as const

async function resource(kind: string, id: string, names: string[]) {
  await sql`insert into resource (kind, id, name, names, canonical, lease_key)
    values (${kind}, ${id}, ${id}, ${names}, ${`${kind}:${id}`}, ${`${kind}:${id}`})`.execute(database.owner)
}

beforeAll(async () => {
  await noteWorkerEnvironment(database.db, [
    variable('TEMPORAL_ADDRESS', 'temporal.internal:7233'),
    variable('LLM_BASE_URL', 'http://10.0.0.7:8000/v1'),
    variable('SMTP_HOST', 'mail.internal'),
  ])
  await resource('vm', 'vm-12', ['vm-12', 'temporal.internal'])
  await resource('host', 'gpu-1', ['gpu-1', '10.0.0.7'])
  await resource('host', 'host-1', ['host-1'])
  await resource('host', 'mail', ['mail', 'mail.internal'])
  await sql`insert into registry_source (source, has_authority, digest) values ('t', true, '')`.execute(database.owner)
  await sql`insert into relation (from_kind, from_id, kind, to_kind, to_id, source) values ('vm', 'vm-12', 'runs_on', 'host', 'host-1', 't')`.execute(
    database.owner,
  )
})

const own = async (targets: ResourceRef[], patterns: string[] = []) =>
  await database.db.transaction().execute((trx) => ownAmong(trx, targets, patterns))

test.each<[string, ResourceRef, string | null]>([
  ['the machine of Temporal, by its other name', { kind: 'vm', id: 'vm-12' }, 'its Temporal'],
  ['the machine of the model, by its address', { kind: 'host', id: 'gpu-1' }, 'its model'],
  ['the host that carries the machine of Temporal', { kind: 'host', id: 'host-1' }, 'its Temporal'],
  ['a machine that nothing of it stands on', { kind: 'host', id: 'mail' }, null],
  ['a thing that nobody knows', { kind: 'host', id: 'host-99' }, null],
])('%s', async (_, target, why) => {
  expect(await own([target])).toEqual(why === null ? [] : [{ target: `${target.kind}:${target.id}`, why }])
})

test('resources that the site declares as its own are part of its footprint, also among several targets', async () => {
  const targets: ResourceRef[] = [
    { kind: 'host', id: 'mail' },
    { kind: 'host', id: 'gpu-7' },
  ]
  expect(await own(targets, ['host:gpu-*'])).toEqual([
    { target: 'host:gpu-7', why: 'resources that agent.footprint names' },
  ])
})

test('an address on this machine names no resource', async () => {
  await noteWorkerEnvironment(database.db, [
    variable('TEMPORAL_ADDRESS', '127.0.0.1:7233'),
    variable('LLM_BASE_URL', 'http://localhost:8000/v1'),
  ])
  await resource('host', 'local', ['localhost', '127.0.0.1'])
  expect(await own([{ kind: 'host', id: 'local' }])).toEqual([])
})
