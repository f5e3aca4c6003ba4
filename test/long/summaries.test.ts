import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Source } from '../../domain/source.ts'
import { newSourceStates } from '../../sources/ask.ts'
import { planRead, readSource } from '../../sources/kinds.ts'
import { freshSeed } from '../support/random-cases.ts'
import {
  daySeconds,
  type FilledServer,
  type GeneratedSeries,
  generateSeries,
  randomOf,
  type Sample,
  startFilledPrometheus,
  startFilledVictoriaMetrics,
} from './generated-series.ts'
import { findProgram } from './real-servers.ts'

/** The whole: SUMMARY_WINDOWS=200 npm run test:long -- test/long/summaries. */
const windows = Number(process.env.SUMMARY_WINDOWS ?? 30)
const isWhole = windows >= 200
const seed = freshSeed ?? 20_261_126
/** Whole minutes ago: what a server keeps for later answers is not in the way. */
const endSeconds = Math.floor(Date.now() / 60_000) * 60 - 600
const series = generateSeries(randomOf(seed), endSeconds, isWhole ? 40 : 12)

const servers = [
  ['Prometheus', ['prometheus', 'promtool'], startFilledPrometheus],
  ['VictoriaMetrics', ['victoria-metrics'], startFilledVictoriaMetrics],
] as const

type Asked = { promql: string; about: GeneratedSeries[]; isPlain: boolean; windowSeconds: number; untilSeconds: number }
type Told = Record<string, unknown> & { labels?: Record<string, string> }

/** A window between an hour and a month, at any time of what was made. */
function chooseAsked(random: () => number): Asked {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  const { name, labels, kind } = pick(series)
  const isOne = random() < 0.8
  const about = series.filter((each) => each.name === name && (!isOne || each.labels.instance === labels.instance))
  const selector = isOne ? `${name}{instance="${labels.instance}"}` : name
  const isPlain = random() < 0.85
  const promql = isPlain
    ? selector
    : kind === 'counter'
      ? `rate(${selector}[5m])`
      : `${selector} ${kind === 'spiky' ? '> 100' : '* 1'}`
  const windowSeconds = Math.round((3_600 * ((31 * daySeconds) / 3_600) ** random()) / 60) * 60
  const back = labels.instance === 'web-15:9100' ? 2 * daySeconds : 20 * daySeconds
  const untilSeconds = random() < 0.3 ? endSeconds : endSeconds - Math.floor(random() * back)
  return { promql, about, isPlain, windowSeconds, untilSeconds }
}

/** Four significant figures are told. */
const isNear = (told: unknown, truth: number, share = 0.0006) =>
  typeof told === 'number' && Math.abs(told - truth) <= Math.max(Math.abs(truth) * share, 1e-9)

function findMoments(samples: readonly Sample[], value: number): number[] {
  return samples.filter(([, each]) => isNear(each, value)).map(([time]) => time)
}

const isAt = (told: unknown, moments: readonly number[], leewaySeconds: number) =>
  moments.some((moment) => Math.abs(Date.parse(String(told)) / 1_000 - moment) <= leewaySeconds + 1)

const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

function slopeOf(samples: readonly Sample[]): number {
  const [middle, mean] = [meanOf(samples.map(([time]) => time)), meanOf(samples.map(([, value]) => value))]
  let [above, below] = [0, 0]
  for (const [time, value] of samples) {
    above += (time - middle) * (value - mean)
    below += (time - middle) ** 2
  }
  return below === 0 ? 0 : above / below
}

/** False claims about a series, by its subject. */
function findErrors(told: Told, samples: readonly Sample[], asked: Asked, of: GeneratedSeries, step: number): string[] {
  const values = samples.map(([, value]) => value)
  const [min, max] = [Math.min(...values), Math.max(...values)]
  const [lastTime, last] = samples.at(-1) as Sample
  const { intervalSeconds } = of
  const wrong: string[] = []
  const expectThat = (holds: boolean, what: string) => void (holds || wrong.push(what))
  const silentSeconds = asked.untilSeconds - lastTime
  expectThat(isNear(told.last, last), 'last')
  expectThat(isAt(told.lastAt, [lastTime], intervalSeconds), 'lastAt')
  if (silentSeconds > 330 + step) expectThat(isAt(told.endedAt, [lastTime], intervalSeconds), 'endedAt')
  if (silentSeconds < 2 * intervalSeconds) expectThat(told.endedAt === undefined, 'endedAt')
  expectThat(isNear(told.max, max), 'max')
  expectThat(isNear(told.min, min), 'min')
  if (told.max !== told.min) {
    expectThat(isAt(told.maxAt, findMoments(samples, max), intervalSeconds), 'maxAt')
    expectThat(isAt(told.minAt, findMoments(samples, min), intervalSeconds), 'minAt')
  }
  expectThat(isNear(told.mean, meanOf(values), 0.005), 'mean')
  const [slope, steepest] = [slopeOf(samples) * 3_600, ((max - min) / asked.windowSeconds) * 3_600]
  expectThat(
    typeof told.perHour === 'number' &&
      Math.abs(told.perHour - slope) <= 0.005 * Math.max(Math.abs(slope), steepest) + 1e-9,
    'perHour',
  )
  wrong.push(...findGapErrors(told, samples, intervalSeconds, step), ...findChangeErrors(told, samples, of, asked))
  return wrong
}

/** A level that changed once, well within the window, is told with its time and both levels. */
function findChangeErrors(
  told: Told,
  samples: readonly Sample[],
  { kind, intervalSeconds }: GeneratedSeries,
  asked: Asked,
) {
  const changes = samples.slice(1).flatMap(([time, value], at) => {
    const isOne = kind === 'level' && Math.abs(value - (samples[at] as Sample)[1]) > 10
    return isOne ? [{ time, before: samples.slice(0, at + 1), after: samples.slice(at + 1) }] : []
  })
  const [only, other] = changes
  const isWithin = (part: readonly Sample[]) => part.length * intervalSeconds > asked.windowSeconds * 0.15
  if (!only || other || !isWithin(only.before) || !isWithin(only.after)) return []
  const mean = (part: readonly Sample[]) => meanOf(part.map(([, value]) => value))
  const isTold =
    isAt(told.changedAt, [only.time], intervalSeconds) &&
    isNear(told.before, mean(only.before), 0.02) &&
    isNear(told.after, mean(only.after), 0.02)
  return isTold ? [] : ['change']
}

/** Each gap that is listed is one, and the longest is listed. */
function findGapErrors(told: Told, samples: readonly Sample[], intervalSeconds: number, step: number): string[] {
  const truth = samples.slice(1).flatMap(([time], at): [number, number][] => {
    const before = (samples[at] as Sample)[0]
    return time - before > 2.5 * intervalSeconds ? [[before, time]] : []
  })
  const listed = ((told.gaps ?? []) as [string, string][]).map((gap) => gap.map((each) => Date.parse(each) / 1_000))
  const leeway = intervalSeconds + 1
  const isOne = ([from = 0, to = 0]: number[]) =>
    truth.some(([left, right]) => from >= left - leeway && to <= right + leeway && to - from >= (right - left) / 3)
  const [longest] = truth.toSorted((a, b) => b[1] - b[0] - (a[1] - a[0]))
  const isTold =
    !longest ||
    longest[1] - longest[0] < 3 * step + 300 ||
    listed.some(([from = 0]) => from >= longest[0] - leeway && from <= longest[1])
  return [...(listed.every(isOne) ? [] : ['gap']), ...(isTold ? [] : ['gap not told'])]
}

/** What a figure of points may say: nothing that no sample had, and its last as it is. */
function findErrorsOfPoints(told: Told, asked: Asked, samples: readonly Sample[], of: GeneratedSeries): string[] {
  if (asked.promql.startsWith('rate(')) return []
  // The first point looks five minutes back.
  const from = asked.untilSeconds - asked.windowSeconds - 300
  const values = of.samples.filter(([at]) => at >= from && at <= asked.untilSeconds).map(([, value]) => value)
  const atSeconds = Date.parse(String(told.lastAt)) / 1_000
  // Times are told in whole seconds.
  const isTrue = [0, 1].some((leeway) =>
    isNear(told.last, samples.findLast(([at]) => at <= atSeconds + leeway)?.[1] ?? NaN),
  )
  // A series that ended has its last point somewhere before.
  const isLast = told.endedAt !== undefined || isNear(told.last, (samples.at(-1) as Sample)[1])
  return [
    ...(isTrue && isLast ? [] : ['last of points']),
    ...(Number(told.max) <= Math.max(...values) * 1.001 ? [] : ['max of points']),
    ...(Number(told.min) >= Math.min(...values) * 0.999 ? [] : ['min of points']),
  ]
}

describe.each(servers)('summaries of a real %s', (_, programs, start) => {
  const missing = programs.filter((program) => findProgram(program) === null)
  if (missing.length > 0) {
    test.skip(`need ${missing.join(' and ')} (Debian's packages)`, () => {})
    return
  }
  let server: FilledServer
  let source: Source
  beforeAll(async () => {
    server = await start(series)
    source = {
      name: 'made',
      kind: 'prometheus',
      url: server.url,
      credential: null,
      writeCredential: null,
      caFile: null,
      scheme: null,
      headers: {},
      certFile: null,
      keyFile: null,
      options: {},
      timeoutSeconds: 30,
      createdBy: 'anna',
      createdAt: '',
    }
  })
  afterAll(async () => await server?.stop())

  async function read({ promql, windowSeconds, untilSeconds }: Omit<Asked, 'about' | 'isPlain'>) {
    const until = new Date(untilSeconds * 1_000).toISOString()
    const planned = planRead([source], 'query_metrics', {
      promql,
      window: windowSeconds === 0 ? 'now' : `${windowSeconds / 60}m`,
      until,
    })
    if (!planned.ok) throw new Error(planned.reason)
    return await readSource(planned, newSourceStates(), { nowMs: Date.now(), incidentBeganMs: null })
  }

  test(`describe in ${windows} windows from an hour to a month what the series did, and when`, async () => {
    const random = randomOf(seed + 1)
    const errors: string[] = []
    const counts = new Map<string, number>()
    for (let n = 0; n < windows; n += 1) {
      const asked = chooseAsked(random)
      const { summary, isEmpty, isPartial } = await read(asked)
      const step = Number(summary.stepSeconds)
      const from = asked.untilSeconds - asked.windowSeconds
      const truth = asked.about
        .map((of) => {
          const isMeant = (value: number) => !asked.promql.endsWith('> 100') || value > 100
          const samples = of.samples.filter(([at, value]) => at > from && at <= asked.untilSeconds && isMeant(value))
          return { of, samples }
        })
        .filter(({ samples }) => samples.length > 0)
      const found: string[] = []
      // More than a day of a metric without a label is asked of the series alone that have points.
      const isAll = asked.promql.includes('{') || asked.windowSeconds <= daySeconds
      if (truth.length > 0 && isEmpty) found.push('false absence')
      if (truth.length === 0 && !isEmpty && ((asked.isPlain && isAll) || !isPartial)) found.push('false presence')
      if (asked.isPlain && isAll && Number(summary.seriesFound) !== truth.length) found.push('seriesFound')
      const told = (summary.series ?? []) as Told[]
      for (const each of told) {
        const labels = { ...(summary.sharedLabels as object), ...each.labels } as Record<string, string>
        const match = truth.find(({ of }) => of.labels.instance === labels.instance)
        if (!match) found.push('unknown series')
        else if (asked.isPlain) found.push(...findErrors(each, match.samples, asked, match.of, step))
        else found.push(...findErrorsOfPoints(each, asked, match.samples, match.of))
      }
      if (!asked.isPlain && told.length > 0 && !summary.ofPoints) found.push('points not called so')
      if (!asked.isPlain && told.length === 0 && truth.length > 0 && !isPartial) found.push('not said to be sampled')
      expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
      for (const what of found) counts.set(what, (counts.get(what) ?? 0) + 1)
      if (found.length > 0)
        errors.push(`${asked.promql} ${asked.windowSeconds / 3_600}h until ${asked.untilSeconds}: ${found.join(', ')}`)
    }
    if (process.env.SUMMARY_SHOW)
      console.log(`${errors.length} of ${windows} wrong: ${JSON.stringify(Object.fromEntries(counts))}`)
    expect(errors).toEqual([])
  })

  const ended = series.find(({ kind }) => kind === 'ended') as GeneratedSeries
  const endedSelector = `${ended.name}{instance="${ended.labels.instance}"}`
  const endedAt = ended.samples.at(-1)?.[0] ?? 0
  test.each([
    ['made_nothing', endSeconds, 3_600, true],
    ['rate(made_nothing[5m])', endSeconds, 3_600, true],
    ['made_nothing', endSeconds, 0, true],
    // It has no value there, and had one half an hour before.
    [endedSelector, endedAt + 1_800, 0, false],
    [`${endedSelector} > 1000`, endedAt + 1_800, 0, false],
    [`rate(${endedSelector}[5m]) > 1000`, endedAt + 1_800, 0, false],
    // It has a value, which is compared: that there is none above is known.
    [`${endedSelector} > 1000`, endedAt - 600, 0, true],
    [`count(${endedSelector} > 1000)`, endedAt - 600, 0, true],
    // Points of a window are no more than points.
    [`${endedSelector} > 1000`, endedAt - 600, 3_600, false],
    ['made_spiky offset 1d > 9000', endSeconds, 3_600, false],
  ])('report an absence of %s only if the series is absent', async (promql, untilSeconds, windowSeconds, isAbsent) => {
    const { isEmpty, isPartial } = await read({ promql, untilSeconds, windowSeconds })
    expect([isEmpty, isPartial]).toEqual([isAbsent, !isAbsent])
  })

  test('do not call a metric unknown that disappeared half an hour ago', async () => {
    const labels = { instance: ended.labels.instance as string }
    const planned = planRead([source], 'describe_metrics', { labels, text: 'made_ended' })
    if (!planned.ok) throw new Error(planned.reason)
    const at = (seconds: number) =>
      readSource(planned, newSourceStates(), { nowMs: seconds * 1_000, incidentBeganMs: null })
    expect(await at(endedAt + 1_800)).toMatchObject({ isEmpty: false, isPartial: true })
    expect(await at(endedAt + 2 * 3_600)).toMatchObject({ isEmpty: true, isPartial: false })
  })
})
