import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { playPair } from '../support/played-pair.ts'
import { runCli } from '../support/run-cli.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine
beforeAll(async () => {
  spine = await startSpine({ parts: ['api'], environment: { AGENT_TRUST: 'propose' } })
})
afterAll(() => spine?.stop())

const nightshift = (...words: string[]) =>
  runCli(words, { NIGHTSHIFT_URL: spine.url, NIGHTSHIFT_TOKEN: spine.tokens.approver })

test('the terminal shows the record of a pair, sets its level with a reason, and says who did', async () => {
  await playPair(spine, { AGENT_TRUST: 'propose' }).propose()
  const promoted = await nightshift(
    ...['trust', 'promote', 'replication_lag', 'converge_shard', '--to', 'act', '--reason', 'it is the lab'],
  )
  expect(promoted).toMatchObject({ code: 0 })
  expect(promoted.stdout).toMatch(/proposed +1/)
  expect((await nightshift('trust')).stdout).toMatch(/replication_lag +converge_shard +act/)
  expect((await nightshift('trust', 'show', 'replication_lag', 'converge_shard')).stdout).toContain(
    'act, by approver: it is the lab',
  )
})
