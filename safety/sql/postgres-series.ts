import { BoundRefusal, numberOf, type SqlNode, strings } from './postgres-nodes.ts'

/**
 * Counts the rows of `generate_series`, over literal numbers, and over times with a literal
 * interval.
 */

/** Counts the rows of one call. Refuses an unknown bound. */
export function countSeries(call: SqlNode): number {
  const args = (call.args as SqlNode[] | undefined) ?? []
  return countNumbers(args) ?? countTimes(args) ?? refuse()
}

function refuse(): never {
  throw new BoundRefusal('a series without plain bounds')
}

function countNumbers(args: readonly SqlNode[]): number | null {
  const [from, to, step = 1] = args.map(argument)
  if (typeof from !== 'number' || typeof to !== 'number' || typeof step !== 'number' || step === 0) return null
  return Math.max(1, Math.floor((to - from) / step) + 1)
}

function argument(node: SqlNode): number | null {
  const minus = node.A_Expr as SqlNode | undefined
  if (minus && minus.lexpr === undefined && strings(minus.name).join() === '-') {
    const inner = argument(minus.rexpr as SqlNode)
    return inner === null ? null : -inner
  }
  return numberOf(node)
}

/** A time in seconds from now, or from 1970 for a date of the calendar. */
type Moment = { from: 'now' | 'calendar'; seconds: number }

function countTimes(args: readonly SqlNode[]): number | null {
  const [from, to] = args.slice(0, 2).map(readMoment)
  const step = args[2] ? readInterval(args[2]) : null
  if (!from || !to || from.from !== to.from || step === null || step === 0) return null
  return Math.max(1, Math.floor((to.seconds - from.seconds) / step) + 1)
}

/**
 * `units`: the fewest seconds of each unit. `rounded`: the most seconds, which is how far
 * date_trunc can go back.
 */
const units: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_419_200,
  year: 31_536_000,
}
const rounded: Readonly<Record<string, number>> = { ...units, month: 2_678_400, year: 31_622_400 }

function readMoment(node: SqlNode): Moment | null {
  const cast = node.TypeCast as { arg: SqlNode; typeName?: SqlNode } | undefined
  if (cast) {
    const text = textOf(cast.arg)
    return text === null ? readMoment(cast.arg) : readDate(text)
  }
  if (node.SQLValueFunction !== undefined) return { from: 'now', seconds: 0 }
  const call = node.FuncCall as SqlNode | undefined
  if (call) return readCall(call)
  const { name, lexpr, rexpr } = (node.A_Expr ?? {}) as SqlNode
  const sign = strings(name).join('')
  if ((sign !== '-' && sign !== '+') || !lexpr) return null
  const base = readMoment(lexpr as SqlNode)
  const by = readInterval(rexpr as SqlNode)
  return base === null || by === null ? null : { ...base, seconds: base.seconds + (sign === '-' ? -by : by) }
}

function readCall({ funcname, args }: SqlNode): Moment | null {
  const name = strings(funcname).at(-1)
  if (name === 'now' && args === undefined) return { from: 'now', seconds: 0 }
  if (name !== 'date_trunc') return null
  const [unit, inner] = (args as SqlNode[] | undefined) ?? []
  const moment = inner ? readMoment(inner) : null
  const word = unit ? textOf(unit) : null
  const most = word === null ? undefined : rounded[word]
  return moment === null || most === undefined ? null : { ...moment, seconds: moment.seconds - most }
}

function readDate(text: string): Moment | null {
  const at = /^\d{4}-\d{2}-\d{2}(?:[ T][\d:.]+)?(?:Z|\+00)?$/.test(text)
    ? Date.parse(`${text.slice(0, 10)}T00:00:00Z`)
    : Number.NaN
  return Number.isNaN(at) ? null : { from: 'calendar', seconds: at / 1_000 }
}

/** Reads `interval '5 minutes'` in seconds, with each unit at its shortest. */
function readInterval(node: SqlNode): number | null {
  const { arg, typeName } = (node.TypeCast ?? {}) as { arg?: SqlNode; typeName?: SqlNode }
  if (!arg || strings(typeName?.names).at(-1) !== 'interval' || typeName?.typmods !== undefined) return null
  const [, count, unit] =
    /^\s*(\d{1,6})\s*(second|minute|hour|day|week|month|year)s?\s*$/i.exec(textOf(arg) ?? '') ?? []
  return count === undefined ? null : Number(count) * units[unit!.toLowerCase()]!
}

const textOf = (node: SqlNode): string | null =>
  (node.A_Const as { sval?: { sval?: string } } | undefined)?.sval?.sval ?? null
