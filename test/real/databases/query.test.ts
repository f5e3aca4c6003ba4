import { createHash } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import { SourceError } from '../../../sources/kind.ts'
import { planRead, type probeSource, readSource } from '../../../sources/kinds.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { hostileStatements } from './query/hostile.ts'
import { type QueryWorld, startQueryWorld } from './query/world.ts'

/**
 * Statements of a model on a real server: those of on-call runbooks run, and of the hostile ones
 * none leaves a trace.
 */
const lacking = whyNot('databases')
const when = lacking ? describe.skip : describe
const place = temporaryDirectory()
chmodSync(place.path, 0o755)
afterAll(() => place.remove())

type Outcome = { sql: string; code: string; detail: string; ms: number }

const onCall = readFileSync('test/data/sql/on-call-postgres.txt', 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
/** The half that nobody looks at while rules change. */
const isHeld = (sql: string): boolean => createHash('sha256').update(sql).digest()[0]! % 2 === 1

when(`query_database on PostgreSQL${lacking ? ` (${lacking})` : ''}`, () => {
  let world: QueryWorld
  const states = newSourceStates(() => undefined, place.path)
  beforeAll(async () => {
    await loadSql()
    world = await startQueryWorld(place.path)
  })
  afterAll(async () => await world?.stop())

  const sourceOf = (database: string, more: object = {}) =>
    ({
      name: database,
      kind: 'postgresql',
      url: world.url.replace(/[^/]*$/, database),
      credential: world.credential,
      writeCredential: null,
      scheme: null,
      headers: {},
      caFile: null,
      certFile: null,
      keyFile: null,
      options: { query: 'allowed' },
      timeoutSeconds: 3,
      createdBy: 'anna',
      createdAt: '',
      ...more,
    }) as Parameters<typeof probeSource>[0]

  /** As the API does it, without the rests of a source that failed. */
  async function ask(database: string, sql: string): Promise<Outcome & { whole: string }> {
    const began = performance.now()
    const done = (code: string, detail: string, whole = '') => ({
      sql,
      code,
      detail,
      whole,
      ms: performance.now() - began,
    })
    const planned = planRead([sourceOf(database)], 'query_database', { sql })
    if (!planned.ok) return done(planned.code, planned.reason)
    states.byName.clear()
    try {
      const read = await readSource(planned, states, { nowMs: Date.now(), incidentBeganMs: null })
      return done('ran', JSON.stringify(read.summary), read.whole)
    } catch (error) {
      if (!(error instanceof SourceError)) throw error
      return done(error.code, error.message)
    }
  }

  const report = (file: string | undefined, outcomes: readonly object[]) => {
    if (file !== undefined) writeFileSync(file, outcomes.map((each) => JSON.stringify(each)).join('\n'))
  }

  test('runs the queries of on-call runbooks, as the login with the granted rights', async () => {
    const halves = { tuning: [] as Outcome[], held: [] as Outcome[] }
    for (const sql of onCall) halves[isHeld(sql) ? 'held' : 'tuning'].push(await ask('shop', sql))
    report(
      process.env.QUERY_FINDINGS,
      halves.tuning.filter(({ code }) => code !== 'ran'),
    )
    for (const [half, outcomes] of Object.entries(halves)) {
      const ran = outcomes.filter(({ code }) => code === 'ran').length
      note(`on-call statements that ran, ${half} half`, `${ran} of ${outcomes.length}`)
      expect(ran / outcomes.length).toBeGreaterThanOrEqual(0.98)
    }
  })

  test('runs no hostile statement that leaves a trace, shows a secret or exceeds its limits', async () => {
    const before = { dump: world.dump(), files: world.files() }
    expect(before.dump).toContain('COPY public.orders')
    const outcomes: (Outcome & { class: string })[] = []
    for (const { class: name, sql: text } of hostileStatements(3_000)) {
      const sql = text
        .replaceAll('{victim}', String(world.victim.pid))
        .replaceAll('{object}', String(world.object))
        .replaceAll('{trap}', world.trap)
      for (const database of ['shop', 'traps']) {
        const { whole, ...outcome } = await ask(database, sql)
        outcomes.push({ class: name, ...outcome })
        expect([sql, (whole + outcome.detail).includes('planted-secret')]).toEqual([sql, false])
        expect([sql, Buffer.byteLength(whole) < 400_000, outcome.ms < 20_000]).toEqual([sql, true, true])
      }
    }
    report(
      process.env.QUERY_HOSTILE,
      outcomes.filter(({ code }) => code !== 'UNBOUNDED_QUERY'),
    )
    expect(world.files()).toEqual(before.files)
    expect(await world.victim.isAlive()).toBe(true)
    expect(await world.leftovers()).toEqual([])
    expect(world.dump()).toBe(before.dump)
    // The oracle tells an effect: the owner's session has one.
    await world.admin.query("select nextval('orders_id_seq')")
    expect(world.dump()).not.toBe(before.dump)
    const by = (code: string) => outcomes.filter((each) => each.code === code).length
    note('hostile statements, each on two databases', `${outcomes.length}`)
    note('refused before the server was asked', `${by('UNBOUNDED_QUERY')}`)
    note('refused by rights, catalogue, plan or server', `${by('REJECTED') + by('UNAUTHORIZED')}`)
    note('ended by a limit', `${by('TIMEOUT') + by('TOO_LARGE')}`)
    note('ran without an effect', `${by('ran')}`)
  })
})
