import { withoutNoise } from '../domain/envelope.ts'
import { inlineCharacters, type RunbookMatch } from '../domain/runbook.ts'
import { cutCommands, sizeOf } from './cut-result.ts'
import { isObject } from './json.ts'

/**
 * Resources and other objects as an attempt was shown them: each completely once, later only its
 * changes. Filled in the transcript's order.
 */
export type ShownThings = Map<string, { where: string; fields: Fields }>
type Fields = Record<string, unknown>

/** Characters that a reference must save; for shorter texts the repetition stays. */
const minSaved = 20
/**
 * Shortest repetition of a call's text that is dropped. A shorter text stays, so that a reader does
 * not miss it.
 */
const minEchoCharacters = 24
/**
 * Fields that name an object or its state. The fields are short, and claims quote them, so every
 * answer shows them.
 */
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
  'source',
]
const maxAlwaysCharacters = 100

/**
 * Returns a name by which an object of an answer is recognised later. The name includes the device
 * for a device's own objects, because two devices may both have a process 1.
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
 * Shows an answer to the model without noise. For an object that was shown before, shows only the
 * fields that differ, and `rest` names the place of all other fields. A field that is gone is null.
 * `call`: the call of the answer; the answer is compared with that of an identical call.
 */
export function showAnswer(answer: unknown, call: Call | undefined, where: Omit<At, 'device'>): unknown {
  const data = cutCommands(dropEcho(dropDevice(answer, call?.arguments?.on), call))
  const at = { ...where, device: deviceIn(answer) }
  if (!isObject(data) || nameOf(data, at.device) !== null || !call) return showValue(data, at)
  return showThing(data, `call ${nameOfCall(call)}`, at)
}

type Call = { tool: string; arguments: Fields | null }

/** Returns a name that is the same for calls that differ only in `reason`. */
export function nameOfCall({ tool, arguments: args }: Call): string {
  const { reason: _, ...named } = args ?? {}
  return `${tool} ${JSON.stringify(named)}`
}

/**
 * Drops the device if it is the one that the call named. If another device answered, the answer
 * names it.
 */
function dropDevice(answer: unknown, on: unknown): unknown {
  if (!isObject(answer) || !isObject(answer.on) || answer.on.id !== on) return answer
  const { on: _, device, ...data } = answer
  return device === undefined || device === on ? data : { device, ...data }
}

/**
 * Drops long texts that the call gave under the same name, such as a query, because the model sees
 * the call directly above the answer.
 */
function dropEcho(answer: unknown, call: Call | undefined): unknown {
  const given = call?.arguments ?? {}
  const isEcho = ([key, value]: [string, unknown]) =>
    typeof value === 'string' && value.length >= minEchoCharacters && given[key] === value && !always.includes(key)
  if (!isObject(answer)) return answer
  const without = (fields: Fields): Fields =>
    Object.fromEntries(Object.entries(fields).filter((entry) => !isEcho(entry)))
  const { summary, about } = answer
  const { about: _, ...others } = answer
  return {
    ...without(isNamed(about, given) ? others : answer),
    ...(isObject(summary) && { summary: withoutAsked(without(summary), given) }),
  }
}

/**
 * Returns a summary without the window of its call, and without labels that the query itself names.
 */
function withoutAsked({ sharedLabels, ...summary }: Fields, { promql, window }: Fields): Fields {
  const query = typeof promql === 'string' ? promql : ''
  const names = new Set(query.split(/[^\w:]+/))
  // Compares whole names: a query with `exported_instance` does not name an `instance`.
  const matched = new Set([...query.matchAll(/\w+="[^"\\]*"/g)].map(([text]) => text))
  const isAsked = ([key, value]: [string, unknown]) =>
    matched.has(`${key}="${value}"`) || (key === '__name__' && names.has(String(value)))
  const labels = isObject(sharedLabels) ? Object.entries(sharedLabels).filter((each) => !isAsked(each)) : []
  const { window: of, ...rest } = summary
  return {
    ...(of === window ? rest : summary),
    ...(labels.length > 0 && { sharedLabels: Object.fromEntries(labels) }),
  }
}

/** Whether the call names each object that its answer is about, as a query does by its instance. */
function isNamed(about: unknown, given: Fields): boolean {
  // Compares whole words: a call that names db-10 does not name db-1.
  const words = JSON.stringify(given).split(/[^\w.-]+/)
  // Accepts a host name for the part before its first dot, but not a number for the part before its
  // point.
  const isWord = (id: string) => words.some((word) => word === id || (/\D/.test(id) && word.startsWith(`${id}.`)))
  return Array.isArray(about) && about.length > 0 && about.every((thing) => isObject(thing) && isWord(String(thing.id)))
}

/**
 * Shows the context without empty parts and without repeats: alerts of the incident itself, and a
 * runbook that an annotation names.
 */
export function showContext(context: Fields): Fields {
  const { alerts, activeAlerts, ...others } = context
  const raw = (Array.isArray(alerts) ? alerts : []).filter(isObject)
  const own = raw.map((alert) => showOwn(alert, context.incident))
  const isOwn = (alert: unknown) =>
    isObject(alert) && raw.some(({ name, labels }) => name === alert.name && isSame(labels, alert.labels))
  const active = (Array.isArray(activeAlerts) ? activeAlerts : []).filter((alert) => !isOwn(alert))
  const parts = Object.entries({ ...others, activeAlerts: active }).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  )
  const { incident, ...rest } = Object.fromEntries(parts)
  // Leaves out the status, because the incident is obviously being investigated.
  const { status: _, ...about }: Fields = isObject(incident) ? incident : {}
  return withoutNoise({ incident: about, alerts: own, ...rest }) as Fields
}

/**
 * Shows an alert of the incident, without what the incident already has, and without a runbook that
 * an annotation names.
 */
function showOwn(alert: Fields, incident: unknown): Fields {
  const { severity, title } = isObject(incident) ? incident : {}
  const { runbook, labels, annotations, ...more } = alert
  const without = (fields: unknown, isSaid: (key: string, value: unknown) => boolean) =>
    isObject(fields) ? Object.fromEntries(Object.entries(fields).filter(([key, value]) => !isSaid(key, value))) : fields
  const isTold = isObject(annotations) && Object.values(annotations).includes(runbook)
  return {
    ...more,
    labels: without(labels, (key, value) => key === 'severity' && value === severity),
    annotations: without(annotations, (key, value) => key === 'summary' && String(title).startsWith(String(value))),
    ...(!isTold && runbook !== undefined && { runbook }),
  }
}

/**
 * Returns the contents of the first messages with which later answers are compared: the context,
 * and the chosen runbook if it is shown there.
 */
export function shownFirst(context: Fields, runbooks: RunbookMatch | null): unknown {
  const { chosen = null } = runbooks ?? {}
  if (chosen === null || chosen.body.length > inlineCharacters) return context
  return [context, { name: chosen.name, body: chosen.body }]
}

/** Returns the id of the device that answered; null if there was none. */
function deviceIn(answer: unknown): string | null {
  const on = isObject(answer) ? answer.on : undefined
  return isObject(on) && typeof on.id === 'string' ? on.id : null
}

/** The place where an answer is shown, what was shown before it, and the device that answered. */
type At = { where: string; shown: ShownThings; device: string | null }

/** Records objects that the model was shown elsewhere, such as in the context. */
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
  // Leaves labels as they are: a label set is not an object with a name, and has no alert name
  // here.
  const isPlain = (key: string) => key === 'labels' || typeof raw[key] === 'string'
  return Object.fromEntries(kept.map(([key, value]) => [key, isPlain(key) ? value : showValue(raw[key], at)]))
}

function showThing(raw: Fields, name: string, at: At): unknown {
  const fields = withoutNoise(raw) as Fields
  const before = isPlainName(name, raw, at.shown) ? at.shown.get(name) : undefined
  const short = before ? changesOf(raw, fields, before) : null
  const written = showFields(raw, at)
  if (short && sizeOf(written) - sizeOf(short) >= minSaved) return short
  // Remembers the object only if it is written out here, because later answers can only be compared
  // with what the model saw.
  if (sizeOf(written) === sizeOf(fields)) at.shown.set(name, { where: at.where, fields })
  return written
}

/**
 * Whether the fields of `always` identify the object for a reader. The fields do not identify it if
 * alerts with one name differ only in labels.
 */
function isPlainName(name: string, { name: called, startsAt }: Fields, shown: ShownThings): boolean {
  if (startsAt === undefined || shown.get(name)?.fields.startsAt === startsAt) return true
  return [...shown.keys()].every((each) => each === name || !each.startsWith(`alert ${called} `))
}

/**
 * Returns the differences from an earlier answer. Null if this answer lacks a field of the earlier
 * one: that field may have changed.
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
  // Adds the earlier start time of the same alert, which identifies the earlier alert.
  const time = 'startsAt' in before && before.startsAt !== now.startsAt ? `, startsAt ${before.startsAt}` : ''
  const rest = `unchanged since ${where}${time}`
  return { ...Object.fromEntries([...kept, ...gone.map((key) => [key, raw[key]])]), rest }
}

const isSame = (a: unknown, b: unknown): boolean => a === b || (b !== undefined && sorted(a) === sorted(b))

/**
 * Returns a text that is equal for any order of keys, because a stored row is read back in another
 * order.
 */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  )
}

/** Keeps fields that name objects and their states, and fields that contain objects or lists. */
export function coreOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(coreOf)
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([key, inner]) => always.includes(key) || typeof inner === 'object')
  return Object.fromEntries(kept.map(([key, inner]) => [key, coreOf(inner)]))
}

/**
 * Summarizes an answer in words: its first plain fields, then names and states of the items of its
 * lists.
 */
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

/** Sorts fields so that those which a claim would quote come first. */
function inOrder(fields: Fields): [string, unknown][] {
  const first = [...always, 'reason', 'detail', 'exit_code']
  const rank = ([key]: [string, unknown]) => (first.includes(key) ? first.indexOf(key) : first.length)
  return Object.entries(fields).sort((a, b) => rank(a) - rank(b))
}
