import { z } from 'zod'
import { quote } from '../../../safety/command/quote.ts'
import type { CapabilityContext, DeviceCapability, Outcome } from '../capability.ts'
import { rehearseArgv } from '../command-rehearsal.ts'
import { authorOf, identityOf } from '../repository.ts'
import { readAsRoot } from '../root-read.ts'
import { argvVerdict, asRead, defaultDirectory, hereOf, restsOf, weightOf } from '../verdict.ts'
import { outcomeOf } from './ended.ts'

export const directory = z
  .string()
  .regex(/^\/[^\0]*$/, 'is not an absolute path')
  .max(4_096)
  .optional()

const args = z.strictObject({
  argv: z
    .array(
      z
        .string()
        .max(32_768)
        .regex(/^[^\0]*$/, 'holds a NUL'),
    )
    .min(1)
    .max(1_000),
  cwd: directory,
})
type Args = z.infer<typeof args>

/** `shell.exec`: a program with its words, never a shell. */
export const exec: DeviceCapability<Args> = {
  capability: 'shell.exec',
  args,
  lacks: async () => null,
  weigh: ({ argv, cwd = defaultDirectory }, { root_reads: rootReads }, own) =>
    weightOf(argvVerdict(argv, cwd, { secrets: own?.hidden, rootReads }), written(argv), cwd),
  async run({ argv, cwd = defaultDirectory }: Args, context: CapabilityContext): Promise<Outcome> {
    const verdict = argvVerdict(argv, cwd, hereOf(context))
    const command = written(argv)
    if (verdict.rootRead && !context.isGranted)
      return outcomeOf(await readAsRoot(verdict.rootRead, context, nothingBehind), command)
    // After a yes it runs as it stands, and not in a sandbox that sudo does not work in.
    const isRead = verdict.verdict === 'run' && !verdict.rootRead
    const ended = await context.run(argv, {
      cwd,
      onLine: context.emit,
      ...(isRead ? asRead(verdict) : { confine: 'write', env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, command)
  },
  /** Of a read, what keeps it from running unasked just now, `{ unmet }`; of a write, what can be seen of it beforehand. */
  async rehearse({ argv, cwd = defaultDirectory }: Args, context: CapabilityContext): Promise<Outcome> {
    const verdict = argvVerdict(argv, cwd, hereOf(context))
    if (verdict.verdict !== 'run') return await rehearseArgv(argv, cwd, context)
    const unmet = await context.whyUnmet(restsOf(verdict, cwd))
    return { ok: true, result: { unmet }, truncated: false }
  },
}

/** Words for a program have no pipe. */
const nothingBehind = () => Promise.reject(new Error('there is no rest of a pipe'))

function written(argv: readonly string[]): string {
  return argv.map(quote).join(' ')
}
