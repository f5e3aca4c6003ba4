import { withoutNoise } from '../domain/envelope.ts'
import { inlineCharacters, type RunbookMatch } from '../domain/runbook.ts'
import { cutCommands } from './cut-result.ts'

/**
 * An attempt's things as shown: each whole once, later only its changes. Filled in the transcript's
 * order.
 */
export type ShownThings = Map<string, { where: string; fields: Fields }>
type Fields = Record<string, unknown>

/** Less than this is said again: a reference would not be shorter. */
const minSaved = 20
/** Shorter, and what an answer repeats of its call costs less than a reader who misses it. */
const minEchoCharacters = 24
/** What names a thing or says how it is: short, and what a claim quotes, so each answer has it. */
const always = [
  'kind',
  'id',
  'name',
  'node',
  'vm',
  'path',
  'pid',
  'start_time',
  'status',
  'state',
  'health',
  'running',
  'host',
  'startsAt',
]
const maxAlwaysCharacters = 100

const isObject = (value: unknown): value is Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/**
 * Names by which a thing of an answer is known again. A device's own words go by the device: two
 * have a process 1.
 */
function nameOf(fields: Fields, device: string | null): string | null {
  const { id, kind, name, startsAt, labels, vm, reason, pid, start_time: started, body } = fields
  if (device !== null && typeof pid === 'number' && typeof started === 'string')
    return `process of ${device} ${pid} ${started}`
  if (device !== null && typeof id === 'string' && typeof kind !== 'string') return `id of ${device} ${id}`
  if (typeof id === 'string') return `id ${typeof kind === 'string' ? kind : ''} ${id}`
  if (typeof name === 'string' && typeof startsAt === 'string')
    return `alert ${name} ${isObject(labels) ? sorted(labels) : startsAt}`
  if (typeof name === 'string' && typeof body === 'string') return `runbook ${name}`
  if (typeof vm === 'string' && typeof reason === 'string') return `unplaced ${vm}`
  return typeof pid === 'number' && typeof started === 'string' ? `process ${pid} ${started}` : null
}

/**
 * An answer as the model sees it: without noise, and of an earlier thing only what differs now,
 * with `rest` for the place of the rest. A lost field is null. `call`: the very same call, whose
 * answer is compared whole.
 */
export function showAnswer(answer: unknown, call: Call | undefined, where: Omit<At, 'device'>): unknown {
  const data = cutCommands(dropEcho(dropDevice(answer, call?.arguments?.on), call))
  const at = { ...where, device: deviceIn(answer) }
  if (!isObject(data) || nameOf(data, at.device) !== null || !call) return showValue(data, at)
  return showThing(data, `call ${nameOfCall(call)}`, at)
}

type Call = { tool: string; arguments: Fields | null }

/** The same call has the same name, whatever sentence argues for it. */
export function nameOfCall({ tool, arguments: args }: Call): string {
  const { reason: _, ...named } = args ?? {}
  return `${tool} ${JSON.stringify(named)}`
}

/** Without the device that was asked. Where another one answered, the answer names it. */
function dropDevice(answer: unknown, on: unknown): unknown {
  if (!isObject(answer) || !isObject(answer.on) || answer.on.id !== on) return answer
  const { on: _, device, ...data } = answer
  return device === undefined || device === on ? data : { device, ...data }
}

/**
 * Without long texts that the call gave under the same name, such as a query: they stand right
 * above.
 */
function dropEcho(answer: unknown, call: Call | undefined): unknown {
  const given = call?.arguments ?? {}
  const isEcho = ([key, value]: [string, unknown]) =>
    typeof value === 'string' && value.length >= minEchoCharacters && given[key] === value && !always.includes(key)
  if (!isObject(answer)) return answer
  const without = (fields: Fields): Fields =>
    Object.fromEntries(Object.entries(fields).filter((entry) => !isEcho(entry)))
  const { summary } = answer
  return { ...without(answer), ...(isObject(summary) && { summary: without(summary) }) }
}

/**
 * The context without repeats: empty parts, alerts of the incident itself, and a runbook that an
 * annotation names.
 */
export function showContext(context: Fields): Fields {
  const { alerts, activeAlerts, ...others } = context
  const own = (Array.isArray(alerts) ? alerts : []).filter(isObject).map((alert) => {
    const { runbook, ...more } = alert
    const isTold = isObject(more.annotations) && Object.values(more.annotations).includes(runbook)
    return isTold ? more : alert
  })
  const isOwn = (alert: unknown) =>
    isObject(alert) && own.some(({ name, labels }) => name === alert.name && isSame(labels, alert.labels))
  const active = (Array.isArray(activeAlerts) ? activeAlerts : []).filter((alert) => !isOwn(alert))
  const parts = Object.entries({ ...others, activeAlerts: active }).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  )
  const { incident, ...rest } = Object.fromEntries(parts)
  return withoutNoise({ incident, alerts: own, ...rest }) as Fields
}

/**
 * Texts that the first messages hold whole, for comparing later answers: context and fitting
 * runbook.
 */
export function shownFirst(context: Fields, runbooks: RunbookMatch | null): unknown {
  const { chosen = null } = runbooks ?? {}
  if (chosen === null || chosen.body.length > inlineCharacters) return context
  return [context, { name: chosen.name, body: chosen.body }]
}

/** The device that answered; null where it was no device. */
function deviceIn(answer: unknown): string | null {
  const on = isObject(answer) ? answer.on : undefined
  return isObject(on) && typeof on.id === 'string' ? on.id : null
}

/** Where an answer is shown, what was shown before it, and the device whose answer it is. */
type At = { where: string; shown: ShownThings; device: string | null }

/** Notes things that the model was shown in another place, such as the context. */
export function noteShown(value: unknown, at: Omit<At, 'device'>): void {
  showValue(value, { ...at, device: null })
}

function showValue(value: unknown, at: At): unknown {
  if (Array.isArray(value)) return value.map((each) => showValue(each, at))
  if (!isObject(value)) return withoutNoise(value)
  const name = nameOf(value, at.device)
  return name === null ? showFields(value, at) : showThing(value, name, at)
}

function showFields(raw: Fields, at: At): Fields {
  const kept = Object.entries(withoutNoise(raw) as Fields)
  return Object.fromEntries(kept.map(([key]) => [key, showValue(raw[key], at)]))
}

function showThing(raw: Fields, name: string, at: At): unknown {
  const fields = withoutNoise(raw) as Fields
  const before = isPlainName(name, raw, at.shown) ? at.shown.get(name) : undefined
  const short = before ? changesOf(raw, fields, before) : null
  const written = showFields(raw, at)
  if (short && sizeOf(written) - sizeOf(short) >= minSaved) return short
  // Only what is written out here can later answers be compared with.
  if (sizeOf(written) === sizeOf(fields)) at.shown.set(name, { where: at.where, fields })
  return written
}

/**
 * Whether `always`' fields tell a reader which thing is meant: alerts of one name may differ in
 * labels alone.
 */
function isPlainName(name: string, { name: called, startsAt }: Fields, shown: ShownThings): boolean {
  if (startsAt === undefined || shown.get(name)?.fields.startsAt === startsAt) return true
  return [...shown.keys()].every((each) => each === name || !each.startsWith(`alert ${called} `))
}

/**
 * Differences from before; null where this answer lacks a part of then, so that nothing is known of
 * the rest.
 */
function changesOf(
  raw: Fields,
  now: Fields,
  { where, fields: before }: { where: string; fields: Fields },
): Fields | null {
  if (Object.keys(before).some((key) => !(key in raw))) return null
  const kept = Object.entries(now).filter(
    ([key, value]) => (always.includes(key) && sizeOf(value) <= maxAlwaysCharacters) || !isSame(value, before[key]),
  )
  const gone = Object.keys(before).filter((key) => !(key in now))
  // Another time of the same alert: which of those before is meant.
  const time = 'startsAt' in before && before.startsAt !== now.startsAt ? `, startsAt ${before.startsAt}` : ''
  const rest = `unchanged since ${where}${time}`
  return { ...Object.fromEntries([...kept, ...gone.map((key) => [key, raw[key]])]), rest }
}

const isSame = (a: unknown, b: unknown): boolean => a === b || (b !== undefined && sorted(a) === sorted(b))

/** Equal for any order of keys: a row is read back in another than it was written. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  )
}

const sizeOf = (value: unknown): number => JSON.stringify(value)?.length ?? 0

/** An answer in a few words: its first plain fields, then names and states of its list. */
export function summarize(data: unknown, maxCharacters: number): string {
  const words: string[] = []
  const visit = (value: unknown, key: string, depth: number): void => {
    if (words.join(', ').length > maxCharacters || depth > 3) return
    if (Array.isArray(value)) {
      for (const each of value.slice(0, 5)) visit(each, key, depth + 1)
      if (value.length > 5) words.push(`… ${value.length} in all`)
    } else if (isObject(value)) for (const [name, inner] of inOrder(value)) visit(inner, name, depth + 1)
    else words.push(key === '' ? String(value) : `${key} ${String(value).replace(/\s+/g, ' ').slice(0, 120)}`)
  }
  visit(withoutNoise(data), '', 0)
  const all = words.join(', ')
  return all.length <= maxCharacters ? all : `${all.slice(0, maxCharacters - 1).toWellFormed()}…`
}

/** What a claim would quote first. */
function inOrder(fields: Fields): [string, unknown][] {
  const first = [...always, 'reason', 'detail', 'exit_code']
  const rank = ([key]: [string, unknown]) => (first.includes(key) ? first.indexOf(key) : first.length)
  return Object.entries(fields).sort((a, b) => rank(a) - rank(b))
}
