import { expect, test } from '@jest/globals'
import { Connection } from '@temporalio/client'
import pg from 'pg'
import { freshDatabase, temporalAddress } from '../support/broker.ts'

test('each test gets its own migrated database', async () => {
  const [one, other] = await Promise.all([freshDatabase(), freshDatabase()])
  const client = new pg.Client({ connectionString: one.url })
  await client.connect()
  try {
    expect((await client.query('select count(*)::int as count from incident')).rows).toEqual([{ count: 0 }])
    expect(one.url).not.toBe(other.url)
  } finally {
    await client.end()
    await Promise.all([one.drop(), other.drop()])
  }
})

test('the Temporal server has the search attributes', async () => {
  const connection = await Connection.connect({ address: await temporalAddress() })
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace: 'default' })
    expect(Object.keys(customAttributes ?? {})).toEqual(
      expect.arrayContaining(['IncidentType', 'Severity', 'Target', 'Role', 'Status']),
    )
  } finally {
    await connection.close()
  }
})
