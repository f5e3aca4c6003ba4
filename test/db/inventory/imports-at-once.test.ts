import { expect, test } from '@jest/globals'
import { importSiteFile } from '../../../db/inventory/import-site.ts'
import { useDatabase } from '../../support/database.ts'

const database = useDatabase()

test('parallel imports beside a platform keep what each of them adds', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  const wish = { isDryRun: false, isPruning: false, hasPlatform: true, who: 'anna' }
  await Promise.all(
    ids.map((id) => {
      const file = { groups: [], nodes: [], hosts: [], resources: [{ kind: 'cluster' as const, id }], relations: [] }
      return importSiteFile(database.db, file, wish)
    }),
  )
  const rows = await database.db
    .selectFrom('resource')
    .select('id')
    .where('kind', '=', 'cluster')
    .orderBy('id')
    .execute()
  expect(rows.map(({ id }) => id)).toEqual(ids)
})
