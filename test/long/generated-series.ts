import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'
import { findProgram } from './real-servers.ts'

/** Series whose truth is known, since they are made here, and real servers that were given them. */

export type Sample = readonly [seconds: number, value: number]
export type GeneratedSeries = {
  name: string
  kind: (typeof kinds)[number]
  labels: Record<string, string>
  intervalSeconds: number
  samples: Sample[]
}

const kinds = ['steady', 'spiky', 'ended', 'gappy', 'reset', 'counter', 'level', 'brief'] as const
export const daySeconds = 86_400

/**
 * The same series for the same seed: of each kind one that is scraped every minute for so many
 * days, and one every 15 s for less.
 */
export function generateSeries(random: () => number, endSeconds: number, days: number): GeneratedSeries[] {
  return kinds.flatMap((kind) =>
    [
      { intervalSeconds: 60, length: days * daySeconds },
      { intervalSeconds: 15, length: Math.min(3, days) * daySeconds },
    ].map(({ intervalSeconds, length }) => {
      const offset = Math.floor(random() * intervalSeconds * 1_000) / 1_000
      const times = Array.from(
        { length: Math.floor(length / intervalSeconds) },
        (_, at) => Math.round((endSeconds - length + offset + at * intervalSeconds) * 1_000) / 1_000,
      )
      return {
        name: `made_${kind}`,
        kind,
        labels: { instance: `web-${intervalSeconds}:9100`, job: 'made' },
        intervalSeconds,
        samples: sampleOf[kind](times, random, intervalSeconds),
      }
    }),
  )
}

type Make = (times: readonly number[], random: () => number, intervalSeconds: number) => Sample[]

const round = (value: number): number => Math.round(value * 1_000) / 1_000
const at = (times: readonly number[], share: number): number => times[Math.floor(share * (times.length - 1))] as number
const wave = (time: number, random: () => number) => 40 + 10 * Math.sin(time / 7_000) + random()
const sampleOf: Record<(typeof kinds)[number], Make> = {
  steady: (times, random) => times.map((time) => [time, round(wave(time, random))]),
  // One to three samples, many hours apart in the long series.
  spiky(times, random, intervalSeconds) {
    const every = Math.max(120, 20_000 / intervalSeconds)
    let left = 0
    return times.map((time) => {
      if (left === 0 && random() < 1 / every) left = 1 + Math.floor(random() * 3)
      else if (left > 0) left -= 1
      return [time, round(left > 0 ? 150 + random() * 300 : 7 + random())]
    })
  },
  ended(times, random) {
    const end = at(times, 0.6 + random() * 0.35)
    return times.filter((time) => time < end).map((time) => [time, round(wave(time, random))])
  },
  gappy(times, random, intervalSeconds) {
    let until = 0
    return times.flatMap((time): Sample[] => {
      if (random() < intervalSeconds / 30_000) until = time + 600 + random() ** 3 * 100_000
      return time < until ? [] : [[time, round(wave(time, random))]]
    })
  },
  reset(times, random, intervalSeconds) {
    let value = 0
    return times.map((time) => {
      value = random() < intervalSeconds / 50_000 ? 0 : value + random() * 5
      return [time, round(value)]
    })
  },
  counter(times, random) {
    let value = 1_000
    return times.map((time) => {
      value += random() * (4 + 3 * Math.sin(time / 20_000))
      return [time, round(value)]
    })
  },
  level(times, random) {
    const changes = [0.3, 0.62, 0.9].map((share) => at(times, share))
    const levels = [12, 60, 25, 90]
    return times.map((time) => [
      time,
      round((levels[changes.filter((each) => time >= each).length] as number) + random()),
    ])
  },
  // There for a quarter of an hour or so, days apart.
  brief(times, random, intervalSeconds) {
    let until = 0
    return times.flatMap((time): Sample[] => {
      if (random() < intervalSeconds / 60_000) until = time + 300 + random() * 1_500
      return time < until ? [[time, round(200 + random())]] : []
    })
  },
}

/** Numbers from a seed. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export type FilledServer = { url: string; stop(): Promise<void> }

const labelsOf = ({ labels }: GeneratedSeries): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',')

/** A Prometheus that holds the series, as blocks that `promtool` made. */
export async function startFilledPrometheus(all: readonly GeneratedSeries[]): Promise<FilledServer> {
  const directory = temporaryDirectory()
  const text = [...new Set(all.map(({ name }) => name))].map((name) => {
    const lines = all
      .filter((each) => each.name === name)
      .flatMap((each) => each.samples.map(([time, value]) => `${name}{${labelsOf(each)}} ${value} ${time}\n`))
    return `# TYPE ${name} gauge\n${lines.join('')}`
  })
  const file = join(directory.path, 'made.txt')
  writeFileSync(file, `${text.join('')}# EOF\n`)
  const data = join(directory.path, 'data')
  const make = ['tsdb', 'create-blocks-from', 'openmetrics', '--quiet', '--max-block-duration=486h', file, data]
  execFileSync(findProgram('promtool') as string, make, { stdio: ['ignore', 'ignore', 'pipe'] })
  writeFileSync(join(directory.path, 'prometheus.yml'), 'global: {}\n')
  const port = await freePort()
  return await ready(`http://127.0.0.1:${port}`, '/-/ready', directory, [
    'prometheus',
    `--config.file=${join(directory.path, 'prometheus.yml')}`,
    `--storage.tsdb.path=${data}`,
    '--storage.tsdb.retention.time=90d',
    `--web.listen-address=127.0.0.1:${port}`,
  ])
}

/** A VictoriaMetrics that was sent the series. */
export async function startFilledVictoriaMetrics(all: readonly GeneratedSeries[]): Promise<FilledServer> {
  const directory = temporaryDirectory()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const server = await ready(url, '/health', directory, [
    'victoria-metrics',
    `-storageDataPath=${join(directory.path, 'data')}`,
    `-httpListenAddr=127.0.0.1:${port}`,
    '-retentionPeriod=3',
  ])
  const body = all.map(({ name, labels, samples }) =>
    JSON.stringify({
      metric: { __name__: name, ...labels },
      values: samples.map(([, value]) => value),
      timestamps: samples.map(([time]) => Math.round(time * 1_000)),
    }),
  )
  const sent = await fetch(`${url}/api/v1/import`, { method: 'POST', body: body.join('\n') })
  if (!sent.ok) throw new Error(`VictoriaMetrics answered ${sent.status}`)
  await fetch(`${url}/internal/force_flush`)
  const count = all.reduce((sum, { samples }) => sum + samples.length, 0)
  await eventually('VictoriaMetrics to show all samples', async () => {
    const form = new URLSearchParams({ query: 'sum(count_over_time({job="made"}[60d]))', nocache: '1' })
    const answer = await fetch(`${url}/api/v1/query`, { method: 'POST', body: form })
    return (await answer.text()).includes(`"${count}"`)
  })
  return server
}

type Directory = ReturnType<typeof temporaryDirectory>

async function ready(url: string, path: string, directory: Directory, words: string[]): Promise<FilledServer> {
  const [program = '', ...rest] = words
  const child = spawn(findProgram(program) as string, rest, {
    stdio: 'ignore',
    env: { PATH: process.env.PATH ?? '' },
  })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  await eventually(url, async () => (await fetch(`${url}${path}`).catch(() => null))?.ok)
  return {
    url,
    async stop() {
      child.kill('SIGKILL')
      await gone
      directory.remove()
    },
  }
}
