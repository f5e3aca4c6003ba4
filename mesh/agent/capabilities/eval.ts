import { z } from 'zod'
import type { CapabilityContext, DeviceCapability, Outcome } from '../capability.ts'
import { rehearseText } from '../command-rehearsal.ts'
import { authorOf, identityOf } from '../repository.ts'
import { find } from '../rights.ts'
import { asRead, defaultDirectory, restsOf, textVerdict, weightOf } from '../verdict.ts'
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
  weigh: ({ text, cwd = defaultDirectory }, _, own) =>
    weightOf(textVerdict(text, cwd, { secrets: own?.hidden }), text, cwd),
  async run({ text, cwd = defaultDirectory }: Args, context: CapabilityContext): Promise<Outcome> {
    const verdict = textVerdict(text, cwd, { secrets: context.hidden })
    const isRead = verdict.verdict === 'run'
    const ended = await context.run([find('bash') ?? '/bin/bash', '--noprofile', '--norc', '-c', text], {
      cwd,
      onLine: context.emit,
      ...(isRead ? asRead(verdict) : { confine: 'write', env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, text)
  },
  /** Of a read, what keeps it from running unasked just now, `{ unmet }`; of a write, what can be seen of it beforehand. */
  async rehearse({ text, cwd = defaultDirectory }: Args, context: CapabilityContext): Promise<Outcome> {
    const verdict = textVerdict(text, cwd, { secrets: context.hidden })
    if (verdict.verdict !== 'run') return await rehearseText(text, cwd, context)
    const unmet = await context.whyUnmet(restsOf(verdict, cwd))
    return { ok: true, result: { unmet }, truncated: false }
  },
}
