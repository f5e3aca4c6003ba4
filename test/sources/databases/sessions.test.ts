import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Source } from '../../../domain/source.ts'
import { forgetSource, newSourceStates } from '../../../sources/ask.ts'
import { connectDatabase } from '../../../sources/databases/connect.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { type SiteDatabase, siteDatabase } from '../../support/site-database.ts'

const files = temporaryDirectory()
const states = newSourceStates(() => undefined, files.path)
let shop: SiteDatabase
let reader: string

beforeAll(async () => {
  shop = await siteDatabase(files.path)
  reader = readFileSync(shop.credential.slice('file:'.length), 'utf8').split(':')[0]!
})
afterAll(async () => {
  forgetSource(states, 'shop-db')
  forgetSource(states, 'also-shop')
  await shop?.drop()
  files.remove()
})

const source = (name = 'shop-db', more: object = {}) =>
  ({
    name,
    kind: 'postgresql',
    url: shop.url,
    credential: shop.credential,
    writeCredential: null,
    scheme: null,
    headers: {},
    caFile: null,
    certFile: null,
    keyFile: null,
    options: {},
    timeoutSeconds: 5,
    createdBy: 'anna',
    createdAt: '',
    ...more,
  }) as Source
const ask = (each = source()) => connectDatabase(each, files.path)({ sql: 'select 1 as one' })
const sessions = async () =>
  (await shop.run('select pid from pg_stat_activity where usename = $1', [reader])).map(({ pid }) => pid)

test('a removed source leaves no session at its server, and the session of another source stays', async () => {
  await ask()
  await ask(source('also-shop'))
  const kept = await sessions()
  expect(kept).toHaveLength(1)
  forgetSource(states, 'shop-db')
  await ask(source('also-shop'))
  expect(await sessions()).toEqual(kept)
  forgetSource(states, 'also-shop')
  await eventually('the session to end', async () => (await sessions()).length === 0)
})

test('a source with changed options ends its former session', async () => {
  await ask()
  const [before] = await sessions()
  await ask(source('shop-db', { timeoutSeconds: 6 }))
  await eventually('one session', async () => (await sessions()).length === 1)
  expect(await sessions()).not.toContain(before)
  forgetSource(states, 'shop-db')
})

test('a program that asked ends by itself', async () => {
  const program = `${files.path}/ask.ts`
  const root = process.cwd()
  writeFileSync(
    program,
    `import { connectDatabase } from '${root}/sources/databases/connect.ts'
    const { rows } = await connectDatabase(${JSON.stringify(source())}, ${JSON.stringify(files.path)})({ sql: 'select 1 as one' })
    console.log(JSON.stringify(rows))`,
  )
  expect((await promisify(execFile)(process.execPath, [program], { timeout: 30_000 })).stdout.trim()).toBe(
    '[{"one":1}]',
  )
})
