import { stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { incidentTypeOf, isType } from '../domain/incident-type.ts'
import type { InventoryKind } from '../domain/kinds.ts'
import {
  type KnowledgeList,
  type KnowledgePlace,
  type ListedRunbook,
  matchReasons,
  type Runbook,
  type RunbookMatch,
  type RunbookOrigin,
  runbookOrigins,
} from '../domain/runbook.ts'
import { type FoundPolicy, findPolicyFiles } from './policy-file.ts'
import { type ReadRunbooks, readFolder } from './read.ts'
import { askCommit, type Repository, RepositoryError, readRepository } from './repository.ts'

/**
 * Finds the runbooks that fit an incident. Scores the list in memory: an installation has only
 * dozens of files, and a database index would be a second copy to maintain. A test, the command
 * line and a production system give equal results.
 */
export type Subject = {
  type: string
  kind: InventoryKind | null
  /** The alert's text: title, names and summary. Untrusted, and used only to order the runbooks. */
  words: string
}

type Why = (typeof matchReasons)[number]
type Fit = { runbook: Runbook; why: Why; words: number; pattern: number; hasKind: boolean }

const maxOthers = 2
/**
 * Minimum score for a match by words. A word that only one runbook contains scores 1, so one common
 * word makes no match.
 */
const minWords = 1.5

/**
 * Returns the best runbook if it fits the incident by type or kind, and the next two. The order of
 * the list does not matter.
 */
export function matchRunbooks(runbooks: readonly Runbook[], subject: Subject): RunbookMatch {
  const weights = weighWords(runbooks)
  const asked = wordsOf(`${subject.type} ${subject.words}`)
  // Converts the given type, because a person may search by the name of an alert instead of an
  // incident type.
  const typed = { ...subject, type: incidentTypeOf({}, subject.type) }
  const fits = runbooks.flatMap((runbook) => fitOf(runbook, typed, scoreWords(runbook, asked, weights)) ?? [])
  const [best, ...rest] = fits.sort(compare)
  const isInlined = best !== undefined && best.why !== 'words'
  return {
    chosen: isInlined ? { ...best.runbook, why: best.why } : null,
    others: (isInlined ? rest : fits)
      .slice(0, maxOthers)
      .map(({ runbook: { name, description }, why }) => ({ name, description, why })),
  }
}

function fitOf(runbook: Runbook, { type, kind }: Subject, words: number): Fit | null {
  const { incidentTypes, resourceKinds } = runbook
  const hasKind = kind !== null && resourceKinds.includes(kind)
  // Rejects a runbook that is only for other kinds of resource, for example a runbook for hosts
  // when the resource is a node.
  if (kind !== null && resourceKinds.length > 0 && !hasKind) return null
  const toFit = (why: Why, pattern = 0) => ({ runbook, why, words, pattern, hasKind })
  const typeLetters = lettersOf(type)
  if (incidentTypes.some((each) => !each.includes('*') && (lettersOf(each) === typeLetters || isType(each, type))))
    return toFit('type')
  const patterns = incidentTypes.filter((each) => each.includes('*') && fitsPattern(each, type))
  if (patterns.length > 0) return toFit('pattern', Math.max(...patterns.map((each) => each.length)))
  // Skips a runbook that lists incident types. If none of them fits, it describes another fault,
  // even if the kind fits.
  if (hasKind && incidentTypes.length === 0) return toFit('kind')
  return words >= minWords ? toFit('words') : null
}

function compare(a: Fit, b: Fit): number {
  return (
    matchReasons.indexOf(a.why) - matchReasons.indexOf(b.why) ||
    Number(b.hasKind) - Number(a.hasKind) ||
    b.pattern - a.pattern ||
    b.words - a.words ||
    (a.runbook.name < b.runbook.name ? -1 : 1)
  )
}

/**
 * Keeps only letters and digits, so that `ServiceMemoryHigh`, `service_memory_high` and
 * `service-memory-high` become equal.
 */
const lettersOf = (name: string): string => name.toLowerCase().replace(/[^\p{L}\p{N}*]+/gu, '')

/**
 * Whether a type fits a pattern in which each star stands for any text. A part between stars must
 * begin at a word of the type, so `*OOM*` does not fit `too_many`. Uses no regular expression,
 * because the file of a runbook may contain any pattern.
 */
function fitsPattern(pattern: string, type: string): boolean {
  const text = lettersOf(type)
  const begins = wordBegins(type)
  const [first = '', ...parts] = lettersOf(pattern).split('*')
  const last = parts.pop() ?? ''
  if (!text.startsWith(first)) return false
  let from = first.length
  for (const part of parts.filter(Boolean)) {
    let at = text.indexOf(part, from)
    while (at >= 0 && !begins.has(at)) at = text.indexOf(part, at + 1)
    if (at < 0) return false
    from = at + part.length
  }
  const end = text.length - last.length
  return last === '' || (end >= from && text.endsWith(last) && begins.has(end))
}

/**
 * Returns the positions at which words begin among the letters of a type. A word also begins at a
 * digit (`http5xx`).
 */
function wordBegins(type: string): Set<number> {
  const words = type.toLowerCase().match(/\p{L}+|\p{N}\p{L}*/gu) ?? []
  const begins = new Set<number>()
  words.reduce((at, word) => {
    begins.add(at)
    return at + word.length
  }, 0)
  return begins
}

const everyday = new Set(
  'a an and are as at be by for from has in is it its of on or that the to was when with'.split(' '),
)

/**
 * Lists the words of three or more characters, and splits names such as `NodeDiskFull` and
 * `disk_full` into their parts.
 */
function wordsOf(text: string): Set<string> {
  const parts = text
    .slice(0, 4_000)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
  return new Set((parts.match(/[\p{L}\p{N}]{3,40}/gu) ?? []).filter((word) => !everyday.has(word)))
}

const textOf = ({ name, description, incidentTypes }: Runbook) =>
  wordsOf(`${name} ${description} ${incidentTypes.join(' ')}`)

/** Gives each word a weight: a word that few runbooks contain has a higher weight. */
function weighWords(runbooks: readonly Runbook[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const runbook of runbooks) for (const word of textOf(runbook)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return new Map([...counts].map(([word, count]) => [word, 1 / count]))
}

function scoreWords(runbook: Runbook, asked: ReadonlySet<string>, weights: ReadonlyMap<string, number>): number {
  return [...textOf(runbook)].reduce((sum, word) => sum + (asked.has(word) ? (weights.get(word) ?? 0) : 0), 0)
}

/**
 * The runbooks of this installation: shipped runbooks, runbooks of its Git repository, and runbooks
 * of its folder. For one name the folder takes precedence, then the repository. The core API keeps
 * runbooks in memory and reads them again every minute.
 */
export type Knowledge = {
  list(): KnowledgeList
  show(name: string): Runbook | null
  match(subject: Subject): RunbookMatch
  /** Reads only the folders, so that a start does not wait for a Git server. */
  readFolders(): Promise<void>
  /**
   * Reads the changed places of runbooks again. A place that cannot be read keeps its previous
   * content and reports the reason.
   */
  refresh(): Promise<void>
  /** Returns the policy files of the repository and of the folder, as last read. */
  policies(): FoundPolicy[]
  /**
   * Reads all places again now and at intervals, then calls `onRead`. Returns a function that stops
   * the reads.
   */
  keepFresh(everyMs: number, onRead?: () => Promise<void>): () => void
}

type KnowledgeOptions = { path?: string | null; repository?: Repository | null; shipped?: string }

type Held = ReadRunbooks & { place: KnowledgePlace | null }
type State = { held: Map<string, Held>; merged: Runbook[] }

const shippedFolder = fileURLToPath(new URL('./', import.meta.url))

export function openKnowledge({
  path = null,
  repository = null,
  shipped = shippedFolder,
}: KnowledgeOptions): Knowledge {
  const state: State = { held: new Map(), merged: [] }
  let running: Promise<void> | null = null
  const read = async (places: readonly RunbookOrigin[]) => {
    if (!state.held.has('shipped'))
      state.held.set('shipped', { ...(await readFolder('shipped', shipped)), place: null })
    if (repository && places.includes('repository'))
      state.held.set('repository', await readAgain(state, 'repository', () => fromRepository(state, repository)))
    if (path !== null && places.includes('folder'))
      state.held.set('folder', await readAgain(state, 'folder', () => fromFolder(path)))
    state.merged = merge(state)
  }
  const refresh = () => {
    running ??= read(['repository', 'folder']).finally(() => {
      running = null
    })
    return running
  }
  return {
    list: () => ({
      items: state.merged.map(toListed),
      nextCursor: null,
      refused: [...state.held.values()].flatMap(({ refused }) => refused),
      places: [...state.held.values()].flatMap(({ place }) => place ?? []),
    }),
    show: (name) => state.merged.find((each) => each.name === name) ?? null,
    match: (subject) => matchRunbooks(state.merged, subject),
    readFolders: () => read(['folder']),
    refresh,
    policies: () => [...state.held.values()].flatMap(({ policies = [] }) => policies),
    keepFresh(everyMs, onRead = async () => {}) {
      const round = () => refresh().then(onRead)
      void round()
      const timer = setInterval(round, everyMs)
      return () => clearInterval(timer)
    },
  }

  async function readAgain(state: State, origin: 'repository' | 'folder', ask: () => Promise<Held>): Promise<Held> {
    try {
      return await ask()
    } catch (error) {
      const before = state.held.get(origin)
      const at = origin === 'folder' ? (path ?? '') : (repository?.url ?? '')
      const none: KnowledgePlace = { origin, at, commit: null, readAt: null, error: null }
      const place = { ...(before?.place ?? none), error: whyAway(error) }
      return {
        runbooks: before?.runbooks ?? [],
        refused: before?.refused ?? [],
        policies: before?.policies ?? [],
        place,
      }
    }
  }
}

async function fromFolder(path: string): Promise<Held> {
  if (!(await stat(path)).isDirectory()) throw Object.assign(new Error('no directory'), { code: 'ENOTDIR' })
  const place = { origin: 'folder' as const, at: path, commit: null, readAt: new Date().toISOString(), error: null }
  return { ...(await readFolder('folder', path)), policies: await findPolicyFiles(path), place }
}

/** Fetches the repository only if its branch is at a commit that is not loaded. */
async function fromRepository({ held }: State, repository: Repository): Promise<Held> {
  const before = held.get('repository')
  const readAt = new Date().toISOString()
  if (before?.place && before.place.commit !== null && before.place.commit === (await askCommit(repository)))
    return { ...before, place: { ...before.place, readAt, error: null } }
  const { commit, ...found } = await readRepository(repository)
  return { ...found, place: { origin: 'repository', at: repository.url, commit, readAt, error: null } }
}

function whyAway(error: unknown): string {
  if (error instanceof RepositoryError) return error.message
  const { code } = error as { code?: string }
  return code === undefined ? 'it could not be read' : `it could not be read (${code})`
}

/**
 * Merges runbooks by name. The last origin's runbook is used, and lists the origins it replaces.
 */
function merge({ held }: State): Runbook[] {
  const byName = new Map<string, Runbook>()
  for (const origin of runbookOrigins)
    for (const runbook of held.get(origin)?.runbooks ?? []) {
      const before = byName.get(runbook.name)
      byName.set(runbook.name, { ...runbook, replaces: before ? [...before.replaces, before.origin] : [] })
    }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function toListed({ body: _, ...listed }: Runbook): ListedRunbook {
  return listed
}

/**
 * Describes the runbooks in one sentence: how many, from which origins, and which runbooks are
 * replaced or refused.
 */
export function describeKnowledge({ items, refused, places }: KnowledgeList): { isWell: boolean; detail: string } {
  const counts = runbookOrigins.flatMap((origin) => {
    const count = items.filter((each) => each.origin === origin).length
    return count === 0 ? [] : [`${count} ${nameOfOrigin[origin]}`]
  })
  const replacing = items.filter(({ replaces }) => replaces.length > 0).map(({ name }) => name)
  const away = places.filter(({ error }) => error !== null)
  const parts = [
    `${items.length} runbooks: ${counts.join(', ') || 'none'}.`,
    ...(replacing.length > 0 ? [`Runbooks of the site that replace others of the same name: ${some(replacing)}.`] : []),
    ...away.map(({ origin, error }) => `The ${origin} was not read: ${error}.`),
    ...(refused.length > 0 ? [`Rejected: ${some(refused.map(({ file, why }) => `${file} (${why})`))}.`] : []),
  ]
  return { isWell: away.length === 0 && refused.length === 0, detail: parts.join(' ') }
}

const nameOfOrigin = { shipped: 'shipped', repository: "of the site's repository", folder: "of the site's folder" }

function some(names: readonly string[]): string {
  const more = names.length - 3
  return `${names.slice(0, 3).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
