import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { sha256 } from '../../../domain/digest.ts'
import { CommandFailed } from '../../exit-codes.ts'
import { getTokensFile } from '../../saved-tokens.ts'
import { inert } from '../../ui/terminal.ts'
import { type TrialResult, trialResult } from './compare.ts'

/** A trial's results as they come, a line each, so that an interrupted command goes on. */

/** What a trial is of. Another model, server, protocol or site is another trial. */
type TrialOf = { model: string; server: string; protocol: string; site: string }

const head = z.strictObject({ trialOf: z.record(z.string(), z.string()) })

/** The file of this trial where none is named: beside the saved tokens of this person. */
export function trialFile(of: TrialOf): string {
  const name = of.model.replaceAll(/[^\w.-]+/g, '_').slice(0, 60)
  return join(dirname(getTokensFile()), 'trials', `${name}-${sha256(JSON.stringify(of)).slice(0, 12)}.jsonl`)
}

/**
 * The file's results, newest of each incident; none where the file is new, which is begun. Throws
 * CommandFailed for another trial's.
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
  // Whatever else lies there stays.
  if (isFresh && known) return begin()
  if (!known || JSON.stringify(known) !== JSON.stringify(of)) {
    throw new CommandFailed(
      'usage',
      `${inert(file)} holds no trial of ${inert(of.model)} at ${inert(of.server)}: name another file${known ? ', or begin again with --fresh' : ''}.`,
    )
  }
  const results = lines.flatMap((line) => trialResult.safeParse(parse(line)).data ?? [])
  // A line that was cut off would spoil the next one.
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
