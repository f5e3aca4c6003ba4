import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { sha256 } from '../../../domain/digest.ts'
import { CommandFailed } from '../../exit-codes.ts'
import { getTokensFile } from '../../saved-tokens.ts'
import { inert } from '../../ui/terminal.ts'
import { type TrialResult, trialResult } from './compare.ts'

/**
 * Stores the results of a trial as they arrive, one per line, so that an interrupted command can
 * continue.
 */

/** The identity of a trial. Another model, server, protocol or site makes it another trial. */
type TrialOf = { model: string; server: string; protocol: string; site: string }

const head = z.strictObject({ trialOf: z.record(z.string(), z.string()) })

/** Returns the default file for the results of this trial, beside the person's saved tokens. */
export function trialFile(of: TrialOf): string {
  const name = of.model.replaceAll(/[^\w.-]+/g, '_').slice(0, 60)
  return join(dirname(getTokensFile()), 'trials', `${name}-${sha256(JSON.stringify(of)).slice(0, 12)}.jsonl`)
}

/**
 * Reads the results in the file, the newest of each incident. Begins a new file, without results,
 * if there is none. Throws CommandFailed for the file of another trial.
 */
export function openJournal(file: string, of: TrialOf, isFresh: boolean): Map<string, TrialResult> {
  const begin = () => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, `${JSON.stringify({ trialOf: of })}\n`, { mode: 0o600 })
    return new Map<string, TrialResult>()
  }
  if (!existsSync(file)) return begin()
  const [first = '', ...lines] = readFileSync(file, 'utf8').split('\n')
  const known = head.safeParse(parse(first)).data?.trialOf
  // Begins again only in a file of a trial, so that `isFresh` replaces no other file.
  if (isFresh && known) return begin()
  if (!known || JSON.stringify(known) !== JSON.stringify(of)) {
    throw new CommandFailed(
      'usage',
      `${inert(file)} holds no trial of ${inert(of.model)} at ${inert(of.server)}: name another file${known ? ', or begin again with --fresh' : ''}.`,
    )
  }
  const results = lines.flatMap((line) => trialResult.safeParse(parse(line)).data ?? [])
  // Writes the file again without incomplete lines, because a result after one could not be read.
  writeFileSync(file, [first, ...results.map((each) => JSON.stringify(each)), ''].join('\n'), { mode: 0o600 })
  return new Map(results.map((each) => [each.incidentId, each]))
}

export function keepResult(file: string, result: TrialResult): void {
  appendFileSync(file, `${JSON.stringify(result)}\n`)
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
