import { BoundRefusal, numberOf, type SqlNode, strings } from './postgres-nodes.ts'

/**
 * Limits how much calls lengthen a text, because a value of a gigabyte takes memory that no time
 * limit frees.
 */

/** Most characters to which one call may lengthen a text. */
const maxWidth = 10_000
/** Most characters of a text that a call repeats for each match or row. */
const maxReplacement = 100

/** Index of the argument that a function repeats for each match or row. */
const repeated: Readonly<Record<string, number>> = {
  replace: 2,
  regexp_replace: 2,
  string_agg: 1,
  array_to_string: 1,
  concat_ws: 0,
}

export function checkWidth(node: SqlNode, name: string): void {
  const args = (node.args as SqlNode[] | undefined) ?? []
  const [first, second] = args
  if ((name === 'lpad' || name === 'rpad') && (numberOf(second) ?? maxWidth + 1) > maxWidth)
    throw new BoundRefusal(`${name} to more than ${maxWidth} characters`)
  if (name === 'format' && !/^[^%]*(?:%(?!\d*[1-9]\d{4}|-?\d{5}|.{0,9}\*)[^%]*)*$/.test(JSON.stringify(first ?? '')))
    throw new BoundRefusal('a format of more than 10000 characters')
  const named = ((first?.TypeCast as { arg?: SqlNode } | undefined)?.arg ?? first)?.A_Const
  if (name === 'pg_get_functiondef' && !named)
    throw new BoundRefusal('pg_get_functiondef of functions that are not named')
  if (Object.hasOwn(repeated, name)) checkRepeated(name, args)
}

/**
 * Checks that the repeated text is short and literal; within another replacement it may have one
 * character.
 */
function checkRepeated(name: string, args: readonly SqlNode[]): void {
  const length = lengthOf(args[repeated[name]!])
  const isNested = name.endsWith('replace') && /"sval":"(?:regexp_)?replace"/.test(JSON.stringify(args[0] ?? null))
  if (length === null || length > (isNested ? 1 : maxReplacement))
    throw new BoundRefusal(
      `${name} with a text that is not plain and short: write one of ${maxReplacement} characters at most`,
    )
}

/** Returns the length of a literal text; null for a computed one. */
function lengthOf(node: SqlNode | undefined): number | null {
  const inner = (node?.TypeCast as { arg?: SqlNode } | undefined)?.arg ?? node
  if (inner?.FuncCall !== undefined) {
    const { funcname, args } = inner.FuncCall as { funcname: unknown; args?: SqlNode[] }
    const [code] = args ?? []
    return strings(funcname).at(-1) === 'chr' && numberOf(code) !== null ? 1 : null
  }
  const value = inner?.A_Const as { sval?: { sval?: string }; isnull?: boolean } | undefined
  if (!value || (value.sval === undefined && value.isnull !== true)) return null
  return value.sval?.sval?.length ?? 0
}

/** Limits the width of `bpchar` and `bit`, which pad a value to their width. */
export function checkTypeWidth(node: SqlNode, name: string): void {
  if (name !== 'bpchar' && name !== 'bit') return
  const widths = ((node.typmods as SqlNode[] | undefined) ?? []).map(numberOf)
  if (widths.some((width) => width === null || width > maxWidth))
    throw new BoundRefusal(`a ${name} of more than ${maxWidth} characters`)
}
