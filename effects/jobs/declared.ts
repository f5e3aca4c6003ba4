import { readFileSync } from 'node:fs'
import { type Document, isNode, LineCounter, parseDocument } from 'yaml'
import { type DeclaredJob, jobsFile } from '../../domain/job.ts'
import { kindOfName } from '../../safety/secret-names.ts'

/** The file of jobs cannot be used: every fault with its line, so that it can be put right in one go. */
export class JobsFileError extends Error {
  override name = 'JobsFileError' as const
  readonly faults: string[]
  constructor(file: string, faults: string[]) {
    super(`JOBS_FILE ${file} has ${faults.length} fault(s):\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

type Path = readonly PropertyKey[]
type Fault = { path: Path; message: string }

/** The jobs that a file declares (YAML, or JSON, which is YAML too). Throws JobsFileError. */
export function readJobsFile(file: string): DeclaredJob[] {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new JobsFileError(file, [code?.startsWith('E') ? `it cannot be read (${code})` : 'it is not UTF-8'])
  }
  return parseJobs(text, file)
}

export function parseJobs(text: string, file = 'jobs.yaml'): DeclaredJob[] {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false })
  if (document.errors.length > 0) {
    const faults = document.errors.map(({ pos, message }) => `line ${lines.linePos(pos[0]).line}: ${message}`)
    throw new JobsFileError(file, faults)
  }
  const given: unknown = document.toJS({ maxAliasCount: 1_000 }) ?? { jobs: [] }
  const parsed = jobsFile.safeParse(given)
  const faults: Fault[] = [
    ...(parsed.success ? [] : parsed.error.issues),
    ...findSecrets(given),
    ...(parsed.success ? findTwins(parsed.data.jobs) : []),
  ]
  if (parsed.success && faults.length === 0) return parsed.data.jobs
  throw new JobsFileError(
    file,
    faults
      .map(({ path, message }) => ({ line: lineOf(document, lines, path), path, message }))
      .toSorted((a, b) => a.line - b.line)
      .map(({ line, path, message }) => `line ${line}: ${path.join('.') || 'the file'}: ${message}`),
  )
}

/** The line of the nearest place that the document has: of a field that is missing, that of what misses it. */
function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const at = path.slice(0, length)
    const node = length === 0 ? document.contents : document.getIn(at, true)
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
  }
  return 1
}

function findTwins(jobs: readonly DeclaredJob[]): Fault[] {
  const names = jobs.map(({ name }) => name)
  return names.flatMap((name, at) =>
    names.indexOf(name) < at ? [{ path: ['jobs', at, 'name'], message: `${name} is there twice` }] : [],
  )
}

/** Values under names that promise a secret, and secrets in addresses: the file is no place for them. */
function findSecrets(value: unknown, path: PropertyKey[] = []): Fault[] {
  if (Array.isArray(value)) return value.flatMap((each, at) => findSecrets(each, [...path, at]))
  if (value !== null && typeof value === 'object')
    return Object.entries(value).flatMap(([key, each]) => findSecrets(each, [...path, key]))
  if (typeof value !== 'string' || /^(file:|env:)/.test(value)) return []
  const name = String(path.at(-1))
  const remedy = 'write { from: file:/path } or { from: env:NIGHTSHIFT_JOB_NAME }'
  if (kindOfName(name) !== null) return [{ path, message: `holds a secret: ${remedy}` }]
  const url = URL.parse(value)
  if (!url || !/^https?:$/.test(url.protocol)) return []
  const isSecret = url.password !== '' || [...url.searchParams.keys()].some((key) => kindOfName(key) !== null)
  return isSecret ? [{ path, message: 'holds a secret in the address: send it in a header by reference' }] : []
}
