import { expect, test } from '@jest/globals'
import {
  claimReading,
  keepRefusedWindow,
  keepServed,
  keepShape,
  modelProfile,
  type Served,
} from '../../db/model-servers.ts'
import { plainShape, type RequestShape } from '../../domain/request-shape.ts'
import { moveClock, useDatabase } from '../support/database.ts'

const database = useDatabase()
let models = 0
const aModel = () => ({ server: 'http://models.example/v1', model: `m${++models}` })
const learned: RequestShape = { ...plainShape, limit: 'max_completion_tokens', temperature: 'omitted' }
const served: Served = {
  ...{ windowTokens: 8_192, source: 'max_model_len of /v1/models', identity: 'a' },
  ...{ cutsSilently: false, isProvisional: false },
}

test('what one worker learned every worker knows, for a week', async () => {
  const key = aModel()
  await keepShape(database.db, key, learned)
  expect((await modelProfile(database.db, key)).shape).toEqual(learned)
  expect((await modelProfile(database.db, { ...key, model: 'another' })).shape).toEqual(plainShape)
  await moveClock(database.owner, '7 days 1 minute')
  expect((await modelProfile(database.db, key)).shape).toEqual(plainShape)
  await moveClock(database.owner, '0 days')
})

test('another model or server behind the same name is learned from the beginning', async () => {
  const key = aModel()
  await claimReading(database.db, key)
  await keepServed(database.db, key, served)
  await keepShape(database.db, key, learned)
  await keepRefusedWindow(database.db, key, 4_096)
  await keepServed(database.db, key, served)
  expect(await modelProfile(database.db, key)).toMatchObject({
    shape: learned,
    windowTokens: 4_096,
    windowSource: 'a refusal',
  })
  await keepServed(database.db, key, { ...served, identity: 'b' })
  expect(await modelProfile(database.db, key)).toMatchObject({ shape: plainShape, windowTokens: 8_192 })
})

test('of many workers one asks the server, and again after ten minutes', async () => {
  const key = aModel()
  const claims = async () =>
    (await Promise.all(Array.from({ length: 8 }, () => claimReading(database.db, key)))).filter(Boolean)
  expect(await claims()).toHaveLength(1)
  await keepServed(database.db, key, { ...served, isProvisional: true })
  expect(await claims()).toHaveLength(0)
  await moveClock(database.owner, '16 seconds')
  expect(await claims()).toHaveLength(1)
  await keepServed(database.db, key, served)
  await moveClock(database.owner, '5 minutes')
  expect(await claims()).toHaveLength(0)
  await moveClock(database.owner, '11 minutes')
  expect(await claims()).toHaveLength(1)
  await moveClock(database.owner, '0 days')
})

test('a word of a shape that another version wrote is passed over', async () => {
  const key = aModel()
  await keepShape(database.db, key, { ...learned, limit: 'most_tokens' } as never)
  expect((await modelProfile(database.db, key)).shape).toEqual({ ...learned, limit: 'max_tokens' })
})
