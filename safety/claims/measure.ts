import type { Figure, QuotedNumber } from './numbers.ts'

/** A known number: quoted, or computed from quotes. `unit` is null if it is unknown. */
export type KnownQuantity = { value: number; unit: Unit | null; from: QuotedNumber | null }

/**
 * Whether a known number is the one in the text, in the text's unit and rounded to its decimal
 * places, or close to it if the text says "about".
 */
export function matchesFigure(figure: Figure, known: KnownQuantity): boolean {
  return inUnitOf(figure, known).some((value) => isSame(figure, value))
}

/** Converts a known number to the text's unit; empty if the units measure different things. */
function inUnitOf(figure: Figure, { value, unit, from }: KnownQuantity): number[] {
  const wanted = figure.unit
  if (!wanted) {
    if (!unit || figure.noun === null || from === null)
      return unit && from === null && figure.noun !== null ? [] : [value]
    // Compares the counted noun with the key: "15 connections" is not shown by 15 seconds, but "lag
    // 15" may be.
    return /^(?:of|to|at|in|on|and|or|for|from|with|by|is|was|instead|while|should|after|before|than|per|under|above|below|over|when|but|as|against)$/.test(
      figure.noun,
    ) || keyWords(from.path).some((word) => word.startsWith(figure.noun!.replace(/s$/, '')))
      ? [value]
      : []
  }
  if (unit) {
    if (unit.dimension !== wanted.dimension) return []
    return unit.factors.flatMap((of) => wanted.factors.map((to) => (value * of) / to))
  }
  if (from === null) return []
  const isBase = wanted.factors.length === 1 && wanted.factors[0] === 1
  const isField = typeof from.place.leaf.value === 'number'
  if (wanted.dimension === 'percent') {
    const mayBe =
      mayMeasure(from.path, 'percent') ||
      (!isField && /%|percent|pct|ratio|utili[sz]ation/.test(from.place.part.document().text.slice(0, maxHeading)))
    if (!mayBe) return []
    return value >= 0 && value <= 1 && from.decimals > 0 ? [value, value * 100] : [value]
  }
  if (isField) return isBase && mayMeasure(from.path, wanted.dimension) ? [value] : []
  if (isBase) return [value]
  return namedUnits(from, wanted).flatMap((of) => wanted.factors.map((to) => (value * of) / to))
}

/**
 * Finds the units of numbers without a unit: in the heading of the result, or in an option of the
 * command.
 */
function namedUnits({ place }: QuotedNumber, wanted: Unit): number[] {
  const text = `${place.part.document().text.slice(0, maxHeading)} ${place.part.head.slice(0, maxHeading)}`
  const base = /(?<![a-z0-9])(?:1b-blocks|bytes|-b1|-[a-z]*b|%s)(?![a-z])/.test(text) ? [1] : []
  const named = [...text.matchAll(/(?<![a-z])(?:1|1024)?-?([kmgt]i?b?|ms|min|hours|days)(?![a-z])(?:-blocks)?/g)]
  const units = named.flatMap((match) => unitOf(match[1] as string) ?? [])
  return [
    ...(wanted.dimension === 'bytes' ? base : []),
    ...units.flatMap((unit) => (unit.dimension === wanted.dimension ? unit.factors : [])),
  ]
}

const maxHeading = 4000
const aboutFraction = 0.05

function isSame(figure: Figure, value: number): boolean {
  const { value: said, decimals, isAbout, bound } = figure
  const difference = Math.abs(value - said)
  const size = Math.max(Math.abs(value), Math.abs(said))
  if (difference <= size * 1e-9) return true
  if (bound === 'at most') return value <= said && value >= said / 2
  if (bound === 'at least') return value >= said && value <= said * 2
  if (isAbout) return difference <= size * aboutFraction
  // Rejects a figure that was rounded to 0 or to 100 %: 99.6 % is not 100 %.
  if (said === 0 || (figure.unit?.dimension === 'percent' && said === 100)) return false
  const step = 10 ** -decimals
  if (Math.abs(value) < step) return false
  const isRounded = difference <= step / 2 + size * 1e-9
  const isTruncated = Math.sign(value) === Math.sign(said) && Math.abs(value) > Math.abs(said) && difference < step
  return isRounded || (isTruncated && figure.unit !== null)
}

type Dimension = 'bytes' | 'seconds' | 'percent' | 'cores' | 'celsius' | 'rate'

/**
 * A unit: what it measures, and its size in base units. KB is 1000 to some programs, 1024 to
 * others, so several sizes are possible.
 */
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

/**
 * Units at the end of a key: diskUsedBytes, ram_mib, cpuMc, lag_seconds. Short units are read only
 * there.
 */
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

/** Lists the words of a path of keys, in lower case, such as: disk by directory logs. */
export function keyWords(path: readonly string[]): string[] {
  return path.flatMap((key) =>
    key
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .split(/[^a-z0-9%]+/)
      .filter(Boolean),
  )
}

/** Reads the unit from a key; null if the key has none. */
export function unitOfKey(path: readonly string[]): Unit | null {
  const [last = '', before] = keyWords(path.slice(-1)).reverse()
  // Reads a rate per second as a rate, which is not a duration in seconds.
  if (before === 'per') return /^s(?:ec|econds?)?$/.test(last) ? unitOf('rps') : null
  if (last.length < 2) return null
  return keyUnits[last] ?? (last === 'ms' || last.length > 2 ? unitOf(last) : null)
}

/**
 * Whether the path of a number without a unit allows this dimension: disk by directory counts
 * bytes.
 */
function mayMeasure(path: readonly string[], dimension: Dimension): boolean {
  return keyWords(path).some((word) => ofKeys.some(([pattern, of]) => of === dimension && pattern.test(word)))
}
