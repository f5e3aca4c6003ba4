import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { digestOf, sha256 } from '../../domain/digest.ts'
import { probeResult } from '../../domain/passport.ts'
import type { FinishedProbe } from '../../model/passport/check.ts'
import { probes } from '../../model/passport/probes.ts'
import { getTokensFile } from '../saved-tokens.ts'

/**
 * Stores the finished probes of a check that was interrupted, one per line, beside the saved
 * tokens.
 */

const count = z.number().min(0)
const finished = z.object({
  result: probeResult,
  used: z.object({
    answers: count,
    promptTokens: count,
    completionTokens: count,
    stated: count,
    answerMs: count,
    asked: count,
    answeredAs: z.string().nullable(),
  }),
  protocol: z.enum(['native', 'json']),
})

/** Digest of the probes. If a text of a probe changes, another check begins. */
export const probesDigest = digestOf(probes.map(({ name, context, said }) => ({ name, context, said })))

/** Milliseconds after which a probe is repeated, because the model behind a name may change. */
const maxAgeMs = 6 * 3_600_000

type Journal = { kept: FinishedProbe[]; keep(each: FinishedProbe): void; end(): void }

/**
 * Opens the results of an earlier check with the same model, server, protocol and probes. Leaves
 * out lines that cannot be read.
 */
export function openCheckJournal(of: Record<string, string>, isAnew: boolean): Journal {
  const file = join(dirname(getTokensFile()), 'checks', `${sha256(JSON.stringify(of)).slice(0, 24)}.jsonl`)
  const end = () => rmSync(file, { force: true })
  if (isAnew || (existsSync(file) && Date.now() - statSync(file).mtimeMs > maxAgeMs)) end()
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  return {
    kept: lines.flatMap(readLine),
    keep(each) {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      // Begins with a line break, because the previous line may be incomplete.
      appendFileSync(file, `\n${JSON.stringify(each)}`, { mode: 0o600 })
    },
    end,
  }
}

function readLine(line: string): FinishedProbe[] {
  try {
    const read = finished.safeParse(JSON.parse(line))
    return read.success ? [read.data] : []
  } catch {
    return []
  }
}
