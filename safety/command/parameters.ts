import type { Word, WordPart } from 'unbash'
import { type Constants, remember } from './constants.ts'

/** What a shell makes of a parameter's value, where it says to change it. */

/** A value that is not known: empty as a rule, since nothing sets it. No word can hold this character. */
export const unknown = '\u0000'

export type Parameter = Extract<WordPart, { type: 'ParameterExpansion' }>

/** The value of `${a:-x}`, `${a#x}`, `${a/x/y}` and the like; `operand` writes out the words inside. */
export function changed(
  values: readonly string[] | null,
  part: Parameter,
  operation: NonNullable<Parameter['operation']>,
  operand: (word: Word | undefined) => string,
  constants: Constants,
): readonly string[] {
  if (operation.type === 'Default') {
    const isSet = values !== null && values.join('') !== ''
    const other = () => operand(operation.operand)
    if (operation.operator.endsWith('+')) return isSet ? [other()] : []
    if (isSet || operation.operator.endsWith('?')) return values ?? [unknown]
    const otherwise = other()
    if (operation.operator.endsWith('=')) remember(constants, part.parameter, [otherwise])
    return [otherwise]
  }
  if (values === null) return [unknown]
  switch (operation.type) {
    case 'Slice': {
      const from = Number(operand(operation.offset))
      const length = operation.length ? Number(operand(operation.length)) : Number.POSITIVE_INFINITY
      if (!Number.isFinite(from)) return [unknown]
      if (part.index || part.parameter === '@' || part.parameter === '*') return values.slice(from, from + length)
      const text = values.join(' ')
      const start = from < 0 ? Math.max(0, text.length + from) : from
      return [length < 0 ? text.slice(start, length) : text.slice(start, start + length)]
    }
    case 'Remove': {
      const what = operand(operation.operand)
      return values.map((value) => removed(value, what, operation.operator))
    }
    case 'Replace': {
      const [from, to] = [operand(operation.pattern), operand(operation.replacement)]
      if (from === '' || /[*?[]/.test(from)) return values
      return values.map((value) =>
        operation.operator === '//' ? value.replaceAll(from, to) : value.replace(from, () => to),
      )
    }
    case 'CaseModification': {
      const all = operation.operator.length === 2
      const turn = (text: string) => (operation.operator[0] === '^' ? text.toUpperCase() : text.toLowerCase())
      return values.map((value) => (all ? turn(value) : turn(value.slice(0, 1)) + value.slice(1)))
    }
    case 'Transform':
      return values
    default:
      return [unknown]
  }
}

/** `${a#x}`, `${a%x}`; of patterns only `*` with one literal beside it. */
function removed(value: string, what: string, operator: string): string {
  const long = operator.length === 2
  const literal = what.replace(/^\*|\*$/g, '')
  if (literal === '' || /[*?[]/.test(literal)) return value
  if (operator.startsWith('#')) {
    if (!what.startsWith('*')) return value.startsWith(literal) ? value.slice(literal.length) : value
    const at = long ? value.lastIndexOf(literal) : value.indexOf(literal)
    return at < 0 ? value : value.slice(at + literal.length)
  }
  if (!what.endsWith('*')) return value.endsWith(literal) ? value.slice(0, -literal.length) : value
  const at = long ? value.indexOf(literal) : value.lastIndexOf(literal)
  return at < 0 ? value : value.slice(0, at)
}
