import { cleanse } from '../../safety/cleanse.ts'
import { isGoodExit } from '../../safety/command/exit-code.ts'
import { judgeField } from '../../safety/command/field.ts'
import type { Mapped } from './call.ts'

const longestLine = 200

/**
 * Why a command that was to change something did not do its work, as its exit code says: `exit code 128: fatal: …`. Null where it did, as far
 * as an exit code can tell, and for what only looks: of a look the exit code is a part of the answer.
 */
export function whyEndedBadly(
  { spec, input }: Pick<Mapped, 'spec' | 'input'>,
  result: Readonly<Record<string, unknown>>,
): string | null {
  if (isLook({ spec, input }) || !spec.command) return null
  const { exit_code: exitCode, signal } = result
  if (typeof signal === 'string') return withLastLine(`ended by ${signal}`, result)
  if (typeof exitCode !== 'number') return withLastLine('it was stopped, or how it ended is not known', result)
  return isGoodExit(spec.command, input, exitCode) ? null : withLastLine(`exit code ${exitCode}`, result)
}

/** Does it only look, though a person had to allow it? */
export function isLook({ spec, input }: Pick<Mapped, 'spec' | 'input'>): boolean {
  if (!spec.command) return spec.effect === 'read'
  return judgeField(spec.command, input, new Set()).effect === 'read'
}

/** Errors stand at the end. */
function withLastLine(words: string, { stderr }: Readonly<Record<string, unknown>>): string {
  const lines = typeof stderr === 'string' ? stderr.trim().split('\n') : []
  const last = String(cleanse(lines.at(-1)?.trim() ?? ''))
  if (last === '') return words
  return `${words}: ${last.length > longestLine ? `${last.slice(0, longestLine).toWellFormed()}…` : last}`
}
