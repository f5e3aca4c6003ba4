import { expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { replay } from '../../safety/replay.ts'
import { live } from '../simulation/life.ts'
import { facts } from '../simulation/world.ts'

test('judging stored calls again gives the same rulings, whatever happened between', async () => {
  let judged = 0
  for (let seed = 0; seed < 300; seed += 1) {
    const { world } = await live(seed)
    for (const incident of world.incidents.values()) {
      const report = replay(incident.rows, facts, incident.resource)
      expect([seed, report.differences, report.unrepeatable]).toEqual([seed, [], 0])
      judged += report.judged
    }
  }
  expect(judged).toBeGreaterThan(3_000)
})

/** A quiet life in which a shard was looked at. */
async function aboutShard() {
  for (let seed = 0; seed < 50; seed += 1) {
    for (const incident of (await live(seed, { calm: true })).world.incidents.values()) {
      if (incident.rows.some((row) => row.kind === 'call_judged' && row.metadata.tool === 'get_shard')) return incident
    }
  }
  throw new Error('no quiet life looked at a shard')
}

test('a changed rule shows as a difference, with the old and the new decision', async () => {
  const incident = await aboutShard()
  const changed = incident.rows.map((row) =>
    row.kind === 'call_judged' && row.metadata.tool === 'get_shard'
      ? ({ ...row, metadata: { ...row.metadata, verdict: 'ask', code: 'RISK_HIGH' } } as IncidentEvent)
      : row,
  )
  const { differences } = replay(changed, facts, incident.resource)
  expect(differences[0]).toMatchObject({ was: { verdict: 'ask' }, is: { verdict: 'run', code: 'READ' } })
})

test('a ruling of a version that stored too little is counted, not guessed', async () => {
  const { world } = await live(2, { calm: true })
  const incident = [...world.incidents.values()][0]!
  const old = incident.rows.map((row) =>
    row.kind === 'call_judged' ? ({ ...row, metadata: { ...row.metadata, basis: undefined } } as IncidentEvent) : row,
  )
  expect(replay(old, facts, incident.resource)).toMatchObject({ judged: 0, differences: [] })
  expect(replay(old, facts, incident.resource).unrepeatable).toBeGreaterThan(0)
})
