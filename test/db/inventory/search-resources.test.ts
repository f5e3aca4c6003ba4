import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { sql } from 'kysely'
import { escapeLike } from '../../../db/connect.ts'
import { declareResources } from '../../../db/inventory/registry.ts'
import { findResources } from '../../../db/inventory/resources.ts'
import { listResources } from '../../../db/inventory/show-resource.ts'
import { systemScope } from '../../../db/scope.ts'
import { importSource } from '../../../domain/declared-resources.ts'
import { useDatabase } from '../../support/database.ts'

const database = useDatabase()

/** Many alike, a few rare, capital and foreign letters, signs that patterns read. */
const resources = [
  ...Array.from({ length: 1_200 }, (_, at) => ({
    kind: 'vm' as const,
    id: `vm-${at}`,
    aliases: [`10.0.${at >> 8}.${at & 255}`],
  })),
  { kind: 'node' as const, id: 'App_1', name: 'Ærlig-Server.example.com', aliases: ['10.0.0.7', 'GW%1'] },
  { kind: 'node' as const, id: 'app-2', name: '100%_full\\disk' },
  { kind: 'service_unit' as const, id: 'app-2:nginx.service', name: 'nginx.service' },
  { kind: 'cluster' as const, id: 'x' },
]

/** The question as it was before. */
async function asBefore(q: string, after: string | null): Promise<string[]> {
  const pattern = `%${escapeLike(q.toLowerCase())}%`
  const { rows } = await sql<{ key: string }>`
    select kind || ':' || id as key from resource
    where (id ilike ${pattern} or name ilike ${pattern} or names @> array[${q.toLowerCase()}::text])
      and (${after}::text is null or kind || ':' || id > ${after} collate "C")
    order by (kind || ':' || id) collate "C" limit 51`.execute(database.db)
  return rows.map(({ key }) => key)
}

test('a search finds the same resources as before: by name, alias, address, part, page, or none', async () => {
  await database.db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations: [] }))
  const words = resources.flatMap(({ id, ...rest }) => [id, ...Object.values(rest).flat()])
  const typed = fc.oneof(
    fc.constantFrom(...words),
    fc
      .tuple(fc.constantFrom(...words), fc.nat(12), fc.integer({ min: 1, max: 12 }))
      .map(([word, from, count]) => word.slice(from, from + count)),
    fc.constantFrom(
      'vm-',
      'VM-11',
      '10.0',
      '10.0.3.4',
      'example',
      'nginx',
      'ærlig',
      'ÆRLIG',
      '%',
      '_',
      '\\',
      '1',
      'nowhere at all',
    ),
  )
  const pages = fc.record({ q: typed.filter((q) => q !== ''), after: fc.constantFrom(null, 'vm:vm-5', 'node:App_1') })
  await fc.assert(
    fc.asyncProperty(pages, async ({ q, after }) => {
      const scope = systemScope(database.db)
      const listed = await listResources(scope, { kind: null, q, isStale: null }, { after, limit: 51 })
      expect(listed.map(({ kind, id }) => `${kind}:${id}`)).toEqual(await asBefore(q, after))
      const found = await findResources(scope, { kind: null, text: q, limit: 2_000 })
      expect(new Set(found.map(({ kind, id }) => `${kind}:${id}`)).size).toBe(found.length)
      expect(found.map(({ kind, id }) => `${kind}:${id}`)).toEqual(expect.arrayContaining(await asBefore(q, null)))
    }),
    { numRuns: 150 },
  )
})
