import { z } from 'zod'

/**
 * Describes what is wrong with a value for people and models: the field, the fault, and a valid
 * value. Every schema that refuses a value uses this. A message that the schema itself sets is
 * kept.
 */

/** A fault of a value. `field`: the path with dots; empty for a fault of the value as a whole. */
type SchemaFault = { path: PropertyKey[]; field: string; message: string }

type RawIssue = z.core.$ZodRawIssue

/** Maximum number of names or values in one sentence. */
const maxListed = 12
/** Maximum length of a name that a caller sent and that a sentence repeats. */
const maxNameLength = 60

z.config({ customError: (issue) => describeFault(issue as RawIssue) })

/** Lists the faults of a value, at most `max`. */
export function listFaults(error: z.ZodError, max = 20): SchemaFault[] {
  return error.issues.slice(0, max).map(({ path, message }) => ({ path, field: path.map(String).join('.'), message }))
}

/** Joins the faults of a value in one text. `whole`: what to call the value itself. */
export function nameFaults(error: z.ZodError, { whole = '', max = 20 } = {}): string {
  return listFaults(error, max)
    .map(({ field, message }) => [field || whole, message].filter(Boolean).join(': '))
    .join('; ')
}

/** Names the first faulty field, or `whole`, for a message that must not repeat the value. */
export function placeOfFault(error: z.ZodError, whole = 'the body'): string {
  return listFaults(error, 1)[0]?.field || whole
}

function describeFault(issue: RawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `${received(issue.input)}: give ${wanted(issue.expected, issue)}`
    case 'invalid_value':
      return `${issue.input === undefined ? 'it is missing' : 'it is unknown'}: give ${listValues(issue.values, 'or')}`
    case 'invalid_format':
      return describeFormat(issue)
    case 'too_small':
      return `give ${issue.exact ? 'exactly' : issue.inclusive ? 'at least' : 'more than'} ${size(issue.minimum, issue.origin)}`
    case 'too_big':
      return `give ${issue.exact ? 'exactly' : issue.inclusive ? 'at most' : 'less than'} ${size(issue.maximum, issue.origin)}`
    case 'not_multiple_of':
      return `give a multiple of ${issue.divisor}`
    case 'unrecognized_keys':
      return `${listValues(issue.keys.map(quote), 'and')} ${issue.keys.length > 1 ? 'are' : 'is'} not known here${knownKeys(issue)}`
    case 'invalid_union':
      return describeUnion(issue)
    case 'invalid_key':
      return 'the name of this field is not allowed'
    default:
      return 'it has the wrong form'
  }
}

const nouns: Record<string, string> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object with names and values',
  record: 'an object with names and values',
  date: 'a time',
  null: 'null',
}

function wanted(expected: string, issue: RawIssue): string {
  const examples = issue.schema ? z.globalRegistry.get(issue.schema as z.ZodType)?.examples : undefined
  const [example] = Array.isArray(examples) ? examples : []
  const noun = nouns[expected] ?? 'another kind of value'
  return example === undefined ? noun : `${noun}, such as ${JSON.stringify(example)}`
}

function received(input: unknown): string {
  if (input === undefined) return 'it is missing'
  if (input === null) return 'it is null'
  if (Array.isArray(input)) return 'it is a list'
  if (typeof input === 'number') {
    if (Number.isNaN(input)) return 'it is not a number'
    return Number.isFinite(input) ? `it is ${input}` : 'it is larger than any number that can be stored (1.8e308)'
  }
  if (typeof input === 'string') return 'it is a text'
  return typeof input === 'boolean' ? `it is ${input}` : 'it is an object'
}

function listValues(values: readonly unknown[], last: 'and' | 'or'): string {
  const shown = values.slice(0, maxListed).map(String)
  const more = values.length - shown.length
  const words = more > 0 ? [...shown, `${more} more`] : shown
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`
}

const formats: Record<string, string> = {
  url: 'a URL, such as https://host.example.com',
  email: 'an e-mail address, such as night@example.com',
  uuid: 'a UUID, such as 123e4567-e89b-42d3-a456-426614174000',
  ipv4: 'an IPv4 address, such as 192.0.2.1',
  ipv6: 'an IPv6 address, such as 2001:db8::1',
  cidrv4: 'a network, such as 192.0.2.0/24',
  cidrv6: 'a network, such as 2001:db8::/32',
  datetime: 'a time, such as 2026-11-25T03:00:00Z',
  date: 'a day, such as 2026-11-25',
  time: 'a time of day, such as 03:00',
  base64: 'base64',
  json_string: 'JSON',
}

function describeFormat(issue: Extract<RawIssue, { code: 'invalid_format' }>): string {
  const { format, prefix, suffix, includes, pattern } = issue as typeof issue & Record<string, string | undefined>
  if (format === 'starts_with') return `begin it with ${quote(prefix ?? '')}`
  if (format === 'ends_with') return `end it with ${quote(suffix ?? '')}`
  if (format === 'includes') return `it must contain ${quote(includes ?? '')}`
  if (format === 'regex') return `it does not have the form ${pattern}`
  return `it does not fit: give ${formats[format] ?? `a value of the form ${format}`}`
}

const units: Record<string, [one: string, many: string]> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  set: ['entry', 'entries'],
  map: ['entry', 'entries'],
}

function size(count: number | bigint, origin: string): string {
  const [one, many] = units[origin] ?? []
  return one ? `${count} ${count === 1 ? one : many}` : String(count)
}

/** Lists the names that an object accepts, if its schema has a fixed set of names. */
function knownKeys(issue: RawIssue): string {
  const { shape } = (issue.inst as { shape?: object } | undefined) ?? {}
  const known = Object.keys(shape ?? {})
  return known.length === 0 ? '' : `: known are ${listValues(known, 'and')}`
}

/** Describes the form of a union that fits best: the form whose fault is at the deepest path. */
function describeUnion(issue: Extract<RawIssue, { code: 'invalid_union' }>): string {
  const { options } = issue as { options?: readonly unknown[] }
  if (options && options.length > 0) return `it is unknown: give ${listValues(options, 'or')}`
  const branches = (issue.errors ?? []).filter((branch) => branch.length > 0)
  const whole = branches.flatMap(([first]) =>
    first && first.path.length === 0 && first.code === 'invalid_type' ? [wanted(first.expected, {} as RawIssue)] : [],
  )
  if (whole.length === branches.length && whole.length > 0)
    return `${received(issue.input)}: give ${listValues([...new Set(whole)], 'or')}`
  const depthOf = (branch: (typeof branches)[number]) => branch[0]?.path.length ?? 0
  const [nearest] = branches.toSorted((a, b) => depthOf(b) - depthOf(a) || a.length - b.length)
  const [fault] = nearest ?? []
  if (!fault) return 'it has none of the allowed forms'
  return [fault.path.map(String).join('.'), fault.message].filter(Boolean).join(': ')
}

function quote(text: string): string {
  return JSON.stringify(text.length > maxNameLength ? `${text.slice(0, maxNameLength)}…` : text)
}
