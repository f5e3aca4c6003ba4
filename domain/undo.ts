import { formatList } from './format.ts'
import type { ResourceRef } from './registry.ts'
import type { Risk } from './tool.ts'

/** What a write left behind, fact by fact: `HEAD of /srv/web` is `3f2a…`. */
export type LeftBehind = Readonly<Record<string, string>>

/** The call that takes a write back, and the write's own end state, for which alone it holds. */
export type DeclaredUndo = {
  tool: string
  arguments: Record<string, unknown>
  left: LeftBehind
  /** Files that the write changed, where a look has to ask for them. */
  files?: string[]
}

/** Stored with a done write. `none`: why nothing takes it back, despite a declared undo. */
export type RecordedUndo = DeclaredUndo | { none: string }

/** How a tool declares that its write is taken back. */
export type ToolUndo<Input> = {
  /**
   * The way back in words, for those who decide about the write. Null: its preparation names one,
   * if any.
   */
  does(input: Input): string | null
  /** From the arguments and from what the write itself answered: before it and after it. */
  of(input: Input, output: Record<string, unknown>): RecordedUndo
}

/** Which write a person takes back by their own one. */
export type Undoes = {
  /** The step key of its `tool_started`. */
  key: string
  incidentId: string
  attempt: number
  callId: string
  tool: string
  /** It was judged with this risk: its undo is judged with no less. */
  risk: Risk
  /** This person calls the write wrong: the tool's record says so once it is undone. */
  isWrong: boolean
}

/** A look at what a write left. */
export type UndoLook = { isAsLeft: boolean; observed: string }

/** Is all as the write left it? Null of now: it could not be read, which is no yes. */
export function compareLeft(left: LeftBehind, now: LeftBehind | null, incidentId: string): UndoLook {
  if (now === null) return { isAsLeft: false, observed: 'how things stand now could not be read' }
  const names = [...new Set([...Object.keys(left), ...Object.keys(now)])]
  const moved = names.filter((name) => !isSameFact(left[name], now[name]))
  if (moved.length === 0) {
    const facts = Object.entries(left).map(([name, value]) => `${name}: ${value}`)
    return { isAsLeft: true, observed: `as the write left it: ${facts.join('; ')}` }
  }
  const told = moved
    .slice(0, 5)
    .map((name) => `${name} is ${now[name] ?? 'not there'}, and was ${left[name] ?? 'not there'} then`)
  return { isAsLeft: false, observed: `it changed since the write of ${incidentId}: ${told.join('; ')}` }
}

/** A stopped service, and since when: one started and stopped again between is not as left. */
export function stoppedAt(since: string): string {
  return since === '' ? stopped : `${stopped} since ${since}`
}

const stopped = 'stopped'

/**
 * The times of two stops count where both have one: older rows have none, and systemd forgets that
 * of an unnamed unit.
 */
function isSameFact(left: string | undefined, now: string | undefined): boolean {
  if (left === now) return true
  const isStop = (fact = '') => fact === stopped || fact.startsWith(`${stopped} since `)
  return isStop(left) && isStop(now) && [left, now].includes(stopped)
}

/** The refusal of an undo over a state that moved on. */
export function formatMovedOn({ observed }: UndoLook, targets: readonly string[]): string {
  const where = targets.length > 0 ? ` Look at ${formatList(targets)} before you change it by hand.` : ''
  return `${observed[0]?.toUpperCase()}${observed.slice(1)}. Nothing was undone.${where}`
}

type VmStands = { host: string | null; running: boolean; startedAt?: string | null | undefined }

/** How a VM stands: a platform that tells when its run began tells one run from another. */
export function vmLeft(id: string, { host, running, startedAt = null }: VmStands): LeftBehind {
  const runs = startedAt === null ? 'running' : `running since ${startedAt}`
  return { [`host of ${id}`]: host ?? 'no host', [id]: running ? runs : 'stopped' }
}

/** A job's state by its check mode: nothing would change. `otherwise`: its words instead. */
export function jobLeft(job: string, otherwise: string | null): LeftBehind {
  return { [`what the check mode of ${job} would change`]: otherwise ?? 'nothing' }
}

/** A write of an incident as people are shown it, with what would take it back. */
export type ListedUndo = {
  /** The write's key, by which its undo is asked. */
  key: string
  tool: string
  said: string
  by: string
  at: string
  targets: ResourceRef[]
  undo: Pick<DeclaredUndo, 'tool' | 'arguments' | 'left'> | null
  /** Why it may not be taken back; null: nothing that is known speaks against it. */
  refused: { code: string; detail: string } | null
  undos: { incidentId: string; standing: 'under_way' | 'undone' | 'not_done' | 'unclear' }[]
}

export type ShownUndo = ListedUndo & { look: UndoLook | null }
