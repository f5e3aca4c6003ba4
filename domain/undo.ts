import { formatList } from './format.ts'
import type { ResourceRef } from './registry.ts'
import type { Risk } from './tool.ts'

/** The state that a write left, fact by fact: `HEAD of /srv/web` is `3f2a…`. */
export type LeftBehind = Readonly<Record<string, string>>

/**
 * The call that undoes a write, and the state after the write. The undo is valid only for this
 * state.
 */
export type DeclaredUndo = {
  tool: string
  arguments: Record<string, unknown>
  left: LeftBehind
  /** Files that the write changed, if a read for the undo must name them. */
  files?: string[]
}

/**
 * The undo that is stored with a completed write. `none`: why the write cannot be undone, although
 * its tool declares an undo.
 */
export type RecordedUndo = DeclaredUndo | { none: string }

/** How a tool declares the undo of its write. */
export type ToolUndo<Input> = {
  /**
   * Describes the undo for people who decide about the write. Null if the dry run describes the
   * undo, or states that there is none.
   */
  does(input: Input): string | null
  /**
   * Builds the undo from the arguments and from what the write reported about the state before and
   * after.
   */
  of(input: Input, output: Record<string, unknown>): RecordedUndo
}

/** The write that a person's later write undoes. */
export type Undoes = {
  /** The step key of the write's `tool_started` row. */
  key: string
  incidentId: string
  attempt: number
  callId: string
  tool: string
  /** The risk of the write. The undo has at least this risk in the policy check. */
  risk: Risk
  /**
   * Whether the person grades the write as wrong. The grade is added to the tool's record once the
   * write is undone.
   */
  isWrong: boolean
}

/** A read of the state that a write left. */
export type UndoLook = { isAsLeft: boolean; observed: string }

/**
 * Compares the current state with the state that the write left. A state that could not be read
 * (null) counts as different.
 */
export function compareLeft(left: LeftBehind, now: LeftBehind | null, incidentId: string): UndoLook {
  if (now === null) return { isAsLeft: false, observed: 'the current state could not be read' }
  const names = [...new Set([...Object.keys(left), ...Object.keys(now)])]
  const moved = names.filter((name) => !isSameFact(left[name], now[name]))
  if (moved.length === 0) {
    const facts = Object.entries(left).map(([name, value]) => `${name}: ${value}`)
    return { isAsLeft: true, observed: `as the write left it: ${facts.join('; ')}` }
  }
  const told = moved
    .slice(0, 5)
    .map((name) => `${name} is ${now[name] ?? 'not there'}, and was ${left[name] ?? 'not there'} then`)
  return { isAsLeft: false, observed: `the state changed since the write of ${incidentId}: ${told.join('; ')}` }
}

/**
 * Describes that a service is stopped, and since when, so that a service that was started and
 * stopped again differs.
 */
export function stoppedAt(since: string): string {
  return since === '' ? stopped : `${stopped} since ${since}`
}

const stopped = 'stopped'

/**
 * Whether two facts about a state are equal. The times of two stops are compared only if both are
 * known: older rows have no times, and systemd forgets the time of a stopped unit that nothing
 * refers to.
 */
function isSameFact(left: string | undefined, now: string | undefined): boolean {
  if (left === now) return true
  const isStop = (fact = '') => fact === stopped || fact.startsWith(`${stopped} since `)
  return isStop(left) && isStop(now) && [left, now].includes(stopped)
}

/** Explains that an undo was refused because the state of the target has changed. */
export function formatMovedOn({ observed }: UndoLook, targets: readonly string[]): string {
  const where = targets.length > 0 ? ` Check ${formatList(targets)} before you change anything by hand.` : ''
  return `${observed[0]?.toUpperCase()}${observed.slice(1)}. Nothing was undone.${where}`
}

type VmStands = { host: string | null; running: boolean; startedAt?: string | null | undefined }

/** Describes the state of a VM. A start time, if it is known, tells apart two of its runs. */
export function vmLeft(id: string, { host, running, startedAt = null }: VmStands): LeftBehind {
  const runs = startedAt === null ? 'running' : `running since ${startedAt}`
  return { [`host of ${id}`]: host ?? 'no host', [id]: running ? runs : 'stopped' }
}

/**
 * Describes the state of a job's resource by the job's check mode, which would change nothing.
 * `otherwise`: what it would change instead.
 */
export function jobLeft(job: string, otherwise: string | null): LeftBehind {
  return { [`what the check mode of ${job} would change`]: otherwise ?? 'nothing' }
}

/** A write of an incident for people, with its undo. */
export type ListedUndo = {
  /** The key of the write, which a request for its undo contains. */
  key: string
  tool: string
  said: string
  by: string
  at: string
  targets: ResourceRef[]
  undo: Pick<DeclaredUndo, 'tool' | 'arguments' | 'left'> | null
  /** Why the write may not be undone; null if no reason is known. */
  refused: { code: string; detail: string } | null
  undos: { incidentId: string; standing: 'under_way' | 'undone' | 'not_done' | 'unclear' }[]
}

export type ShownUndo = ListedUndo & { look: UndoLook | null }
