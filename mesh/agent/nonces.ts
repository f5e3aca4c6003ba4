import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { clockSkewSeconds } from '../../domain/mesh.ts'

/** Nonces of the requests that could still be sent again, on disk as well: one line each, `issuedMs nonce`. */
export type Nonces = {
  has(nonce: string): boolean
  remember(nonce: string, issuedMs: number, nowMs: number): void
  /** Requests from before cannot be told apart from new ones: the file was gone. Null when it was there. */
  forgottenBeforeMs: number | null
}

const windowMs = clockSkewSeconds * 1000
const mostLines = 20_000

/**
 * What was remembered in that directory. A write is not waited for on disk: it survives the end of the process, and after a loss of
 * power a write is still known by its key in the journal.
 */
export function openNonces(directory: string, nowMs: number): Nonces {
  const file = join(directory, 'nonces')
  const isLost = !existsSync(file)
  const known = new Map<string, number>()
  let lines = 0
  if (!isLost) {
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const [issued, nonce] = line.split(' ')
      if (nonce && Number(issued) + windowMs >= nowMs) known.set(nonce, Number(issued))
    }
  }
  rewrite(nowMs)

  function rewrite(at: number): void {
    for (const [nonce, issuedMs] of known) if (issuedMs + windowMs < at) known.delete(nonce)
    writeFileSync(`${file}.new`, [...known].map(([nonce, issuedMs]) => `${issuedMs} ${nonce}\n`).join(''), {
      mode: 0o600,
    })
    renameSync(`${file}.new`, file)
    lines = known.size
  }

  return {
    has: (nonce) => known.has(nonce),
    remember(nonce, issuedMs, at) {
      known.set(nonce, issuedMs)
      appendFileSync(file, `${issuedMs} ${nonce}\n`, { mode: 0o600 })
      lines += 1
      if (lines > Math.max(mostLines, known.size * 2)) rewrite(at)
    },
    forgottenBeforeMs: isLost ? nowMs : null,
  }
}
