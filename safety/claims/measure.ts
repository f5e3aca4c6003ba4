import type { Figure, Value } from './numbers.ts'
import { keyWords, mayMeasure, type Unit, unitOf } from './units.ts'

/** A number that is known: of a quote, or computed from quotes. Null unit: nothing says what it measures. */
export type Known = { value: number; unit: Unit | null; from: Value | null }

/** Does this known number say what the text says, in its unit, rounded to its places, or about as much where it says about? */
export function says(figure: Figure, known: Known): boolean {
  return inUnitOf(figure, known).some((value) => isSame(figure, value))
}

/** The known number in the unit of the text; none where they measure different things. */
function inUnitOf(figure: Figure, { value, unit, from }: Known): number[] {
  const wanted = figure.unit
  if (!wanted) {
    if (!unit || figure.noun === null || from === null)
      return unit && from === null && figure.noun !== null ? [] : [value]
    // 15 connections is not what 15 seconds say, but lag 15 may well be.
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
      (!isField && /%|percent|pct|ratio|utili[sz]ation/.test(from.place.part.document().text.slice(0, mostHeading)))
    if (!mayBe) return []
    return value >= 0 && value <= 1 && from.decimals > 0 ? [value, value * 100] : [value]
  }
  if (isField) return isBase && mayMeasure(from.path, wanted.dimension) ? [value] : []
  if (isBase) return [value]
  return namedUnits(from, wanted).flatMap((of) => wanted.factors.map((to) => (value * of) / to))
}

/** A text without a unit beside its numbers may name it in its heading, or the command by an option: how many base units one is. */
function namedUnits({ place }: Value, wanted: Unit): number[] {
  const text = `${place.part.document().text.slice(0, mostHeading)} ${place.part.head.slice(0, mostHeading)}`
  const base = /(?<![a-z0-9])(?:1b-blocks|bytes|-b1|-[a-z]*b|%s)(?![a-z])/.test(text) ? [1] : []
  const named = [...text.matchAll(/(?<![a-z])(?:1|1024)?-?([kmgt]i?b?|ms|min|hours|days)(?![a-z])(?:-blocks)?/g)]
  const units = named.flatMap((match) => unitOf(match[1] as string) ?? [])
  return [
    ...(wanted.dimension === 'bytes' ? base : []),
    ...units.flatMap((unit) => (unit.dimension === wanted.dimension ? unit.factors : [])),
  ]
}

const mostHeading = 4000
const aboutFraction = 0.05

function isSame(figure: Figure, value: number): boolean {
  const { value: said, decimals, isAbout, bound } = figure
  const difference = Math.abs(value - said)
  const size = Math.max(Math.abs(value), Math.abs(said))
  if (difference <= size * 1e-9) return true
  if (bound === 'at most') return value <= said && value >= said / 2
  if (bound === 'at least') return value >= said && value <= said * 2
  if (isAbout) return difference <= size * aboutFraction
  // Nothing and everything are not reached by rounding: 99.6 % is not 100 %.
  if (said === 0 || (figure.unit?.dimension === 'percent' && said === 100)) return false
  const step = 10 ** -decimals
  if (Math.abs(value) < step) return false
  const isRounded = difference <= step / 2 + size * 1e-9
  const isTruncated = Math.sign(value) === Math.sign(said) && Math.abs(value) > Math.abs(said) && difference < step
  return isRounded || (isTruncated && figure.unit !== null)
}
