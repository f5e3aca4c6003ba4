import { type Known, says } from './measure.ts'
import type { Figure, Value } from './numbers.ts'
import { secondsBetween } from './times.ts'
import type { Unit } from './units.ts'

const mostOperands = 24
const percent: Unit = { dimension: 'percent', factors: [1] }
const seconds: Unit = { dimension: 'seconds', factors: [1] }

/** Words that say that a number was worked out from others. */
const cue =
  /\b(?:over by|together|total|sum|altogether|in all|difference|differs?|more|fewer|less|free|left|remain\w*|grew|grown|growth|increase\w*|decrease\w*|rose|fell|dropped|up by|down by|per|times|twice|ratio|share|took|within|lasted|between|apart|later|earlier|short|missing|too many|combined|average|each|of|gap|ago|after|for)\b/

/** Is the number a sum, difference, product, ratio or duration of what is quoted? Small ones need a word that says so. */
export function isComputed(
  figure: Figure,
  clause: string,
  values: readonly Value[],
  times: readonly string[],
): boolean {
  const digits = String(Math.abs(figure.value))
    .replace(/[^\d]/g, '')
    .replace(/^0+|0+$/g, '').length
  if (digits < 3 && !cue.test(clause) && figure.unit?.dimension !== 'percent') return false
  return [...sums(values), ...pairs(values), ...durations(times)].some((known) => says(figure, known))
}

function based(value: Value): { value: number; unit: Unit | null } {
  if (!value.unit) return { value: value.value, unit: null }
  return { value: value.value * (value.unit.factors[0] as number), unit: { ...value.unit, factors: [1] } }
}

/** All quoted numbers of one key together, and those of one value as often as it stands there. */
function sums(values: readonly Value[]): Known[] {
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
    return [{ value: parts.reduce((sum, part) => sum + part.value, 0), unit, from: first.unit ? null : first }]
  })
}

function pairs(values: readonly Value[]): Known[] {
  const operands = values.slice(0, mostOperands)
  const known: Known[] = []
  for (const [index, first] of operands.entries()) {
    for (const second of operands.slice(index + 1)) {
      const a = based(first)
      const b = based(second)
      const from = first.unit ? null : first
      if (a.unit?.dimension === b.unit?.dimension) {
        known.push({ value: a.value + b.value, unit: a.unit, from })
        known.push({ value: Math.abs(a.value - b.value), unit: a.unit, from })
        for (const [part, whole] of [
          [a.value, b.value],
          [b.value, a.value],
        ] as const) {
          if (whole === 0) continue
          known.push({ value: (part / whole) * 100, unit: percent, from: null })
          known.push({ value: part / whole, unit: null, from: first })
        }
      }
      if (!a.unit || !b.unit) known.push({ value: a.value * b.value, unit: a.unit ?? b.unit, from })
    }
  }
  return known
}

function durations(times: readonly string[]): Known[] {
  return times.slice(0, mostOperands).flatMap((first, index) =>
    times.slice(index + 1, mostOperands).flatMap((second) => {
      const value = secondsBetween(first, second)
      return value === null ? [] : [{ value, unit: seconds, from: null }]
    }),
  )
}
