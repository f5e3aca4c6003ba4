import { append } from '../../db/append.ts'
import type { Db } from '../../db/connect.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { agentActor } from '../../domain/event.ts'

/** At most two rows a second, so small, so many: who wants all of it reads the result. */
const everyMs = 500
const rowCharacters = 4_000
const rowsAtMost = 40
const lineCharacters = 500

export type LineRows = {
  add(line: string): void
  /** Writes what is left; of an operation that was over before the first row, the result tells all. */
  end(): Promise<void>
}

/**
 * The lines of a long operation as rows of its incident, while they come. `append` cleanses them; what comes too fast or too long is
 * left out, and the row says how much.
 */
export function lineRows(db: Db, started: IncidentEvent<'tool_started'>, onFault: (error: unknown) => void): LineRows {
  const { incidentId, turn, metadata } = started
  const base = (started.stepKey ?? '').replace(':tool_started:', ':tool_output:')
  let lines: string[] = []
  let characters = 0
  let left = 0
  let rows = 0
  let timer: NodeJS.Timeout | null = null
  let writing: Promise<void> = Promise.resolve()

  function flush(): void {
    if (timer) clearTimeout(timer)
    timer = null
    if (lines.length === 0 && left === 0) return
    const batch = { lines, left }
    lines = []
    characters = 0
    left = 0
    rows += 1
    const row = rows
    writing = writing.then(() => write(row, batch)).catch(onFault)
  }

  async function write(row: number, batch: { lines: string[]; left: number }): Promise<void> {
    const { callId, tool } = metadata
    const more = batch.left > 0 ? ` (${batch.left} more left out)` : ''
    const detail = `${tool}: ${batch.lines.at(-1) ?? 'more output'}${more}`.slice(0, 300).toWellFormed()
    await db.transaction().execute((trx) =>
      append(trx, incidentId, null, {
        ...{ kind: 'tool_output', actor: agentActor, turn, stepKey: `${base}:${row}`, detail },
        metadata: { callId, tool, lines: batch.lines, left: batch.left },
      }),
    )
  }

  return {
    add(line) {
      if (rows >= rowsAtMost - 1 || characters >= rowCharacters) left += 1
      else {
        const short = line.slice(0, lineCharacters).toWellFormed()
        lines.push(short)
        characters += short.length + 1
      }
      if (rows < rowsAtMost - 1) timer ??= setTimeout(flush, everyMs)
    },
    async end() {
      if (rows > 0) flush()
      else if (timer) clearTimeout(timer)
      await writing
    },
  }
}
