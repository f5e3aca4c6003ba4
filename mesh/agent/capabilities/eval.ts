import { z } from 'zod'
import type { CapabilityContext, DeviceCapability, Outcome } from '../capability.ts'
import { rehearseText } from '../command-rehearsal.ts'
import { authorOf, identityOf } from '../repository.ts'
import { find } from '../rights.ts'
import { readAsRoot } from '../root-read.ts'
import { asRead, defaultDirectory, hereOf, restsOf, textVerdict, weightOf } from '../verdict.ts'
import { outcomeOf } from './ended.ts'
import { directory } from './exec.ts'

const args = z.strictObject({
  text: z
    .string()
    .min(1)
    .max(64_000)
    .regex(/^[^\0]*$/, 'holds a NUL'),
  cwd: directory,
})
type Args = z.infer<typeof args>

/** `shell.eval`: a text for bash, as it is. */
export const evaluate: DeviceCapability<Args> = {
  capability: 'shell.eval',
  args,
  lacks: async () => (find('bash') ? null : 'bash is not installed'),
  weigh: ({ text, cwd = defaultDirectory }, { root_reads: rootReads }, own) =>
    weightOf(textVerdict(text, cwd, { secrets: own?.hidden, rootReads }), text, cwd),
  async run({ text, cwd = defaultDirectory }: Args, context: CapabilityContext): Promise<Outcome> {
    const verdict = textVerdict(text, cwd, hereOf(context))
    const isRead = verdict.verdict === 'run'
    if (verdict.rootRead && !context.isGranted) {
      const ended = await readAsRoot(verdict.rootRead, context, (rest, { input }) =>
        context.run(inBash(rest), { cwd, onLine: context.emit, input, ...asRead(verdict) }),
      )
      return outcomeOf(ended, text)
    }
    const ended = await context.run(inBash(text), {
      cwd,
      onLine: context.emit,
      // After a yes it runs as it stands, and not in a sandbox that sudo does not work in.
      ...(isRead && !verdict.rootRead ? asRead(verdict) : { confine: 'write', env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, text)
  },
  /** Of a read, what keeps it from running unasked just now, `{ unmet }`; of a write, what can be seen of it beforehand. */
  async rehearse({ text, cwd = defaultDirectory }: Args, context: CapabilityContext): Promise<Outcome> {
    const verdict = textVerdict(text, cwd, hereOf(context))
    if (verdict.verdict !== 'run') return await rehearseText(text, cwd, context)
    const unmet = await context.whyUnmet(restsOf(verdict, cwd))
    return { ok: true, result: { unmet }, truncated: false }
  },
}

function inBash(text: string): string[] {
  return [find('bash') ?? '/bin/bash', '--noprofile', '--norc', '-c', text]
}
