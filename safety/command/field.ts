import type { CommandField } from '../../domain/tool.ts'
import { type CommandContext, type CommandVerdict, judgeArgv, judgeCommand } from './judge.ts'

/** Decides about the command that a call carries, as it would run there. */
export function judgeField(
  { field, form, directory }: CommandField,
  args: Readonly<Record<string, unknown>>,
  knownHosts: ReadonlySet<string>,
  rootReads?: CommandContext['rootReads'],
): CommandVerdict {
  const where = directory && { directory: String(args[directory.field] ?? directory.otherwise) }
  const context = { knownHosts, ...where, rootReads }
  const value = args[field]
  if (form === 'bash') return judgeCommand(String(value), context)
  return judgeArgv(Array.isArray(value) ? value.map(String) : [], context)
}
