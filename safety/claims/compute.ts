import { type KnownQuantity, says, type Unit } from './measure.ts'
import { type Figure, secondsBetween, type Value } from './numbers.ts'

const mostOperands = 24
const percent: Unit = { dimension: 'percent', factors: [1] }
const seconds: Unit = { dimension: 'seconds', factors: [1] }

/** Words that say how a number was worked out from others. */
const cues = {
  sum: /\b(?:together|total|sum|altogether|in all|combined)\b/,
  difference:
    /\b(?:over by|by|difference|differs?|more|fewer|less|free\w*|left|remain\w*|grew|grown|growth|increase\w*|decrease\w*|rose|fell|dropped|short|missing|too many|apart|gap|available)\b/,
  ratio: /\b(?:times|twice|half|halved|doubled?|tripled?|ratio|share|per|each)\b|%|percent/,
  mean: /\b(?:average|mean)\b/,
  duration: /\b(?:took|within|lasted|between|after|later|earlier|ago|apart|for|took|down for|in)\b/,
}
type Way = keyof typeof cues
/** So many digits are met by chance too seldom to ask for a word. */
const tellingDigits = 4

/** Is the number a sum, difference, product, ratio or duration of what is quoted? A short one needs a word that says so. */
export function isComputed(
  figure: Figure,
  clause: string,
  values: readonly Value[],
  times: readonly string[],
): boolean {
  const digits = String(Math.abs(figure.value))
    .replace(/[^\d]/g, '')
    .replace(/^0+|0+$/g, '').length
  const mayBe = (way: Way) => digits >= tellingDigits || cues[way].test(clause)
  return [...sums(values), ...pairs(values), ...durations(times)].some(
    ({ way, ...known }) => mayBe(way) && says(figure, known),
  )
}

type Computation = KnownQuantity & { way: Way }

function based(value: Value): { value: number; unit: Unit | null } {
  if (!value.unit) return { value: value.value, unit: null }
  return { value: value.value * (value.unit.factors[0] as number), unit: { ...value.unit, factors: [1] } }
}

/** All quoted numbers of one key together, and those of one value as often as it stands there. */
function sums(values: readonly Value[]): Computation[] {
  if (values.length < 2) return []
  const groups = new Map<string, Value[]>()
  for (const value of values) {
    const key = value.path.filter((step) => !/^\d+$/.test(step)).join('.')
    groups.set(key, [...(groups.get(key) ?? []), value])
  }
  return [...groups.values(), [...values]].flatMap((group) => {
    const [first] = group
    if (!first || group.length < 2) return []
    const parts = group.map(based)
    const unit = parts[0]?.unit ?? null
    if (parts.some((part) => part.unit?.dimension !== unit?.dimension)) return []
    const total = parts.reduce((sum, part) => sum + part.value, 0)
    const from = first.unit ? null : first
    return [
      { way: 'sum' as const, value: total, unit, from },
      { way: 'mean' as const, value: total / parts.length, unit, from },
    ]
  })
}

function pairs(values: readonly Value[]): Computation[] {
  const operands = values.slice(0, mostOperands)
  const known: Computation[] = []
  for (const [index, first] of operands.entries()) {
    for (const second of operands.slice(index + 1)) {
      const a = based(first)
      const b = based(second)
      const from = first.unit ? null : first
      if (a.unit?.dimension === b.unit?.dimension) {
        known.push({ way: 'sum', value: a.value + b.value, unit: a.unit, from })
        known.push({ way: 'difference', value: Math.abs(a.value - b.value), unit: a.unit, from })
        for (const [part, whole] of [
          [a.value, b.value],
          [b.value, a.value],
        ] as const) {
          if (whole === 0 || a.unit?.dimension === 'percent') continue
          known.push({ way: 'ratio', value: (part / whole) * 100, unit: percent, from: null })
          known.push({ way: 'ratio', value: part / whole, unit: null, from: first })
        }
      }
      if (!a.unit || !b.unit) known.push({ way: 'ratio', value: a.value * b.value, unit: a.unit ?? b.unit, from })
    }
  }
  return known
}

function durations(times: readonly string[]): Computation[] {
  return times.slice(0, mostOperands).flatMap((first, index) =>
    times.slice(index + 1, mostOperands).flatMap((second) => {
      const value = secondsBetween(first, second)
      return value === null ? [] : [{ way: 'duration' as const, value, unit: seconds, from: null }]
    }),
  )
}
