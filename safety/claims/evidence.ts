import type { State } from '../fold.ts'
import { type Bodies, type Part, partsOf } from './rows.ts'

/** A write of this attempt as claims may cite it. */
export type Write = { callId: string; startedSeq: number; held: boolean; failed: boolean; parts: Part[] }

/** All that the rows of an attempt can show. */
export type Evidence = {
  parts: Part[]
  writes: Write[]
  /** Number of the row that began the last write; 0 without one. What is said to be so now was read after it. */
  lastWrite: number
  incidentId: string
  /** Names of resources that have no number in them, as a tenant's. */
  known: string[]
}

export function evidenceOf(state: State, incidentId: string, bodies: Bodies): Evidence {
  const parts = partsOf(state.rows, bodies).map((part) =>
    repeatsItself(part, incidentId) ? { ...part, source: 'record' as const } : part,
  )
  const writes = state.writes.map((write) => {
    const own = parts.filter(
      ({ callId, source }) => callId === write.callId && (source === 'write' || source === 'verification'),
    )
    const row = state.rows.find((each) => each.kind === 'tool_finished' && each.metadata.callId === write.callId)
    const isFailed =
      row?.kind === 'tool_finished' && (!row.metadata.result.ok || exitCode(row.metadata.result.data) !== 0)
    const verified: string = write.verified
    return {
      callId: write.callId,
      startedSeq: write.startedSeq,
      parts: own,
      held: verified === 'held' || verified === 'unproven',
      failed: isFailed || verified === 'not_held',
    }
  })
  const known = [...state.resolved.entries.values()].flatMap(({ ref, names }) => [ref.id, ...names])
  return {
    parts,
    writes,
    incidentId,
    lastWrite: state.writes.at(-1)?.startedSeq ?? 0,
    known: [...new Set(known)].filter((name) => name.length >= 4 && !/^[a-z]+$/.test(name) && !/\d/.test(name)),
  }
}

function exitCode(data: unknown): number {
  const code = data !== null && typeof data === 'object' ? (data as { exit_code?: unknown }).exit_code : 0
  return typeof code === 'number' ? code : 0
}

/** A command that prints what it is given shows nothing but the model's own words. */
function repeatsItself(part: Part, _incidentId: string): boolean {
  if (part.source !== 'read') return false
  const { argv, command, text } = part.arguments
  const words = Array.isArray(argv)
    ? argv.map(String)
    : String(command ?? text ?? '')
        .trim()
        .split(/\s+/)
  return ['echo', 'printf', 'yes'].includes((words[0] ?? '').split('/').at(-1) as string)
}
