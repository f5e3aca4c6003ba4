import { z } from 'zod'
import { describePrinted, toText } from '../../domain/say.ts'
import {
  type Ask,
  defineSourceTool,
  fitSummary,
  mostSummaryBytes,
  type Page,
  SourceError,
  type SourceKind,
  type ToolReading,
} from '../kind.ts'
import { isCovered, readPath, readPattern, writePath } from './paths.ts'
import { cut, fitValue, isTooDeep, printLines, selectPart } from './summary.ts'

/** Pages of one server: GET of the paths that an admin declared when the source was added, and of nothing else. */

const mostPaths = 50
const howTo = 'names the paths that may be read, as /health,/api/v1/nodes/*?limit'
const pattern = z
  .string()
  .max(300)
  .superRefine((text, context) => {
    const read = readPattern(text)
    if (typeof read === 'string') context.addIssue({ code: 'custom', message: `${text}: ${read}` })
  })
const options = z.strictObject({
  /** A list, or a text with commas: what a command line gives. */
  paths: z.preprocess(
    (given) => (typeof given === 'string' ? given.split(/[\s,]+/).filter((each) => each !== '') : given),
    z.array(pattern, howTo).min(1, howTo).max(mostPaths),
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
  // The context says what may be read.
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
  // A page is a text of a stranger: whatever it names, nothing was looked at by it.
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
    const head = { path: cut(path, 200), status: page.status, ...(select && { select: cut(select, 100) }) }
    return 'json' in page ? readJson(page.json, head, select) : readLines(page.text, head, select)
  },
})

const mostListed = 12

/** Allowed paths within a sentence. */
function listed(paths: readonly string[]): string {
  const shown = paths.slice(0, mostListed).join(', ')
  return paths.length > mostListed ? `${shown} and ${paths.length - mostListed} more` : shown
}

async function askPage(ask: Ask, path: string): Promise<Page> {
  const read = readPath(path)
  if (typeof read === 'string') throw new SourceError('REJECTED', read)
  return (await ask({ path: writePath(read), accept: 'page' })) as Page
}

function readJson(json: unknown, head: Record<string, unknown>, select: string | undefined): ToolReading {
  if (isTooDeep(json)) throw new SourceError('BAD_ANSWER', 'it answered JSON that is nested too deep to be read')
  const selected = select === undefined ? { value: json, missing: null } : selectPart(json, select)
  if (selected === null)
    throw new SourceError('REJECTED', `${cut(select ?? '', 60)} cannot be read: write items[0].name or items[*].state`)
  const { value, missing } = selected
  if (missing) {
    const { at, names } = missing
    const summary = fitSummary(names, (kept) => ({ ...head, value, notFound: { at, names: kept } }))
    return { summary, whole: '', isEmpty: true }
  }
  const isEmpty = value === null || (typeof value === 'object' && Object.keys(value).length === 0)
  return { summary: fitValue(head, value), whole: printLines(value), isEmpty }
}

const mostLineCharacters = 300

function readLines(text: string, head: Record<string, unknown>, select: string | undefined): ToolReading {
  const all = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  const lines = select === undefined ? all : all.filter((line) => line.includes(select))
  const candidates = takeFirst(
    lines.slice(0, mostSummaryBytes).map((line) => cut(line, mostLineCharacters)),
    mostSummaryBytes,
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

/** Lines from the beginning, this many characters at most. */
function takeFirst(lines: readonly string[], characters: number): string[] {
  let rest = characters
  return lines.filter((line) => {
    rest -= line.length
    return rest >= 0
  })
}

/** Asks the first path that names one page. */
async function probe(ask: Ask, given: Record<string, unknown>): Promise<string> {
  const { paths } = options.parse(given)
  const [first] = paths.map((each) => each.replace(/\?.*/s, '')).filter((each) => !each.includes('*'))
  if (first === undefined) return `nothing was asked: none of its ${paths.length} paths names one page`
  const { status } = await askPage(ask, first)
  if (status >= 400) throw new SourceError('BAD_ANSWER', `${first} is answered with ${status}`)
  return `it answers at ${first}; ${paths.length} ${paths.length === 1 ? 'path' : 'paths'} may be read`
}

export const http: SourceKind = {
  kind: 'http',
  title: 'pages of a server: JSON or text by GET',
  options,
  probe,
  allows: (given) => ({ tool: httpRead.name, paths: options.parse(given).paths.slice(0, mostListed) }),
  tools: [httpRead],
}
