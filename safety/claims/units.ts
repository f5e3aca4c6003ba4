export type Dimension = 'bytes' | 'seconds' | 'percent' | 'cores' | 'celsius' | 'rate'

/** A unit as it is written: what it measures and how many of the base unit it is. KB is 1000 to some and 1024 to others. */
export type Unit = { dimension: Dimension; factors: readonly number[] }

const binary = (power: number) => [1024 ** power]
const both = (power: number) => [1000 ** power, 1024 ** power]
const entries: [string, Dimension, readonly number[]][] = [
  ['b byte bytes', 'bytes', [1]],
  ['kb kilobyte kilobytes', 'bytes', both(1)],
  ['mb megabyte megabytes', 'bytes', both(2)],
  ['gb gigabyte gigabytes', 'bytes', both(3)],
  ['tb terabyte terabytes', 'bytes', both(4)],
  ['kib ki', 'bytes', binary(1)],
  ['mib mi', 'bytes', binary(2)],
  ['gib gi', 'bytes', binary(3)],
  ['tib ti', 'bytes', binary(4)],
  ['k', 'bytes', both(1)],
  ['m', 'bytes', both(2)],
  ['g', 'bytes', both(3)],
  ['t', 'bytes', both(4)],
  ['ns nanoseconds', 'seconds', [1e-9]],
  ['us µs microseconds', 'seconds', [1e-6]],
  ['ms msec millisecond milliseconds', 'seconds', [1e-3]],
  ['s sec secs second seconds', 'seconds', [1]],
  ['min mins minute minutes', 'seconds', [60]],
  ['h hr hrs hour hours', 'seconds', [3600]],
  ['d day days', 'seconds', [86_400]],
  ['% percent pct', 'percent', [1]],
  ['mcpu millicores millicpu', 'cores', [1e-3]],
  ['cores core cpus', 'cores', [1]],
  ['°c celsius', 'celsius', [1]],
  ['qps rps iops', 'rate', [1]],
]
const units = new Map(
  entries.flatMap(([names, dimension, factors]) => names.split(' ').map((name) => [name, { dimension, factors }])),
)

export function unitOf(word: string | null): Unit | null {
  return word === null ? null : (units.get(word.toLowerCase()) ?? null)
}

/** Units that a key ends in: diskUsedBytes, ram_mib, cpuMc, lag_seconds. Short ones stand only there. */
const keyUnits: Record<string, Unit> = {
  mc: { dimension: 'cores', factors: [1e-3] },
  ratio: { dimension: 'percent', factors: [100] },
}
const ofKeys: [RegExp, Dimension][] = [
  [/^(?:bytes?|size|disk|mem|memory|ram|swap|rss|heap|quota|capacity|storage|filesystem)$/, 'bytes'],
  [/^(?:time|age|uptime|lag|latency|duration|delay|timeout|elapsed|ttl|interval|seconds)$/, 'seconds'],
  [/^(?:percent|pct|ratio|usage|utili[sz]ation|util|fraction|load|share|cpu)$/, 'percent'],
  [/^(?:cpu|cores|millicores)$/, 'cores'],
]

/** The words of a path of keys, in lower case: disk by directory logs. */
export function keyWords(path: readonly string[]): string[] {
  return path.flatMap((key) =>
    key
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .split(/[^a-z0-9%]+/)
      .filter(Boolean),
  )
}

/** The unit that a key says its number has; null where it says none. */
export function unitOfKey(path: readonly string[]): Unit | null {
  const last = keyWords(path.slice(-1)).at(-1) ?? ''
  if (last.length < 2) return null
  return keyUnits[last] ?? (last === 'ms' || last.length > 2 ? unitOf(last) : null)
}

/** May a number under this path without a unit be of that dimension? Disk by directory counts bytes. */
export function mayMeasure(path: readonly string[], dimension: Dimension): boolean {
  return keyWords(path).some((word) => ofKeys.some(([pattern, of]) => of === dimension && pattern.test(word)))
}
