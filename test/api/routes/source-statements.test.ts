import { expect, test } from '@jest/globals'
import { describedTools } from '../../../tools/registry.ts'
import { useApi } from '../../support/api.ts'

const api = useApi()

const body = (options: object) => ({ kind: 'postgresql', url: 'postgresql://127.0.0.1:9/shop', options })
const auditOf = async (what: string) => (await api.get(`/audit?what=${what}`)).body as unknown as { items: unknown[] }

test('only an admin allows statements for a source or withdraws them, and each change is an audit row with person and time', async () => {
  const refused = await api.put('/sources/shop-db', { body: body({ query: 'allowed' }), as: api.tokens.operator })
  expect(refused.status).toBe(403)
  expect((await api.put('/sources/shop-db', { body: body({ query: 'yes' }) })).status).toBe(422)
  for (const options of [{}, { query: 'allowed' }, { query: 'allowed' }, {}])
    expect((await api.put('/sources/shop-db', { body: body(options) })).status).toBe(200)
  for (const what of ['source.statements_allowed', 'source.statements_taken_back'])
    expect((await auditOf(what)).items).toEqual([
      expect.objectContaining({ who: 'admin', subject: 'shop-db', at: expect.stringMatching(/Z$/) }),
    ])
})

test('rows of tables are shown to investigations and admins, and a source that does not allow this says who may read', async () => {
  await api.put('/sources/shop-db', { body: body({}) })
  const ask = (as = api.tokens.admin) =>
    api.post('/sources/read', { body: { tool: 'query_database', arguments: { sql: 'select 1' } }, as })
  expect((await ask()).body).toMatchObject({ status: 422, detail: expect.stringContaining('an admin may allow') })
  await api.put('/sources/shop-db', { body: body({ query: 'allowed' }) })
  expect((await ask(api.tokens.viewer)).body).toMatchObject({ status: 403, detail: expect.stringContaining('admins') })
  expect((await ask()).status).toBe(424)
})

test('a model is offered statements only if a source allows them', () => {
  const offered = (has: object) => describedTools(null, [], ['postgresql'], has).map(({ name }) => name)
  expect(offered({})).not.toContain('query_database')
  expect(offered({ queries: true })).toContain('query_database')
})
