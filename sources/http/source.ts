import { z } from 'zod'
import { describePrinted, toText } from '../../domain/say.ts'
import { connectHttp } from '../connect-http.ts'
import {
  type AskSource,
  defineSourceTool,
  fitSummary,
  maxSummaryBytes,
  type PageAnswer,
  SourceError,
  type SourceKind,
  type ToolReading,
} from '../kind.ts'
import { cut, fitValue, isTooDeep, printLines, selectPart } from './summary.ts'

/**
 * A path of a server that may be read. A model's path is split and judged in parts, and the request
 * is built from these parts. Refuses forms that servers and proxies read differently (dot segments,
 * encoded separators, double encodings, segment parameters).
 */
type HttpPath = { segments: readonly string[]; query: readonly (readonly [string, string])[] }

/**
 * A pattern of paths, such as `/api/nodes-*?limit&page`. `*` is a part of one segment, and a last
 * `**` covers everything below. The names of allowed query parameters follow the question mark.
 */
type PathPattern = { segments: readonly string[]; queryKeys: readonly string[] }

const maxValueCharacters = 200
const maxStars = 2
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const unsafe = /[\u0000-\u001f\u007f/\\%;?#]/
const queryKey = /^[A-Za-z0-9_.[\]-]{1,60}$/

/** Splits a path into segments and query, or returns why the path is invalid. */
export function readPath(text: string): HttpPath | string {
  if (!text.startsWith('/')) return 'a path must begin with /, because the source sets the server'
  const strange = /[^\x21-\x7e]|[\\#;"<>^`{|}*]/.exec(text)?.[0]
  if (strange !== undefined) return `a path must not contain ${JSON.stringify(strange)}`
  const [path = '', ...rest] = text.split(/\?(.*)/s)
  const segments = readSegments(path)
  if (typeof segments === 'string') return segments
  const query = rest.length === 0 ? [] : readQuery(rest[0] ?? '')
  return typeof query === 'string' ? query : { segments, query }
}

/** Builds the path of the request. Encodes each part once. */
export function writePath({ segments, query }: HttpPath): string {
  const pairs = query.map((pair) => pair.map(encodeURIComponent).join('='))
  return `/${segments.map(encodeURIComponent).join('/')}${pairs.length > 0 ? `?${pairs.join('&')}` : ''}`
}

function readSegments(path: string): string[] | string {
  const found: string[] = []
  const raw = path.split('/').slice(1)
  for (const [at, each] of raw.entries()) {
    if (each === '' && at < raw.length - 1) return 'a path must not have an empty segment (//)'
    const segment = decode(each)
    if (segment === null) return `${JSON.stringify(each.slice(0, 60))} is not encoded as UTF-8 in %XX`
    // Checks the normalized text too, because some servers convert look-alikes such as U+FF0F to
    // the plain character.
    const plain = segment.normalize('NFKC')
    if (unsafe.test(segment) || unsafe.test(plain))
      return `${JSON.stringify(each.slice(0, 60))} encodes a separator, a percent sign or a control character`
    if (/^[. ]+$/.test(plain)) return 'a path must not have dot segments (. and ..)'
    found.push(segment)
  }
  return found
}

function readQuery(text: string): [string, string][] | string {
  const found: [string, string][] = []
  for (const pair of text.split('&')) {
    const [key, value] = pair.split(/=(.*)/s).map((part) => decode(part.replaceAll('+', ' ')))
    if (key == null || !queryKey.test(key))
      return `${JSON.stringify(pair.slice(0, 60))} is not a name and value of a query string`
    if (value === null) return `the value of ${key} is not encoded as UTF-8 in %XX`
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
    if (value !== undefined && (value.length > maxValueCharacters || /[\u0000-\u001f\u007f]/.test(value)))
      return `the value of ${key} is longer than ${maxValueCharacters} characters, or holds a control character`
    if (found.some(([known]) => known === key)) return `the query has ${key} twice`
    found.push([key, value ?? ''])
  }
  return found
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** Reads a pattern that an admin declares, or returns why it is invalid. */
export function readPattern(text: string): PathPattern | string {
  const [path = '', keys] = text.split(/\?(.*)/s)
  const stars = path.split('/').map((each) => each.split('*').length - 1)
  const segments = readPath(path.replaceAll('*', 'x'))
  if (typeof segments === 'string') return segments
  const own = path
    .split('/')
    .slice(1)
    .map((each) => decode(each) ?? each)
  if (own.slice(0, -1).some((each) => each.includes('**')) || own.some((each) => each !== '**' && each.includes('**')))
    return '** must be a segment of its own, at the end'
  if (stars.some((count) => count > maxStars)) return `a segment may have at most ${maxStars} *`
  const queryKeys = keys === undefined ? [] : keys.split('&')
  const wrong = queryKeys.find((key) => !queryKey.test(key))
  return wrong === undefined ? { segments: own, queryKeys } : `${JSON.stringify(wrong)} is not a name in a query string`
}

/**
 * Whether the pattern covers the path. No wildcard covers a name with a leading dot (`.git`,
 * `.env`); the pattern must name it.
 */
export function isCovered({ segments, queryKeys }: PathPattern, path: HttpPath): boolean {
  if (!path.query.every(([key]) => queryKeys.includes(key))) return false
  const isOpen = segments.at(-1) === '**'
  const fixed = isOpen ? segments.slice(0, -1) : segments
  if (isOpen ? path.segments.length <= fixed.length : path.segments.length !== fixed.length) return false
  return path.segments.every((segment, at) => {
    const wanted = fixed[at]
    return wanted === undefined ? !segment.startsWith('.') : matches(wanted, segment)
  })
}

/** Whether a segment matches a pattern in which `*` stands for any text. Runs in linear time. */
function matches(pattern: string, segment: string): boolean {
  if (!pattern.includes('*')) return pattern === segment
  const parts = pattern.split('*')
  const [first = '', last = ''] = [parts[0], parts.at(-1)]
  if (segment === '' || (first === '' && segment.startsWith('.'))) return false
  if (!segment.startsWith(first) || !segment.endsWith(last) || segment.length < first.length + last.length) return false
  let from = first.length
  for (const part of parts.slice(1, -1)) {
    const at = segment.indexOf(part, from)
    if (at < 0 || at + part.length > segment.length - last.length) return false
    from = at + part.length
  }
  return true
}

/** Reads pages of one server: only GET, and only the paths that an admin declares. */

const maxPaths = 50
const howTo = 'must name the paths that may be read, such as /health,/api/v1/nodes/*?limit'
const pattern = z
  .string()
  .max(300)
  .superRefine((text, context) => {
    const read = readPattern(text)
    if (typeof read === 'string') context.addIssue({ code: 'custom', message: `${text}: ${read}` })
  })
const options = z.strictObject({
  /** Accepts a list, or a text from a command line with commas between the paths. */
  paths: z.preprocess(
    (given) => (typeof given === 'string' ? given.split(/[\s,]+/).filter((each) => each !== '') : given),
    z.array(pattern, howTo).min(1, howTo).max(maxPaths),
  ),
})

const input = z.strictObject({
  source: z.string().max(40).optional().describe('where there are several'),
  path: z.string().min(1).max(1_000).describe('as /api/v1/nodes/web-1?limit=10'),
  select: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('of JSON a part, as items[*].state; of text lines that hold this'),
})

const refuse = (reason: string) => ({ ok: false as const, reason, bounded: null })

const httpRead = defineSourceTool({
  name: 'http_read',
  // Is rare, because the context of the investigation already lists the allowed paths.
  isRare: true,
  description: 'GET a page of a server, where the source allows its path: JSON, or text by lines.',
  input,
  judge({ path }) {
    const read = readPath(path)
    return typeof read === 'string' ? refuse(read) : { ok: true }
  },
  judgeAt({ path }, given) {
    const read = readPath(path)
    if (typeof read === 'string') return refuse(read)
    const { paths } = options.parse(given)
    const isAllowed = paths.some((each) => {
      const allowed = readPattern(each)
      return typeof allowed !== 'string' && isCovered(allowed, read)
    })
    return isAllowed
      ? { ok: true }
      : refuse(`${cut(path, 100)} is not among the paths of this source: ${listed(paths)}`)
  },
  // Fixes no labels, because a page is untrusted text and proves no read of the resources that it
  // names.
  labels: () => ({}),
  say({ status, value, text, notFound }, { path, select }) {
    const part = select === undefined ? path : `${select} of ${path}`
    if (notFound !== undefined) return `${part}: nothing is there`
    const shown = ['string', 'number', 'boolean'].includes(typeof value) ? `: ${toText(value)}` : ''
    const lines = Array.isArray(text) ? `: ${describePrinted(text.join('\n'))}` : ''
    return `${part} is answered with ${toText(status)}${shown || lines}`
  },
  async read(ask, { path, select }) {
    const page = await askPage(ask, path)
    const isRefused = page.status >= 400
    const partial = isRefused ? { partial: [`the server answered with status ${page.status}`] } : {}
    const head = { ...partial, path: cut(path, 200), status: page.status, ...(select && { select: cut(select, 100) }) }
    const reading = 'json' in page ? readJson(page.json, head, select) : readLines(page.text, head, select)
    // Counts an error page as partial, because it is no evidence of absence.
    return { ...reading, isPartial: isRefused }
  },
})

const maxListed = 12

/** Formats the allowed paths for a sentence. */
function listed(paths: readonly string[]): string {
  const shown = paths.slice(0, maxListed).join(', ')
  return paths.length > maxListed ? `${shown} and ${paths.length - maxListed} more` : shown
}

async function askPage(ask: AskSource, path: string): Promise<PageAnswer> {
  const read = readPath(path)
  if (typeof read === 'string') throw new SourceError('REJECTED', read)
  return (await ask({ path: writePath(read), accept: 'page' })) as PageAnswer
}

function readJson(json: unknown, head: Record<string, unknown>, select: string | undefined): ToolReading {
  if (isTooDeep(json)) throw new SourceError('BAD_ANSWER', 'the response is JSON that is nested too deep to be read')
  const selected = select === undefined ? { value: json, missing: null } : selectPart(json, select)
  if (selected === null)
    throw new SourceError('REJECTED', `${cut(select ?? '', 60)} cannot be read: write items[0].name or items[*].state`)
  const { value, missing } = selected
  if (missing) {
    const { at, names } = missing
    const summary = fitSummary(names.slice(0, maxNames), (kept) => ({
      ...head,
      value,
      notFound: { at, names: kept },
      ...(names.length > kept.length && { namesMore: names.length - kept.length }),
    }))
    return { summary, whole: '', isEmpty: true }
  }
  const isEmpty = value === null || (typeof value === 'object' && Object.keys(value).length === 0)
  return { summary: fitValue(head, value), whole: printLines(value), isEmpty }
}

const maxLineCharacters = 300
const maxNames = 20

function readLines(text: string, head: Record<string, unknown>, select: string | undefined): ToolReading {
  const all = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  const lines = select === undefined ? all : all.filter((line) => line.includes(select))
  const candidates = takeFirst(
    lines.slice(0, maxSummaryBytes).map((line) => cut(line, maxLineCharacters)),
    maxSummaryBytes,
  )
  return {
    summary: fitSummary(candidates, (kept) => ({
      ...head,
      lines: all.length,
      ...(select !== undefined && { matching: lines.length }),
      text: kept,
      ...(kept.length < lines.length && { notShown: lines.length - kept.length }),
    })),
    whole: lines.join('\n'),
    isEmpty: lines.length === 0,
  }
}

/** Takes whole lines from the beginning, with at most this many characters. */
function takeFirst(lines: readonly string[], characters: number): string[] {
  let rest = characters
  return lines.filter((line) => {
    rest -= line.length
    return rest >= 0
  })
}

/** Requests the first allowed path that has no wildcard, to test the source. */
async function probe(ask: AskSource, given: Record<string, unknown>): Promise<string> {
  const { paths } = options.parse(given)
  const [first] = paths.map((each) => each.replace(/\?.*/s, '')).filter((each) => !each.includes('*'))
  if (first === undefined) return `no request was sent: none of the ${paths.length} paths names a single page`
  const { status } = await askPage(ask, first)
  if (status >= 400) throw new SourceError('BAD_ANSWER', `${first} is answered with ${status}`)
  return `the server answers at ${first}; ${paths.length} ${paths.length === 1 ? 'path' : 'paths'} may be read`
}

export const http: SourceKind = {
  kind: 'http',
  title: 'pages of a server: JSON or text by GET',
  options,
  connect: connectHttp,
  probe,
  allows: (given) => ({ tool: httpRead.name, paths: options.parse(given).paths.slice(0, maxListed) }),
  tools: [httpRead],
}
