import { expect, test } from '@jest/globals'
import {
  claimReading,
  keepAbilities,
  keepRefusedWindow,
  keepShape,
  modelProfile,
  restingModels,
  restModel,
  type Served,
  storeServedModel,
} from '../../../db/models/profiles.ts'
import { plainShape, type RequestShape } from '../../../domain/chat.ts'
import { describeAbilities } from '../../../domain/status-words.ts'
import { moveClock, useDatabase } from '../../support/database.ts'

const database = useDatabase()
let models = 0
const aModel = () => ({ server: 'http://models.example/v1', model: `m${++models}` })
const learned: RequestShape = { ...plainShape, limit: 'max_completion_tokens', temperature: 'omitted' }
const served: Served = {
  windowTokens: 8_192,
  source: 'max_model_len of /v1/models',
  identity: 'a',
  cutsSilently: false,
  isProvisional: false,
  abilities: { grammar: 'yes', parallel: 'yes' },
}

test('what one worker learned about a model every worker uses, for a week', async () => {
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
  await storeServedModel(database.db, key, served)
  await keepShape(database.db, key, learned)
  await keepRefusedWindow(database.db, key, 4_096)
  await storeServedModel(database.db, key, served)
  expect(await modelProfile(database.db, key)).toMatchObject({
    shape: learned,
    windowTokens: 4_096,
    windowSource: 'a refusal',
  })
  await storeServedModel(database.db, key, { ...served, identity: 'b' })
  expect(await modelProfile(database.db, key)).toMatchObject({ shape: plainShape, windowTokens: 8_192 })
})

test('what a server reports, shows in its answers and refuses makes one profile', async () => {
  const key = aModel()
  await claimReading(database.db, key)
  await storeServedModel(database.db, key, served)
  await keepAbilities(database.db, key, { usage: 'yes', streaming: 'yes' })
  const known = { grammar: 'yes', parallel: 'yes', usage: 'yes', streaming: 'yes', tools: 'unknown' }
  expect((await modelProfile(database.db, key)).abilities).toMatchObject(known)
  await keepShape(database.db, key, { ...plainShape, calls: 'single', form: 'words', stream: 'off' })
  const { abilities } = await modelProfile(database.db, key)
  expect(abilities).toMatchObject({ parallel: 'no', schema: 'no', streaming: 'no', grammar: 'yes' })
  expect(describeAbilities(abilities)).toBe('grammar, counts tokens; not: several at once, JSON schema, streams')
  await storeServedModel(database.db, key, { ...served, identity: 'b', abilities: {} })
  expect(describeAbilities((await modelProfile(database.db, key)).abilities)).toBe('not known yet')
})

test('a model that did not answer rests for a while, counted from the last failed attempt', async () => {
  const key = aModel()
  await restModel(database.db, key, 60)
  await moveClock(database.owner, '30 seconds')
  await restModel(database.db, key, 60)
  expect(await restingModels(database.db)).toEqual([key])
  await moveClock(database.owner, '61 seconds')
  expect(await restingModels(database.db)).toEqual([key])
  await moveClock(database.owner, '400 seconds')
  expect(await restingModels(database.db)).toEqual([])
  await moveClock(database.owner, '0 days')
})

test('one of many workers asks the server, and again after ten minutes', async () => {
  const key = aModel()
  const claims = async () =>
    (await Promise.all(Array.from({ length: 8 }, () => claimReading(database.db, key)))).filter(Boolean)
  expect(await claims()).toHaveLength(1)
  await storeServedModel(database.db, key, { ...served, isProvisional: true })
  expect(await claims()).toHaveLength(0)
  await moveClock(database.owner, '16 seconds')
  expect(await claims()).toHaveLength(1)
  await storeServedModel(database.db, key, served)
  await moveClock(database.owner, '5 minutes')
  expect(await claims()).toHaveLength(0)
  await moveClock(database.owner, '11 minutes')
  expect(await claims()).toHaveLength(1)
  await moveClock(database.owner, '0 days')
})

test('a stored fact in the form of another version is ignored', async () => {
  const key = aModel()
  await keepShape(database.db, key, { ...learned, limit: 'most_tokens' } as never)
  expect((await modelProfile(database.db, key)).shape).toEqual({ ...learned, limit: 'max_tokens' })
})
