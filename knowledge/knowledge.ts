import { stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import {
  type KnowledgeList,
  type KnowledgePlace,
  type ListedRunbook,
  type Runbook,
  type RunbookMatch,
  type RunbookOrigin,
  runbookOrigins,
} from '../domain/runbook.ts'
import { matchRunbooks, type Subject } from './match.ts'
import { type ReadRunbooks, readFolder } from './read.ts'
import { askCommit, type Repository, RepositoryError, readRepository } from './repository.ts'

/**
 * What this site knows: the runbooks that ship with the product, those of its repository and those of its folder. Of one name the
 * folder's wins, then the repository's. The core API holds it in memory and reads it again every minute.
 */
export type Knowledge = {
  list(): KnowledgeList
  show(name: string): Runbook | null
  match(subject: Subject): RunbookMatch
  /** Reads the folders alone, so that a start does not wait for a server of Git. */
  readFolders(): Promise<void>
  /** Reads again what has changed. A place that cannot be read keeps what it had, and says why. */
  refresh(): Promise<void>
  /** Reads again now and every so often; answers what ends it. */
  keepFresh(everyMs: number): () => void
}

export type KnowledgeOptions = { path?: string | null; repository?: Repository | null; shipped?: string }

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
    keepFresh(everyMs) {
      void refresh()
      const timer = setInterval(refresh, everyMs)
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
      return { runbooks: before?.runbooks ?? [], refused: before?.refused ?? [], place }
    }
  }
}

async function fromFolder(path: string): Promise<Held> {
  if (!(await stat(path)).isDirectory()) throw Object.assign(new Error('no directory'), { code: 'ENOTDIR' })
  const place = { origin: 'folder' as const, at: path, commit: null, readAt: new Date().toISOString(), error: null }
  return { ...(await readFolder('folder', path)), place }
}

/** Fetched only where its branch is at another commit than the one that is held. */
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

/** By name; the last origin that has one wins, and says whom it stands before. */
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

/** One sentence for people: how many there are, of whom, which replace shipped ones, and what was not taken. */
export function describeKnowledge({ items, refused, places }: KnowledgeList): { isWell: boolean; detail: string } {
  const counts = runbookOrigins.flatMap((origin) => {
    const count = items.filter((each) => each.origin === origin).length
    return count === 0 ? [] : [`${count} ${nameOfOrigin[origin]}`]
  })
  const replacing = items.filter(({ replaces }) => replaces.length > 0).map(({ name }) => name)
  const away = places.filter(({ error }) => error !== null)
  const parts = [
    `${items.length} runbooks: ${counts.join(', ') || 'none'}.`,
    ...(replacing.length > 0 ? [`The site's own stand before others of the same name: ${some(replacing)}.`] : []),
    ...away.map(({ origin, error }) => `The ${origin} was not read: ${error}.`),
    ...(refused.length > 0 ? [`Not taken: ${some(refused.map(({ file, why }) => `${file} (${why})`))}.`] : []),
  ]
  return { isWell: away.length === 0 && refused.length === 0, detail: parts.join(' ') }
}

const nameOfOrigin = { shipped: 'shipped', repository: "of the site's repository", folder: "of the site's folder" }

function some(names: readonly string[]): string {
  const more = names.length - 3
  return `${names.slice(0, 3).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
