import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { guardValues } from '../../../safety/sql/postgres-guards.ts'
import { maskLiterals } from '../../../sources/databases/statement.ts'
import { plantSecrets } from '../../real/databases/secrets.ts'
import { openShop } from './shop.ts'

/**
 * What the server makes of a statement, beside what Nightshift makes of it: neither leaves a value.
 */

let shop: Awaited<ReturnType<typeof openShop>>
beforeAll(async () => {
  shop = await openShop('create table held (query text)')
})
afterAll(async () => await shop?.drop())

test('the server leaves no value in what it passes to a function, in any form of a literal', async () => {
  const planted = plantSecrets().filter(({ statement }) => statement !== undefined)
  const guarded = guardValues('select reverse(query) as backwards from held', {
    plain: new Set(),
    statements: new Set(['query']),
  })
  if ('refusal' in guarded) throw new Error(guarded.refusal)
  const shown: string[] = []
  // As they are, behind words and comments, and cut within the value as a server does.
  for (const { statement, secret } of planted)
    for (const text of [
      statement!,
      `/* it's */ ${statement}`,
      `-- "x\n${statement}`,
      `"a'b" ${statement}`,
      statement!.slice(0, statement!.indexOf(secret) + 10),
    ]) {
      await shop.run('truncate held')
      await shop.run('insert into held values ($1)', [text])
      const [row] = await shop.run(guarded.sql)
      const said = [...String(row?.backwards)].reverse().join('')
      for (const each of [said, maskLiterals(text, 'postgres')])
        if (each.includes(secret.slice(0, 8))) shown.push(`${text} => ${each}`)
    }
  expect(shown).toEqual([])
})
