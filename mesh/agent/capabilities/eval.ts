import { z } from 'zod'
import type { CapabilityContext, DeviceCapability, Outcome } from '../capability.ts'
import { find } from '../confine.ts'
import { authorOf, identityOf } from '../repository.ts'
import { defaultDirectory, seenBy, textVerdict, weightOf } from '../verdict.ts'
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
  weigh: ({ text, cwd }) => weightOf(textVerdict(text, cwd ?? defaultDirectory), text),
  async run({ text, cwd }: Args, context: CapabilityContext): Promise<Outcome> {
    const verdict = textVerdict(text, cwd ?? defaultDirectory)
    const isRead = verdict.verdict === 'run'
    const ended = await context.run([find('bash') ?? '/bin/bash', '--noprofile', '--norc', '-c', text], {
      cwd: cwd ?? defaultDirectory,
      confine: isRead ? 'read' : 'write',
      onLine: context.emit,
      ...(isRead ? { env: verdict.environment, sees: seenBy(verdict, text) } : { env: identityOf(authorOf(context)) }),
    })
    return outcomeOf(ended, text)
  },
}
